package keytable_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// TestLoader loads keys of every kind, some of them twice. The later version
// counts. They are lent, and so are the texts of their versions.
func TestLoader(t *testing.T) {
	for _, mask := range masks {
		t.Run(mask.name, func(t *testing.T) {
			keys := mask.keys
			if testing.Short() || keytable.Invariants || raced {
				keys /= 20
			}
			m := &model{Rand: rand.New(rand.NewPCG(1, mask.mask)), table: keytable.NewColliding(mask.mask), versions: map[string]keytable.Version{}}
			loader := keytable.NewLoader(m.table)
			for len(m.versions) < keys {
				key, v := m.newKey(), m.version()
				m.versions[key] = v
				overwritten(key, func(key string) {
					overwritten(v.ResourceVersion, func(rv string) {
						overwritten(string(v.UID), func(uid string) {
							b := keytable.Version{ResourceVersion: rv, UID: types.UID(uid)}.Binary()
							loader.Set(key, &b)
							b = keytable.Binary{}
						})
					})
				})
			}
			loader.Flush()
			m.table.Verify()
			require.Equal(t, len(m.versions), m.table.Len())
			require.True(t, maps.Equal(m.versions, maps.Collect(m.table.All())))
			loader.Flush()
			require.Equal(t, len(m.versions), m.table.Len(), "and nothing again")
		})
	}
}

// TestLendAllocations walks tables of two sizes: what is allocated is for the parts
// of the walk, not for the keys.
func TestLendAllocations(t *testing.T) {
	if keytable.Invariants {
		t.Skip("the checks allocate, and take long")
	}
	table := keytable.New()
	for i := range 20_000 {
		table.Set(pods(10)(i), versionOf(i), 0)
	}
	table.Set("odd", keytable.Version{ResourceVersion: "odd", UID: "odd"}, 0)
	parts, keys := 0, 0
	allocs := testing.AllocsPerRun(5, func() {
		parts, keys = 0, 0
		for cursor := keytable.Cursor(0); ; parts++ {
			cursor = table.LendFrom(cursor, 1000, func(string, *keytable.Binary) { keys++ })
			if cursor == 0 {
				break
			}
		}
	})
	require.Equal(t, table.Len(), keys)
	require.Less(t, allocs, float64(10*(parts+1)))
}

// TestBinary turns versions of every kind to numbers and back.
func TestBinary(t *testing.T) {
	for _, rv := range oddVersions {
		for _, uid := range oddUIDs {
			v := keytable.Version{ResourceVersion: rv, UID: uid}
			b := v.Binary()
			require.Equal(t, v, b.Version())
			require.Equal(t, b.IsNumber, rv == fmt.Sprint(b.Number))
			require.False(t, b.IsNumber && b.Text != "" || b.IsUUID && b.UID != "", "both")
		}
	}
}
