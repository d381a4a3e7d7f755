package watches_test

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// A watch from no version begins with the objects that there are, in no order. It says
// nothing about where a later watch could go on: the set is listed again.
func TestWatchFromNoVersionIsNotResumed(t *testing.T) {
	for _, version := range []string{"", "0"} {
		harness.SynctestRun(t, version, func(t *testing.T) {
			lw := &harness.Tap{OnList: harness.Lists(harness.List(version, ""))}
			lw.OnWatch = harness.Watches(func() (watch.Interface, error) {
				return harness.Stream(true, watch.Event{Type: watch.Added, Object: harness.Pod("a/1", "7")}, watch.Event{Type: watch.Added, Object: harness.Pod("a/2", "3")}), nil
			}, harness.Open())
			var r harness.Recorder
			i := harness.Follow(nil, informer.InformerConfig{ListerWatcher: lw, Handler: &r})
			defer harness.Start(i.RunWithContext)()
			harness.Sleep(time.Minute)
			require.Equal(t, []string{"add a/1", "add a/2"}, r.Events()[:2])
			require.Equal(t, []string{"list rv= limit=500", "watch rv=" + version, "list rv= limit=500", "watch rv=" + version}, lw.Requests())
			require.Equal(t, version, i.LastSyncResourceVersion())
		})
	}
}

// Only watches that break without an event count as broken in a row: after an event, the
// next one that breaks is the first again, and mended by a watch.
func TestEventEndsARowOfBrokenWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := apierrors.NewInternalError(errors.New("broken"))
		lw := &harness.Tap{OnList: harness.Lists(harness.List("5", "")), OnWatch: harness.Watches(
			harness.Broken(fails),
			harness.Broken(fails, watch.Event{Type: watch.Added, Object: harness.Pod("a/1", "6")}),
			harness.Broken(fails, watch.Event{Type: watch.Added, Object: harness.Pod("a/2", "7")}),
			harness.Open(),
		)}
		var r harness.Recorder
		i := harness.Follow(nil, informer.InformerConfig{ListerWatcher: lw, Handler: &r})
		defer harness.Start(i.RunWithContext)()
		harness.Sleep(time.Minute)
		// The last event of each is told again: its version may have more.
		require.Equal(t, []string{"list rv= limit=500", "watch rv=5", "watch rv=5", "watch rv=5", "watch rv=6"}, lw.Requests())
		require.Equal(t, []string{"add a/1", "add a/2"}, r.Events())
	})
}

// With an ExtraStore, events are decoded before they are queued. One that cannot be
// decoded is lost, and the list that follows the watch delivers it.
func TestUndecodableEventIsDeliveredByTheListAfterTheWatch(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		var r harness.Recorder
		harness.Settled(w, informer.InformerConfig{ExampleObject: &corev1.Pod{}, Handler: &r, ExtraStore: harness.Nothing{}})
		w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch"}}, Effect: informertest.Mistyped(1), Times: 1})
		w.UpdatePod("a/1", "changed")
		time.Sleep(10 * time.Second)
		require.Equal(t, []string{"add a/1 initial"}, r.Events())
		w.CloseClientConnections()
		harness.Sleep(10 * time.Second)
		w.RequireState(&r)
		require.Len(t, w.Lists(), 2)
	})
}

// A watch whose version the server would not confirm is broken after 75 s
// of silence, sooner than any other.
func TestUnprovenWatchIsBrokenAfter75Seconds(t *testing.T) {
	var unanswered atomic.Bool
	wrap := harness.Before(func(rw http.ResponseWriter, r *http.Request) bool {
		switch {
		case !unanswered.Load():
			return true
		case harness.IsWatch(r): // as one from a version that the server does not have
			rw.Header().Set("Content-Type", "application/json")
			_ = http.NewResponseController(rw).Flush()
			<-r.Context().Done()
		default:
			http.Error(rw, "broken", http.StatusInternalServerError)
		}
		return false
	})
	harness.Bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		var f harness.Failures
		harness.Running(w, informer.InformerConfig{Handler: &harness.Recorder{}, ErrorHandler: f.Handle})
		time.Sleep(2 * time.Minute) // a bookmark has come
		synctest.Wait()
		unanswered.Store(true)
		w.CloseClientConnections()
		harness.Sleep(5 * time.Minute)
		errs := f.Errors()
		var stalled *informer.StallError
		for _, err := range errs {
			if errors.As(err, &stalled) {
				break
			}
		}
		require.NotNil(t, stalled, "reported %v", errs)
		require.Equal(t, 75*time.Second, stalled.Silence)
	})
}
