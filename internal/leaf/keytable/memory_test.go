package keytable_test

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// TestAllocations holds the hot path to its word, with lent keys.
func TestAllocations(t *testing.T) {
	if keytable.Invariants {
		t.Skip("the checks allocate, and take long")
	}
	table := keytable.New()
	lent := make([][]byte, 1000)
	versions := make([]keytable.Version, len(lent))
	for i := range lent {
		lent[i], versions[i] = []byte(pods(10)(i)), versionOf(i)
		table.Set(borrow(lent[i]), versions[i], 0)
	}
	generation := table.Begin()
	i := 0
	for name, call := range map[string]func(key string, v keytable.Version){
		"Show":    func(key string, v keytable.Version) { table.Show(key, v, generation, generation) },
		"Compare": func(key string, v keytable.Version) { table.Compare(key, v) },
		"Set":     func(key string, v keytable.Version) { table.Set(key, v, generation) },
	} {
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			i = (i + 1) % len(lent)
			call(borrow(lent[i]), versions[i])
		}), name)
	}
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() {
		i = (i + 1) % len(lent)
		table.Get(borrow(lent[i]))
	}), 1.0)
}

// TestSizes bounds the memory of tables of any size, and what they tell of it. Which keys share
// a segment is chance, and one that must grow early weighs in a small table: many of those are
// measured together.
func TestSizes(t *testing.T) {
	if keytable.Invariants {
		t.Skip("the checks allocate, and take long")
	}
	for _, test := range []struct {
		keys, tables int
		most         float64
	}{{1, 300, 80}, {10, 300, 80}, {20, 300, 80}, {33, 100, 120}, {100, 100, 80}, {1000, 10, 65}, {10_000, 1, 55}, {100_000, 1, 43}} {
		if raced && test.keys > 10_000 {
			continue
		}
		before, size := heap(), 0
		tables := make([]*keytable.Table, test.tables)
		for n := range tables {
			tables[n] = keytable.New()
			for i := range test.keys {
				tables[n].Set(pods(10)(i), versionOf(i), 0)
			}
			size += int(tables[n].SizeBytes())
		}
		took, keys := heap()-before, float64(test.keys*test.tables)
		each, told := float64(took)/keys, float64(size)/keys
		t.Logf("%d tables of %d keys: %.1f bytes a key, %.1f told, as in %v", test.tables, test.keys, each, told, tables[0].SizeParts())
		require.LessOrEqual(t, told, test.most)
		if test.keys >= 100_000 { // less is lost in the noise of the test itself
			require.InEpsilon(t, each, told, 0.05)
		}
		runtime.KeepAlive(tables)
	}
}

// TestGrowth bounds what a table takes while it grows and shrinks, and how long
// one call may last: SizeBytes is never much more than the keys need.
func TestGrowth(t *testing.T) {
	if keytable.Invariants {
		t.Skip("the checks allocate, and take long")
	}
	if testing.Short() || raced {
		t.Skip("small tables have more beside their keys")
	}
	const n = 100_000
	table := keytable.New()
	worst := 0.0
	for i := range n {
		table.Set(pods(10)(i), versionOf(i), 0)
		if i > n/10 {
			worst = max(worst, float64(table.SizeBytes())/float64(i))
		}
	}
	t.Logf("at worst %.1f bytes per key while it grew", worst)
	require.Less(t, worst, 55.0)
	full := table.SizeBytes()
	for i := range n {
		if i%10 != 0 {
			table.Delete(pods(10)(i))
		}
	}
	t.Logf("%d bytes of %d are left for a tenth of the keys", table.SizeBytes(), full)
	require.Less(t, table.SizeBytes(), full/2)
}

// TestLongTextsAreForgotten replaces and deletes entries with texts that are too long for
// an entry: their memory is given back.
func TestLongTextsAreForgotten(t *testing.T) {
	long := func(i int) string { return strings.Repeat("x", 500) + strconv.Itoa(i%10) }
	for name, entry := range map[string]func(i int) (key string, v keytable.Version){
		"key":              func(i int) (string, keytable.Version) { return long(i), keytable.Version{} },
		"resource version": func(i int) (string, keytable.Version) { return "a", keytable.Version{ResourceVersion: long(i)} },
		"UID":              func(i int) (string, keytable.Version) { return "a", keytable.Version{UID: types.UID(long(i))} },
	} {
		for how, change := range map[string]func(table *keytable.Table, i int){
			"deleted": func(table *keytable.Table, i int) {
				key, v := entry(i)
				table.Set(key, v, 0)
				table.Delete(key)
			},
			"replaced": func(table *keytable.Table, i int) {
				key, v := entry(i)
				table.Set(key, v, 0)
			},
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				table := keytable.New()
				table.Set("another", keytable.Version{}, 0) // a table without keys begins anew
				for i := range 20 {
					change(table, i)
				}
				before := table.SizeBytes()
				for i := range 1000 {
					change(table, i)
				}
				require.Equal(t, before, table.SizeBytes())
			})
		}
	}
}

// TestEndurance deletes and adds for ever, and the memory stays bounded. With
// KEYTABLE_ENDURANCE set it does 50 million operations on a million keys, in a
// few minutes:
//
//	KEYTABLE_ENDURANCE=1 go test -run Endurance -v -timeout 30m ./internal/leaf/keytable
func TestEndurance(t *testing.T) {
	keys, operations := 20_000, 300_000
	switch {
	case os.Getenv("KEYTABLE_ENDURANCE") != "":
		keys, operations = 1_000_000, 50_000_000
	case testing.Short() || keytable.Invariants || raced:
		keys, operations = 1000, 10_000
	}
	table := keytable.New()
	// The keys are a window that moves on: namespaces, replica sets and pods come
	// and go as they do in a cluster, and no key comes twice.
	for i := range keys {
		table.Set(pods(10)(i), versionOf(i), 0)
	}
	before, first := heap(), table.SizeBytes()
	most := first
	begin := time.Now()
	for i := range operations / 2 {
		if !table.Delete(pods(10)(i)) {
			t.Fatal("not there")
		}
		v := versionOf(keys + i)
		if i%16 == 0 {
			v.ResourceVersion = strings.Repeat("v", i%100) // entries of all sizes
		}
		table.Set(pods(10)(keys+i), v, 0)
		most = max(most, table.SizeBytes())
	}
	t.Logf("%d operations in %v; %.1f bytes per key before, %.1f at most, %.1f after; heap %+d bytes", operations, time.Since(begin).Round(time.Millisecond),
		float64(first)/float64(keys), float64(most)/float64(keys), float64(table.SizeBytes())/float64(keys), heap()-before)
	require.Equal(t, keys, table.Len())
	require.Less(t, float64(most), 1.5*float64(first)+20_000)
	runtime.KeepAlive(table)
}
