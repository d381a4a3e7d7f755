package watches_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// A server deletes several objects in one resource version: see informertest.Server.Expire. Where its
// watch breaks between their deletions, the next one tells of all, without a list. That holds wherever
// the watch breaks, once the informer has seen that versions have several deletions.
func TestWatchThatBreaksBetweenDeletionsOfOneVersion(t *testing.T) {
	broken := 0
	for bytes := 0; bytes < 3000; bytes += 100 {
		harness.BubbleRun(t, fmt.Sprint(bytes), informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(9)...)
			r := &harness.Recorder{}
			harness.Settled(w, informer.InformerConfig{Handler: r})
			require.NoError(t, w.Expire(harness.Pods, "a", "0000", "0001"))
			synctest.Wait()
			w.RequireState(r)
			w.ResetRequests()

			heal := w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch"}}, Effect: informertest.Cut(bytes), Times: 1})
			require.NoError(t, w.Expire(harness.Pods, "a", "0002", "0003", "0004", "0005"))
			synctest.Wait()
			if deleted := 9 - 2 - len(r.State()); deleted > 0 && deleted < 4 {
				broken++
			}
			heal()
			time.Sleep(30 * time.Second)
			w.RequireState(r)
			require.Empty(t, w.Lists())
		})
	}
	require.Greater(t, broken, 3, "watches that broke between the deletions")
}
