package status_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/statuspage"
	"github.com/rvinformer/informer/tests/harness"
)

// A quiet server that sends no bookmarks is no reason to restart a process: with all defaults, its
// watches last longer than anything else that is silent.
func TestQuietServerWithoutBookmarksIsLive(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		w.Inject(informertest.Fault{Match: requests("watch"), Effect: informertest.NoBookmarks()})
		i := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}, ListMode: informer.ListModePaged})
		page := statuspage.New()
		page.Add(statuspage.Labels{Resource: "pods"}, i)
		w.Run(i)
		for range 24 * 60 {
			time.Sleep(time.Minute)
			require.NoError(t, page.Live(nil))
		}
		require.Greater(t, len(w.Requests()), 24, "watches have ended meanwhile")
	})
}
