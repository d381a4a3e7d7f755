package status_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// holdingUp is an informer whose handler takes a second for each object and whose Budget has room for
// about a hundred of them, so that the informer mostly waits for the handler before it reads on.
func holdingUp(w *harness.World, mode informer.ListMode, failures *harness.Failures) informer.ResourceVersionInformer {
	return harness.RunningAuto(w, informer.InformerConfig{
		ListMode:     mode,
		Budget:       informer.NewBudget(64 << 10),
		Handler:      informer.ResourceEventHandlerFuncs{AddFunc: func(interface{}) { time.Sleep(time.Second) }},
		ErrorHandler: failures.Handle,
	})
}

// requireNoOutage looks for a while whether the server seems to be away, or reading to fail.
func requireNoOutage(t *testing.T, i informer.ResourceVersionInformer, lasts time.Duration) {
	t.Helper()
	const each = 100 * time.Millisecond
	for range lasts / each {
		time.Sleep(each)
		s := i.Status()
		require.Contains(t, []informer.ConditionReason{
			informer.ReasonListing, informer.ReasonHandlerSlow, informer.ReasonBudgetFull, informer.ReasonCurrent,
		}, s.Condition.Reason, "%+v", s.Condition)
		require.NoError(t, s.LastError)
		require.Zero(t, s.FailingSince)
	}
}

// A server ends a watch-list at the time that it was asked for, also where a slow handler has held up
// the reading until then. The server is there.
func TestWatchListThatHasLastedItsTimeIsNoOutage(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3000)...)
		var failures harness.Failures
		i := holdingUp(w, informer.ListModeWatchList, &failures)
		requireNoOutage(t, i, 51*time.Minute)
		require.True(t, i.HasSynced())
		require.NotEmpty(t, failures.Errors())
		for _, err := range failures.Errors() {
			require.ErrorContains(t, err, "unexpected EOF")
			require.ErrorContains(t, err, "the watch was asked to last for no longer")
		}
	})
}

// The same holds where conversion takes the server long, and nothing of the informer's is slow.
func TestSlowWatchListThatHasLastedItsTimeIsNoOutage(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(1000)...)
		w.Inject(informertest.Fault{Match: requests("watch-list"), Effect: informertest.Delay(5 * time.Second)})
		var failures harness.Failures
		i := harness.RunningAuto(w, informer.InformerConfig{Handler: &harness.Recorder{}, ErrorHandler: failures.Handle})
		requireNoOutage(t, i, 62*time.Minute)
		require.True(t, i.HasSynced())
		require.NotEmpty(t, failures.Errors())
	})
}

// A watch-list that ends right after its initial events has told something, however late they were read.
func TestWatchListThatEndsWithItsInitialEventsIsNoFailure(t *testing.T) {
	events := harness.AnswerOnce(harness.IsWatchList, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}`)
	})
	harness.Bubble(t, informertest.Options{Wrap: events}, func(t *testing.T, w *harness.World) {
		var failures harness.Failures
		i := harness.RunningAuto(w, informer.InformerConfig{ListMode: informer.ListModeWatchList, Handler: &harness.Recorder{}, ErrorHandler: failures.Handle})
		requireNoOutage(t, i, time.Minute)
		require.True(t, i.HasSynced())
		require.Empty(t, failures.Errors())
		w.RequireOneWatch()
	})
}

// An answer may be cut because the informer has not read it for minutes: what stands between, or the
// server, gives up such a client. That is not said of the server.
func TestAnswerThatIsCutWhileReadingIsHeldUpIsNoOutage(t *testing.T) {
	for _, mode := range []informer.ListMode{informer.ListModeWatchList, informer.ListModePaged, informer.ListModeFull} {
		harness.BubbleRun(t, fmt.Sprint(mode), informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(1000)...)
			var failures harness.Failures
			i := holdingUp(w, mode, &failures)
			requireNoOutage(t, i, 3*time.Minute)
			w.CloseClientConnections()
			requireNoOutage(t, i, 20*time.Minute)
			require.True(t, i.HasSynced())
			require.ErrorContains(t, failures.One(t), "the reading was held up for")
		})
	}
	harness.BubbleRun(t, "watch", informertest.Options{}, func(t *testing.T, w *harness.World) {
		var failures harness.Failures
		i := holdingUp(w, informer.ListModePaged, &failures)
		time.Sleep(time.Minute)
		require.True(t, i.HasSynced())
		w.CreatePods(harness.Keys(1000)...)
		requireNoOutage(t, i, 3*time.Minute)
		w.CloseClientConnections()
		requireNoOutage(t, i, 20*time.Minute)
		require.Equal(t, 1000, i.Status().Objects)
		require.ErrorContains(t, failures.One(t), "the reading was held up for")
	})
}

// A connection that breaks while the informer waits for the server counts at once. So does a server
// that is away, as soon as an informer that was held up asks it again.
func TestBreaksThatCountAsOutage(t *testing.T) {
	for _, mode := range []informer.ListMode{informer.ListModeWatchList, informer.ListModePaged, informer.ListModeFull} {
		for _, held := range []bool{false, true} {
			harness.BubbleRun(t, fmt.Sprint(mode, " held up ", held), informertest.Options{}, func(t *testing.T, w *harness.World) {
				w.CreatePods(harness.Keys(1000)...)
				var failures harness.Failures
				var i informer.ResourceVersionInformer
				within := 50 * time.Millisecond
				if held {
					i = holdingUp(w, mode, &failures)
					within = 10 * time.Minute // when what has arrived is handled
				} else {
					w.Inject(informertest.Fault{Match: requests("watch-list"), Effect: informertest.Delay(5 * time.Second)})
					w.Inject(informertest.Fault{Match: requests("list"), Effect: informertest.Slow(10)})
					i = harness.RunningAuto(w, informer.InformerConfig{ListMode: mode, Handler: &harness.Recorder{}, ErrorHandler: failures.Handle})
				}
				time.Sleep(3*time.Minute + 2*time.Second)
				heal := w.Inject(informertest.Fault{Effect: informertest.Refuse()})
				w.CloseClientConnections()
				for passed := time.Duration(0); i.Status().Condition.Reason != informer.ReasonServerUnreachable; passed += 10 * time.Millisecond {
					require.Less(t, passed, within)
					time.Sleep(10 * time.Millisecond)
				}
				require.Error(t, i.Status().LastError)
				time.Sleep(5 * time.Minute)
				require.Equal(t, informer.ReasonServerUnreachable, i.Status().Condition.Reason)
				heal()
				time.Sleep(2 * time.Minute)
				require.NotEqual(t, informer.ReasonServerUnreachable, i.Status().Condition.Reason)
			})
		}
	}
}
