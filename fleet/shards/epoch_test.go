package shards_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An owner stands still in the middle of its writes. The Leases are deleted, and the next owners
// know nothing of the epochs before.
func TestEpochsDoNotRepeatAfterLeasesAreDeleted(t *testing.T) {
	staged(t, func(t *testing.T, p *play) {
		frozen := p.alive[0]
		frozen.near.set(func(n *network) { n.reading = true })
		frozen.freeze()
		p.alive[1].crash()
		for range 50 {
			p.write()
		}
		p.wipe()
		p.retire(frozen)
		p.launch()
		p.launch()
		time.Sleep(time.Minute)
		for range 50 {
			p.write()
		}
		p.compare()
		frozen.heal()
		time.Sleep(time.Minute)
		require.Empty(t, p.difference(), "what the frozen one wanted to write")
		require.Positive(t, p.db.refused)
		p.alive = append(p.alive, frozen)
		require.Empty(t, p.uncovered())
	})
}
