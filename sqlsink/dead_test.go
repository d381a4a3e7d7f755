package sqlsink_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rvinformer/informer"
	"github.com/stretchr/testify/require"
)

// A row that is refused too often is a dead letter. Its informer goes on, and a restart knows the
// dead letter, whether it lists or goes on from the checkpoint.
func TestDeadLetterIsKnownAfterARestart(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		cluster := newCluster(t, 20)
		begin := func() running { return startWith(t, cluster, address, 2) }
		r := begin()
		path, isFile := strings.CutPrefix(address, "sqlite:")
		if isFile {
			execute(t, path, `CREATE TRIGGER beware BEFORE INSERT ON objects WHEN new.name = 'bad' BEGIN SELECT RAISE(ABORT, 'not this one'); END`)
		} else {
			query(t, address, `ALTER TABLE objects ADD CONSTRAINT not_this_one CHECK (name <> 'bad')`)
		}
		create(t, cluster, "bad")
		create(t, cluster, "good")
		letters := func() []informer.DeadLetter { return r.informer.DeadLetters() }
		require.Eventually(t, func() bool { return len(letters()) == 1 }, soon, 10*time.Millisecond)
		before := letters()[0]
		require.Equal(t, "ns/bad", before.Key)
		for _, compacted := range []bool{false, true} {
			require.NoError(t, r.stop())
			if compacted {
				create(t, cluster, "later")
				cluster.Compact()
			}
			r = begin()
			require.Eventually(t, func() bool { return r.informer.Status().Synced }, soon, 10*time.Millisecond)
			require.Len(t, letters(), 1)
			require.Equal(t, before.Key, letters()[0].Key)
		}
		require.NoError(t, r.stop())
	})
}
