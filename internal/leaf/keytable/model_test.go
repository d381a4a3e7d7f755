package keytable_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// masks are the bits of a hash that tell keys apart, and how many keys the test
// can afford with them.
var masks = []struct {
	name string
	mask uint64
	keys int
}{
	{"all", ^uint64(0), 5000},
	{"none", 0, 400},
	{"slots only", 0xffff, 2500},
	{"one slot", ^uint64(0xffff), 2500},
	{"three bits", 7 << 61, 1500},
	{"every second bit", 0x5555555555555555, 2500},
}

// model is a plain map that a table must be like.
type model struct {
	*rand.Rand
	table      *keytable.Table
	versions   map[string]keytable.Version
	marks      map[string]uint64
	generation uint64
	keys       []string
}

// key is some key of any kind.
func (m *model) newKey() string {
	name := [...]func() string{
		func() string { return pods(1 + m.IntN(4))(m.IntN(4000)) },
		func() string { return random(m.IntN(2000)) },
		func() string { return uuids(m.IntN(2000)) },
		func() string { return fmt.Sprintf("node-%d", m.IntN(1000)) },
		func() string { return fmt.Sprintf("system:node:%d", m.IntN(100)) },
		func() string { return fmt.Sprintf("ns-%d/kube-root-ca.crt", m.IntN(500)) },
		func() string { return fmt.Sprintf("Ns-%d/Älter-%d", m.IntN(20), m.IntN(20)) },
		func() string { return strings.Repeat("x", m.IntN(700)) },
		func() string { return strings.Repeat("n", m.IntN(400)) + "/" + strings.Repeat("a-", m.IntN(300)) },
		func() string { return "a-b/c-d/" + strings.Repeat("-", m.IntN(4)) },
		func() string { return "ns/" + letters(m.Uint64N(400), m.IntN(7)) },
		func() string { return string([]byte{byte(m.IntN(256)), '-', byte(m.IntN(256))}) },
	}
	return name[m.IntN(len(name))]()
}

var oddVersions = []string{
	"", "0", "00", "007", "+5", "-1", " 1", "1 ", "9", "255", "256", "18446744073709551615", "18446744073709551616",
	"18446744073709551609", "18446744073709551620", "28446744073709551615", "99999999999999999999", "340282366920938463463374607431768211455",
	"1.5", "0x10", "opaque", strings.Repeat("v", 64), strings.Repeat("v", 65), strings.Repeat("1", 3000),
}

var oddUIDs = []types.UID{
	"", "u", "3b0a6d1e", "3B0A6D1E-0000-4000-8000-000000000000", "3b0a6d1e-0000-4000-8000-00000000000g", "3b0a6d1e00000-4000-8000-000000000000",
	"3b0a6d1e-0000-4000-8000-0000000000000", "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
	types.UID(strings.Repeat("u", 64)), types.UID(strings.Repeat("u", 65)), types.UID(strings.Repeat("u", 1000)),
}

func (m *model) version() (v keytable.Version) {
	v = versionOf(m.IntN(1 << 30))
	if m.IntN(3) == 0 {
		v.ResourceVersion = fmt.Sprint(m.Uint64() >> m.IntN(64))
	}
	if m.IntN(8) == 0 {
		v.ResourceVersion = oddVersions[m.IntN(len(oddVersions))]
	}
	if m.IntN(8) == 0 {
		v.UID = oddUIDs[m.IntN(len(oddUIDs))]
	}
	return v
}

// overwritten lends key to use, and destroys it afterwards.
func overwritten(key string, use func(string)) {
	lent := []byte(key)
	use(borrow(lent))
	for i := range lent {
		lent[i] = '!'
	}
}

// step does one random thing. growing is how often of 10 a new key comes.
func (m *model) step(t *testing.T, growing int) {
	key := m.newKey()
	if len(m.keys) > 0 && m.IntN(10) >= growing {
		key = m.keys[m.IntN(len(m.keys))]
	}
	mark := m.generation - min(m.Uint64N(4), m.generation)
	if m.IntN(10) == 0 {
		mark = m.Uint64N(m.generation + 1)
	}
	_, known := m.versions[key]
	switch op := m.IntN(10); {
	case op < 4:
		v := m.version()
		if !known {
			m.keys = append(m.keys, key)
		}
		m.versions[key], m.marks[key] = v, max(m.marks[key], mark)
		overwritten(key, func(key string) {
			overwritten(v.ResourceVersion, func(rv string) {
				overwritten(string(v.UID), func(uid string) {
					m.table.Set(key, keytable.Version{ResourceVersion: rv, UID: types.UID(uid)}, mark)
				})
			})
		})
	case op < 6:
		again, recent := known && mark > 0 && m.marks[key] >= mark, m.generation-mark < 127
		overwritten(key, func(key string) {
			got, c := m.table.Show(key, keytable.Version{}, mark, mark)
			if c.Known != known || got != again && (got || recent) {
				t.Fatalf("Show of %q again: %v %v", key, got, c)
			}
		})
		if known {
			m.marks[key] = max(m.marks[key], mark)
		}
	case op < 8 && (growing < 5 || m.IntN(4) == 0):
		overwritten(key, func(key string) {
			if m.table.Delete(key) != known {
				t.Fatalf("Delete of %q: it was there: %v", key, known)
			}
		})
		delete(m.versions, key)
		delete(m.marks, key)
		m.keys = slices.DeleteFunc(m.keys, func(k string) bool { return known && k == key })
	default:
		m.requireVersion(t, key)
		m.requireMark(t, key)
	}
}

func (m *model) requireMark(t *testing.T, key string) {
	t.Helper()
	generation := m.generation - min(m.Uint64N(100), m.generation)
	if _, known := m.versions[key]; m.table.Marked(key, generation) != (known && m.marks[key] >= generation) {
		t.Fatalf("%q with mark %d is not, or is, marked by %d", key, m.marks[key], generation)
	}
}

func (m *model) requireVersion(t *testing.T, key string) {
	t.Helper()
	want, known := m.versions[key]
	got, ok := m.table.Get(key)
	if ok != known || got != want {
		t.Fatalf("%q is %v %v, want %v %v", key, got, ok, want, known)
	}
	for _, v := range []keytable.Version{want, m.version(), {ResourceVersion: want.ResourceVersion, UID: m.version().UID}, {UID: want.UID}} {
		comparison := keytable.Comparison{}
		if known {
			comparison = keytable.Comparison{
				Known: true, SameVersion: v.ResourceVersion == want.ResourceVersion, SameObject: v.SameObject(want), Identified: want.UID != "",
			}
		}
		if got := m.table.Compare(key, v); got != comparison {
			t.Fatalf("%v compares to %v as %+v", v, want, got)
		}
	}
}

// requireEqual holds the whole table against the map.
func (m *model) requireEqual(t *testing.T) {
	t.Helper()
	m.table.Verify()
	if got := maps.Collect(m.table.All()); !maps.Equal(got, m.versions) || m.table.Len() != len(m.versions) {
		t.Fatalf("the table has %d of %d keys, or others", m.table.Len(), len(m.versions))
	}
	var want []string
	generation := m.generation - min(m.Uint64N(100), m.generation)
	for key, mark := range m.marks {
		if mark < generation {
			want = append(want, key)
		}
	}
	slices.Sort(want)
	if got := slices.Sorted(slices.Values(m.table.Unmarked(generation))); !slices.Equal(got, want) {
		t.Fatalf("%d keys are unmarked by %d, want %d", len(got), generation, len(want))
	}
	var keys, unmarked []string
	versions := map[string]keytable.Version{}
	for cursor, part := keytable.Cursor(0), []string(nil); ; {
		part, cursor = m.table.UnmarkedFrom(cursor, generation, 50)
		unmarked = append(unmarked, part...)
		if cursor == 0 {
			break
		}
	}
	for cursor, part := keytable.Cursor(0), []string(nil); ; {
		part, cursor = m.table.KeysFrom(cursor, 50)
		keys = append(keys, part...)
		if cursor == 0 {
			break
		}
	}
	for cursor := keytable.Cursor(0); ; {
		cursor = m.table.LendFrom(cursor, 50, func(key string, v *keytable.Binary) {
			if _, twice := versions[key]; twice {
				t.Fatalf("%q comes twice", key)
			}
			lent := v.Version()
			versions[strings.Clone(key)] = keytable.Version{
				ResourceVersion: strings.Clone(lent.ResourceVersion), UID: types.UID(strings.Clone(string(lent.UID))),
			}
		})
		if cursor == 0 {
			break
		}
	}
	texts := keytable.Texts{ResourceVersions: []string{}}
	for cursor := keytable.Cursor(0); ; {
		if cursor = m.table.TextsFrom(cursor, 50, &texts); cursor == 0 {
			break
		}
	}
	for i, key := range texts.Keys {
		if want, ok := m.versions[key]; !ok || want.ResourceVersion != texts.ResourceVersions[i] {
			t.Fatalf("%q is told with version %q, want %q", key, texts.ResourceVersions[i], want.ResourceVersion)
		}
	}
	lent, times := keytable.Texts{ResourceVersions: []string{}, Lent: true}, map[string]int{}
	for cursor := keytable.Cursor(0); ; {
		cursor = m.table.TextsFrom(cursor, 50, &lent)
		for i, key := range lent.Keys {
			if want, ok := m.versions[key]; !ok || want.ResourceVersion != lent.ResourceVersions[i] {
				t.Fatalf("%q is lent with version %q, want %q", key, lent.ResourceVersions[i], want.ResourceVersion)
			}
			times[strings.Clone(key)]++
		}
		if cursor == 0 {
			break
		}
	}
	if len(times) != len(m.versions) {
		t.Fatalf("%d of %d keys are lent", len(times), len(m.versions))
	}
	slices.Sort(texts.Keys)
	if !slices.Equal(texts.Keys, slices.Sorted(maps.Keys(m.versions))) {
		t.Fatalf("there are texts of %d of %d keys, or of others", len(texts.Keys), len(m.versions))
	}
	slices.Sort(keys)
	slices.Sort(unmarked)
	if !slices.Equal(unmarked, want) || !maps.Equal(versions, m.versions) || !slices.Equal(keys, slices.Sorted(maps.Keys(m.versions))) {
		t.Fatalf("in parts there are %d of %d keys and %d of %d unmarked, or others", len(keys), len(m.versions), len(unmarked), len(want))
	}
}

// TestRandom does random things to a table and to a plain map, also where hashes
// collide: the table grows, is used, and shrinks to nothing.
func TestRandom(t *testing.T) {
	for _, mask := range masks {
		t.Run(mask.name, func(t *testing.T) {
			t.Parallel()
			keys := mask.keys
			if testing.Short() || keytable.Invariants || raced {
				keys /= 20
			}
			for seed := range uint64(1) {
				m := &model{
					Rand:     rand.New(rand.NewPCG(seed, mask.mask)),
					table:    keytable.NewColliding(mask.mask),
					versions: map[string]keytable.Version{}, marks: map[string]uint64{},
				}
				m.table.Begin()
				m.generation = 1
				for i := 0; len(m.keys) < keys; i++ {
					m.step(t, 9)
					if i%(keys/20) == 0 {
						m.generation = m.table.Begin()
					}
				}
				m.requireEqual(t)
				for range 2 * keys {
					m.step(t, 3)
				}
				m.requireEqual(t)
				for i, key := range slices.Sorted(maps.Keys(m.versions)) {
					if i%(keys/8+1) == 0 {
						m.table.Verify()
					}
					if !m.table.Delete(key) {
						t.Fatalf("%q is not there", key)
					}
				}
				if m.table.Len() != 0 || m.table.SizeBytes() != 0 {
					t.Fatalf("an empty table has %d keys and %d bytes", m.table.Len(), m.table.SizeBytes())
				}
			}
		})
	}
}
