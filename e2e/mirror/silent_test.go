package mirror

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A replica hears nothing from PostgreSQL any more, as behind a partition, while it has writes
// under way, and is told to end. It does not keep its units from the other one, which can write,
// for longer than Kubernetes lets it end.
func TestReplicaWithASilentDatabaseGivesUpItsUnits(t *testing.T) {
	ctx := testContext(t)
	r := newReplicas(ctx, t, 2)
	for _, w := range r.startWriters(ctx, t) {
		w.Resume(ctx)
	}
	var silent *replica
	require.Eventually(t, func() bool { // each has had its units for a while
		all := units(ctx, t)
		for _, u := range all {
			if u.holder == "" || time.Since(u.since) < lease {
				return false
			}
		}
		if owners(all) < 2 {
			return false
		}
		silent = r.replicaOf(t, all[0].holder)
		return true
	}, 2*time.Minute, 200*time.Millisecond)
	silent.cut(toDatabase, silence)
	time.Sleep(time.Second) // the writers go on, so that writes of the replica are under way, and wait for an answer
	began := time.Now()
	require.NoError(t, silent.running.Signal(syscall.SIGTERM))
	var taken, ended time.Duration
	for taken == 0 || ended == 0 {
		require.Less(t, time.Since(began), 2*time.Minute, "taken over after %s, ended after %s", taken, ended)
		of := func(u ownedUnit) bool { return u.holder == "" || r.replicaOf(t, u.holder) == silent }
		if taken == 0 && !slices.ContainsFunc(units(ctx, t), of) {
			taken = time.Since(began)
		}
		select {
		case <-silent.running.Exited():
			if ended == 0 {
				ended = time.Since(began)
			}
		default:
		}
		time.Sleep(100 * time.Millisecond)
	}
	silent.running = nil
	t.Logf("its units were taken over after %s, and it ended after %s", taken.Round(time.Millisecond), ended.Round(time.Millisecond))
	// It is 20 s for its last writes and its last checkpoint, and 25 s until it has ended. The rest
	// is for a slow machine: it was a minute, and more.
	require.Less(t, taken, 45*time.Second)
	require.Less(t, ended, time.Minute)
}
