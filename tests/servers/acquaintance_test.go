package servers_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// startRecorded starts n informers of one server, which end with the test, and returns their
// recorders when they watch.
func startRecorded(w *harness.World, n int) (recorders []*harness.Recorder) {
	factory, err := informer.NewDynamicListerWatcherFactory(rest.CopyConfig(w.Config()))
	require.NoError(w.T, err)
	for range n {
		r := &harness.Recorder{}
		recorders = append(recorders, r)
		w.T.Cleanup(harness.Start(harness.Follow(w, informer.InformerConfig{ListerWatcher: factory.ForResource("", harness.Pods), Handler: r}).RunWithContext))
	}
	time.Sleep(time.Minute)
	return recorders
}

// whileAway has the server be away for a minute, and returns what it was asked in the minute after
// its return, by verb. Meanwhile is called shortly before that.
func whileAway(w *harness.World, meanwhile func()) map[string]int {
	heal := w.Inject(informertest.Fault{Effect: informertest.Refuse()})
	time.Sleep(time.Minute)
	meanwhile()
	w.ResetRequests()
	heal()
	time.Sleep(time.Minute)
	verbs := map[string]int{}
	for _, r := range w.Requests() {
		if r.Path == "/version" {
			continue
		}
		verbs[r.Verb]++
	}
	return verbs
}

// After an outage, one informer asks for all whether the server still is the one that they know.
func TestOneInformerAsksForAllWhichClusterItIs(t *testing.T) {
	for name, options := range map[string]informertest.Options{"over one connection": {TLS: true}, "without TLS": {}} {
		harness.BubbleRun(t, name, options, func(t *testing.T, w *harness.World) {
			w.CreateKubeSystem()
			w.CreatePods(harness.Keys(5)...)
			recorders := startRecorded(w, 50)
			for outage := range 3 {
				verbs := whileAway(w, func() { w.UpdatePod(harness.Keys(1)[0], time.Now().String()) })
				require.Equal(t, 50, verbs["watch"])
				if options.TLS {
					require.LessOrEqual(t, verbs["get"], 2, "the namespace kube-system")
				}
				if outage == 0 {
					require.LessOrEqual(t, verbs["list"], 2, "an object that is known")
				} else {
					require.Zero(t, verbs["list"], "the cluster is known")
				}
				w.RequireState(recorders...)
			}
		})
	}
}

// Informers that know no cluster yet find out together that their server was restored or replaced.
func TestAllInformersFindTheirServerRestored(t *testing.T) {
	for _, known := range []bool{false, true} {
		harness.Bubble(t, informertest.Options{TLS: true}, func(t *testing.T, w *harness.World) {
			w.CreateKubeSystem()
			w.CreatePods(harness.Keys(5)...)
			recorders := startRecorded(w, 20)
			if known {
				whileAway(w, func() {})
			}
			backup := w.Backup()
			w.CreatePods("b/later")
			w.UpdatePod(harness.Keys(1)[0], "later")
			time.Sleep(time.Minute)
			whileAway(w, func() { w.Restore(backup) })
			w.RequireState(recorders...)
			whileAway(w, func() { w.DeletePods(harness.Keys(5)...) })
			w.RequireState(recorders...)
		})
	}
}

// The server is restored while informers come back. Those that have come back, and those that
// follow, have to notice.
func TestServerRestoredWhileInformersComeBack(t *testing.T) {
	for watches := range 12 {
		var asked atomic.Int64
		restore := make(chan struct{}, 1)
		wrap := harness.Before(func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.RawQuery, "watch=") && asked.Add(1) == int64(watches+1) {
				restore <- struct{}{}
			}
			return true
		})
		harness.Bubble(t, informertest.Options{TLS: true, Wrap: wrap}, func(t *testing.T, w *harness.World) {
			restore = make(chan struct{}, 1) // of the bubble
			w.CreateKubeSystem()
			w.CreatePods(harness.Keys(5)...)
			asked.Store(1000)
			recorders := startRecorded(w, 10)
			backup := w.Backup()
			w.CreatePods("b/later")
			w.UpdatePod(harness.Keys(1)[0], "later")
			time.Sleep(time.Minute)
			heal := w.Inject(informertest.Fault{Effect: informertest.Refuse()})
			time.Sleep(time.Minute)
			asked.Store(0)
			heal()
			select {
			case <-restore:
			case <-time.After(5 * time.Second): // there are not so many watches
			}
			w.Restore(backup)
			w.CloseClientConnections()
			time.Sleep(3 * time.Minute)
			w.RequireState(recorders...)
		})
	}
}
