package keytable_test

import (
	"math"
	"sync"
	"testing"

	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// TestReaders reads from many goroutines at once: go test -race finds what writes.
func TestReaders(t *testing.T) {
	table := keytable.New()
	const keys = 3000
	for i := range keys {
		table.Set(pods(3)(i), versionOf(i), 0)
	}
	generation := table.Begin()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range keys {
				key, v := pods(3)(i), versionOf(i)
				if got, ok := table.Get(key); !ok || got != v || !table.Compare(key, v).SameVersion || table.Marked(key, generation) {
					t.Error(key, "is not there, or another")
				}
			}
			n := 0
			for range table.All() {
				n++
			}
			unmarked, _ := table.UnmarkedFrom(0, generation, math.MaxInt)
			if n != keys || len(unmarked) != keys || table.Len() != keys || table.SizeBytes() == 0 {
				t.Error("keys are missing")
			}
		})
	}
	wg.Wait()
}
