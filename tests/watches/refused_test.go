package watches_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/informertest/oracle"
	"github.com/rvinformer/informer/objectcache"
	"github.com/rvinformer/informer/tests/harness"
)

// refusing refuses watches with an error while it is set, and counts the requests.
type refusing struct {
	gateway
	with atomic.Pointer[apierrors.StatusError]
}

func (f *refusing) wrap(server http.Handler) http.Handler {
	f.after = 24 * time.Hour
	return f.gateway.wrap(harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		status := f.with.Load()
		if status == nil || !harness.IsWatch(r) {
			return true
		}
		harness.AnswerStatus(w, status)
		return false
	})(server))
}

func refusal(code int) *apierrors.StatusError {
	return apierrors.NewGenericServerResponse(code, "get", harness.Pods.GroupResource(), "", "no", 0, false)
}

// requirePolled checks that changes are told within the time of a poll, and what the condition says.
func requirePolled(t *testing.T, w *harness.World, r *harness.Recorder, status func() informer.Status) {
	t.Helper()
	since := status().Condition.Since
	for n := range 5 {
		w.CreatePods(fmt.Sprintf("polled/%d", n))
		w.UpdatePod("a/0001", fmt.Sprint(n))
		time.Sleep(61 * time.Second)
		w.RequireState(r)
		require.Less(t, age(statusOf(status)), 61*time.Second)
		requireNotWatchable(t, since, status().Condition)
	}
	w.DeletePods("a/0002", "polled/3")
	time.Sleep(61 * time.Second)
	w.RequireState(r)
}

type statusOf func() informer.Status

func (s statusOf) Status() informer.Status { return s() }

func requireNotWatchable(t *testing.T, since time.Time, c informer.Condition) {
	t.Helper()
	require.Equal(t, informer.ReasonNotWatchable, c.Reason, "%+v", c)
	require.Equal(t, since, c.Since)
	require.Contains(t, c.Message, "lists take their place")
}

// A server that lists, and refuses each watch, is polled after five minutes of refusals, until it
// opens a watch.
func TestRefusedWatchesArePolled(t *testing.T) {
	for _, code := range []int{403, 404, 405, 406, 409, 415, 416, 500, 501} {
		for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeAuto} {
			var f refusing
			harness.BubbleRun(t, fmt.Sprintf("%d %v", code, mode), informertest.Options{Wrap: f.wrap}, func(t *testing.T, w *harness.World) {
				w.CreateKubeSystem()
				w.CreatePods(harness.Keys(4)...)
				var r harness.Recorder
				f.with.Store(refusal(code))
				i := harness.RunningAuto(w, informer.InformerConfig{Handler: &r, ListMode: mode})
				store := objectcache.NewSharedIndexInformerWithOptions(w.Lister(), &unstructured.Unstructured{}, objectcache.Options{Name: "pods", ListMode: mode, ErrorHandler: harness.IgnoreErrors})
				t.Cleanup(harness.Start(store.RunWithContext))
				time.Sleep(4 * time.Minute)
				w.CreatePods("late/1")
				require.NotEqual(t, informer.ReasonNotWatchable, i.Status().Condition.Reason)
				require.NotEqual(t, informer.ReasonCurrent, i.Status().Condition.Reason)
				time.Sleep(4 * time.Minute)
				requirePolled(t, w, &r, i.Status)
				require.Equal(t, informer.ReasonNotWatchable, store.Status().Condition.Reason)
				require.ElementsMatch(t, slices.Collect(keysOf(w.Versions())), store.GetStore().ListKeys())
				require.LessOrEqual(t, f.busiest(), oracle.Requests)

				f.with.Store(nil)
				time.Sleep(2 * time.Minute)
				lists := len(w.Lists())
				w.CreatePods("late/2")
				harness.Sleep(10 * time.Minute)
				w.RequireState(&r)
				require.Equal(t, informer.ReasonCurrent, i.Status().Condition.Reason)
				require.Len(t, w.Lists(), lists, "the watch tells")
			})
		}
	}
}

func keysOf(versions map[string]string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for key := range versions {
			if !yield(key) {
				return
			}
		}
	}
}

// What a list would meet as well leads to no list.
func TestRefusalsThatListsMeetAreNotPolled(t *testing.T) {
	for _, with := range []*apierrors.StatusError{
		refusal(401), refusal(408), refusal(502), refusal(503), refusal(504), apierrors.NewTooManyRequests("busy", 7), apierrors.NewServerTimeout(harness.Pods.GroupResource(), "watch", 7),
	} {
		var f refusing
		harness.BubbleRun(t, fmt.Sprint(with.ErrStatus.Code), informertest.Options{Wrap: f.wrap}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(4)...)
			f.with.Store(with)
			i := harness.Running(w, informer.InformerConfig{Handler: &harness.Recorder{}})
			time.Sleep(30 * time.Minute)
			require.Len(t, w.Lists(), 1)
			require.NotContains(t, []informer.ConditionReason{informer.ReasonCurrent, informer.ReasonNotWatchable}, i.Status().Condition.Reason)
		})
	}
}

// A server that passes on the error of its etcd for a version that was compacted is listed at once.
func TestRefusalOfCompactedVersionLists(t *testing.T) {
	compacted := apierrors.NewInternalError(errors.New("rpc error: code = OutOfRange desc = etcdserver: mvcc: required revision has been compacted"))
	var old atomic.Value
	old.Store("")
	harness.Bubble(t, informertest.Options{Wrap: harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if harness.IsWatch(r) && r.URL.Query().Get("resourceVersion") == old.Load() {
			harness.AnswerStatus(w, compacted)
			return false
		}
		return true
	})}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(4)...)
		var r harness.Recorder
		i := harness.Running(w, informer.InformerConfig{Handler: &r})
		time.Sleep(30 * time.Second)
		old.Store(i.LastSyncResourceVersion())
		w.CloseClientConnections()
		harness.Sleep(0)
		w.CreatePods("late/1")
		harness.Sleep(5 * time.Second)
		w.RequireState(&r)
	})
}

// A run that resumes from a checkpoint, and each handler of a shared informer, polls too.
func TestResumedAndSharedWatchesThatAreRefusedArePolled(t *testing.T) {
	var f refusing
	harness.Bubble(t, informertest.Options{Wrap: f.wrap}, func(t *testing.T, w *harness.World) {
		w.CreateKubeSystem()
		w.CreatePods(harness.Keys(4)...)
		var r harness.Recorder
		checkpoint := &harness.MemoryCheckpoint{}
		w.RunFor(harness.Follow(w, informer.InformerConfig{Handler: &r, Checkpoint: checkpoint}), time.Minute)
		w.DeletePods("a/0003")
		f.with.Store(refusal(http.StatusMethodNotAllowed))
		i := harness.Running(w, informer.InformerConfig{Handler: &r, Checkpoint: checkpoint})
		shared := harness.Share(w, informer.InformerConfig{})
		handlers := []*harness.Recorder{{}, {}}
		for _, h := range handlers {
			harness.AddHandler(t, shared, h)
		}
		t.Cleanup(harness.Start(shared.RunWithContext))
		time.Sleep(8 * time.Minute)
		require.True(t, i.HasSynced())
		requirePolled(t, w, &r, i.Status)
		w.RequireState(handlers...)
	})
}

// A ListerWatcher of others that cannot watch at all is polled, whatever its error is.
func TestForeignListerWatcherWithoutWatchesIsPolled(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(4)...)
		tap := harness.TapOn(w.Lister())
		tap.OnWatch = func(context.Context, int, metav1.ListOptions) (watch.Interface, error) {
			return nil, errors.New("watches are not supported")
		}
		var r harness.Recorder
		i := harness.Running(w, informer.InformerConfig{ListerWatcher: harness.Script{List: tap.ListWithContext, Watch: tap.WatchWithContext}.LW(), Handler: &r})
		time.Sleep(8 * time.Minute)
		requirePolled(t, w, &r, i.Status)
	})
}
