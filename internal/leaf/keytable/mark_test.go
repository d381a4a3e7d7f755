package keytable_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// TestMarksOfManyGenerations begins more generations than a mark can count.
func TestMarksOfManyGenerations(t *testing.T) {
	const keys, exact = 40, 127
	table := keytable.New()
	marks := make([]uint64, keys)
	key := func(i int) string { return fmt.Sprintf("ns/%d", i) }
	for i := range keys {
		table.Set(key(i), versionOf(i), 0)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		generation := table.Begin()
		for range 3 {
			i := r.IntN(keys)
			mark := generation - min(r.Uint64N(exact), generation)
			again, _ := table.Show(key(i), keytable.Version{}, mark, mark)
			require.Equal(t, mark > 0 && marks[i] >= mark, again, "key %d, marked %d, again %d", i, marks[i], mark)
			marks[i] = max(marks[i], mark)
		}
		g := generation - min(r.Uint64N(exact), generation)
		var want []string
		for i, mark := range marks {
			if mark < g {
				want = append(want, key(i))
			}
		}
		require.ElementsMatch(t, want, table.Unmarked(g))
		// What an old generation showed may be forgotten, but then no key is swept.
		old := r.Uint64N(generation + 1)
		for _, unmarked := range table.Unmarked(old) {
			require.NotContains(t, marked(marks, key, old), unmarked)
		}
	}
	table.Verify()
}

func marked(marks []uint64, key func(int) string, generation uint64) (keys []string) {
	for i, mark := range marks {
		if mark >= generation {
			keys = append(keys, key(i))
		}
	}
	return keys
}

// TestSweepWhileItChanges changes the table between the parts of a sweep: keys
// that stay unmarked are returned, and once.
func TestSweepWhileItChanges(t *testing.T) {
	for _, mask := range masks[:4] {
		t.Run(mask.name, func(t *testing.T) {
			keys := min(mask.keys, 1500)
			if keytable.Invariants || raced {
				keys /= 10
			}
			table := keytable.NewColliding(mask.mask)
			r := rand.New(rand.NewPCG(1, mask.mask))
			for i := range keys {
				table.Set(pods(3)(i), versionOf(i), 0)
			}
			generation := table.Begin()
			returned, touched, added := map[string]int{}, map[string]bool{}, keys
			parts := 0
			for cursor := keytable.Cursor(0); ; parts++ {
				var part []string
				part, cursor = table.UnmarkedFrom(cursor, generation, keys/40)
				for _, key := range part {
					returned[key]++
				}
				if cursor == 0 {
					break
				}
				for range keys / 10 * min(1, max(0, 20-parts)) { // so that segments split
					table.Set(pods(3)(added), versionOf(added), generation*uint64(r.IntN(2)))
					touched[pods(3)(added)] = true
					added++
				}
				for range keys / 60 {
					key := pods(3)(r.IntN(keys))
					touched[key] = true
					if r.IntN(2) == 0 {
						table.Delete(key)
					} else {
						table.Show(key, keytable.Version{}, generation, generation)
					}
					table.Set(pods(3)(r.IntN(keys)), versionOf(r.IntN(keys)), 0)
				}
			}
			for i := range keys {
				if key := pods(3)(i); !touched[key] && returned[key] != 1 {
					t.Fatalf("%s is returned %d times, in %d parts", key, returned[key], parts)
				}
			}
			for key, times := range returned {
				require.Equal(t, 1, times, key)
			}
		})
	}
}

// TestWalkEnds walks tables that become empty, or others, between its parts.
func TestWalkEnds(t *testing.T) {
	table := keytable.New()
	keys, next := table.KeysFrom(0, 1)
	require.Empty(t, keys)
	require.Zero(t, next)
	fill := func(n int) {
		for i := range n {
			table.Set(random(i), versionOf(i), 0)
		}
	}
	const filled = 4000
	fill(filled)
	keys, next = table.KeysFrom(0, 500)
	require.NotZero(t, next)
	require.InDelta(t, 500, len(keys), 150)
	for i := range filled {
		table.Delete(random(i))
	}
	_, end := table.KeysFrom(next, 1)
	require.Zero(t, end)
	fill(10)
	keys, end = table.KeysFrom(next, 1)
	for end != 0 {
		var more []string
		more, end = table.KeysFrom(end, 1)
		keys = append(keys, more...)
	}
	require.LessOrEqual(t, len(keys), 10)
}

// TestWalkOfWhatShrinks deletes all but a few keys between the parts of a walk: those are returned,
// and once.
func TestWalkOfWhatShrinks(t *testing.T) {
	const keys, left = 4000, 7
	for seed := range 20 {
		table := keytable.New()
		for i := range keys {
			table.Set(random(i), versionOf(i), 0)
		}
		returned := map[string]int{}
		part, cursor := table.KeysFrom(0, 100+seed*150)
		for _, key := range part {
			returned[key]++
		}
		for i := left; i < keys; i++ {
			table.Delete(random(i))
		}
		table.Verify()
		require.Less(t, table.SizeBytes(), int64(1000), "it has the form of a small table again")
		for cursor != 0 {
			part, cursor = table.KeysFrom(cursor, 1)
			for _, key := range part {
				returned[key]++
			}
		}
		for i := range left {
			require.Equal(t, 1, returned[random(i)], "%s", random(i))
		}
	}
}

// TestMarksOfGrowingTables grows and shrinks a table past the size from which on it has another
// form: the marks stay.
func TestMarksOfGrowingTables(t *testing.T) {
	table := keytable.New()
	for range 300 {
		table.Begin()
	}
	mark := func(i int) uint64 { return 300 - uint64(i%100) }
	for i := range 200 {
		table.Set(pods(3)(i), versionOf(i), mark(i))
	}
	for i := 5; i < 200; i++ {
		table.Delete(pods(3)(i))
	}
	for i := range 5 {
		require.True(t, table.Marked(pods(3)(i), mark(i)), i)
		require.False(t, table.Marked(pods(3)(i), mark(i)+1), i)
	}
	for i := 5; i < 60; i++ {
		table.Set(pods(3)(i), versionOf(i), mark(i))
	}
	table.Verify()
	for i := range 60 {
		require.True(t, table.Marked(pods(3)(i), mark(i)), i)
		require.False(t, table.Marked(pods(3)(i), mark(i)+1), i)
	}
}
