package keytable_test

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// TestTable holds a table against a plain map.
func TestTable(t *testing.T) {
	keys := rapid.SampledFrom([]string{"", "a", "ns/a", "ns/b", "ns/pod-7d9f-x2x4z"})
	versions := rapid.Custom(func(t *rapid.T) keytable.Version {
		return keytable.Version{
			ResourceVersion: rapid.SampledFrom([]string{"", "1", "18446744073709551616", "opaque"}).Draw(t, "rv"),
			UID:             types.UID(rapid.SampledFrom([]string{"", "u", "3b0a6d1e"}).Draw(t, "uid")),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		table := keytable.New()
		want, marks := map[string]keytable.Version{}, map[string]uint64{}
		var generation uint64
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) {
				generation++
				if got := table.Begin(); got != generation {
					t.Fatalf("generation %d, want %d", got, generation)
				}
			},
			"set": func(t *rapid.T) {
				key, version := keys.Draw(t, "key"), versions.Draw(t, "version")
				mark := rapid.Uint64Range(0, generation).Draw(t, "generation")
				table.Set(key, version, mark)
				want[key], marks[key] = version, max(marks[key], mark)
			},
			"show": func(t *rapid.T) {
				key, mark := keys.Draw(t, "key"), rapid.Uint64Range(0, generation).Draw(t, "generation")
				table.Show(key, keytable.Version{}, mark, mark)
				if _, ok := want[key]; ok {
					marks[key] = max(marks[key], mark)
				}
			},
			"delete": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				_, exists := want[key]
				if table.Delete(key) != exists {
					t.Fatalf("Delete of %q: it was there: %v", key, exists)
				}
				delete(want, key)
				delete(marks, key)
			},
			// Tables of a few keys have another form.
			"grow": func(t *rapid.T) {
				for i := range rapid.IntRange(1, 50).Draw(t, "keys") {
					key, version := pods(3)(i), keytable.Version{ResourceVersion: strconv.Itoa(i)}
					table.Set(key, version, generation)
					want[key], marks[key] = version, generation
				}
			},
			"shrink": func(t *rapid.T) {
				left := rapid.IntRange(0, 50).Draw(t, "left")
				for i := left; i < 50; i++ {
					table.Delete(pods(3)(i))
					delete(want, pods(3)(i))
					delete(marks, pods(3)(i))
				}
				table.Verify()
			},
			"": func(t *rapid.T) {
				if got := maps.Collect(table.All()); !maps.Equal(got, want) || table.Len() != len(want) {
					t.Fatalf("the table is %v of %d, want %v", got, table.Len(), want)
				}
				for key, version := range want {
					if got, ok := table.Get(key); !ok || got != version {
						t.Fatalf("%q is %v, want %v", key, got, version)
					}
				}
				var unmarked []string
				for key := range want {
					if marks[key] < generation {
						unmarked = append(unmarked, key)
					}
				}
				if got := table.Unmarked(generation); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(unmarked))) {
					t.Fatalf("unmarked is %v, want %v", got, unmarked)
				}
			},
		})
		for key := range want {
			table.Delete(key)
		}
		if table.SizeBytes() != 0 {
			t.Fatalf("an empty table has %d bytes", table.SizeBytes())
		}
	})
}

func TestSameObject(t *testing.T) {
	v := func(uid types.UID) keytable.Version { return keytable.Version{UID: uid} }
	if !v("").SameObject(v("a")) || !v("a").SameObject(v("")) || !v("a").SameObject(v("a")) || v("a").SameObject(v("b")) {
		t.Fatal("only two UIDs that differ tell two objects apart")
	}
}

func TestNewest(t *testing.T) {
	newer := func(a, b string) string { // by length, then by text
		if len(a) != len(b) && len(a) > len(b) || len(a) == len(b) && a > b {
			return a
		}
		return b
	}
	table := keytable.New()
	require.Empty(t, table.Newest(newer))
	for i, version := range []string{"", "7", "12", "9", "x", "184467440737095516160", "18446744073709551615"} {
		table.Set(strconv.Itoa(i), keytable.Version{ResourceVersion: version}, 0)
	}
	require.Equal(t, "184467440737095516160", table.Newest(newer))
	table.Delete("5")
	require.Equal(t, "18446744073709551615", table.Newest(newer))
	table.Delete("6")
	require.Equal(t, "12", table.Newest(newer))
}
