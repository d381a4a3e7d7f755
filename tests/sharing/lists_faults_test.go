package sharing_test

import (
	"context"
	"fmt"
	"net/http"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// A list of another resource deletes nothing, also if another handler has learnt the kind of the
// lists.
func TestRule2WrongListOfSeveralHandlers(t *testing.T) {
	const bookmark = `{"type":"BOOKMARK","object":{"kind":"Secret","apiVersion":"v1","metadata":{"resourceVersion":"90","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"
	const noVersion = `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"
	forms := map[string]runtime.Object{"typed": &corev1.Pod{}, "unstructured": nil, "raw": &informer.RawObject{}, "metadata": &metav1.PartialObjectMetadata{}}
	for name, answer := range map[string]string{
		"of another kind":            `{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"90"},"items":[]}`,
		"without a resource version": `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}`,
	} {
		for form, as := range forms {
			if form == "metadata" && name == "of another kind" {
				continue
			}
			for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeFull, informer.ListModeWatchList} {
				t.Run(fmt.Sprint(name, "/", form, "/", mode), func(t *testing.T) {
					var a harness.OtherAnswer
					harness.Bubble(t, informertest.Options{Wrap: a.Wrap}, func(t *testing.T, w *harness.World) {
						w.CreatePods("a/1", "a/2")
						s := harness.Share(w, informer.InformerConfig{ExampleObject: as, ListMode: mode})
						all := recorders(t, s, 3)
						defer harness.Start(s.RunWithContext)()
						time.Sleep(11 * time.Second)
						require.True(t, s.HasSynced())
						for _, r := range all {
							r.Forget()
						}
						a.Set(answer)
						if mode == informer.ListModeWatchList {
							a.Set(bookmark)
							if name != "of another kind" {
								a.Set(noVersion)
							}
						}
						w.Compact()
						w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch", "watch-list"}}, Effect: informertest.ErrorEvent(410), Times: 1})
						time.Sleep(9 * time.Second)
						for i, r := range all {
							require.Empty(t, r.Events(), "handler %d", i)
						}
					})
				})
			}
		}
	}
}

// One handler has read the right list, and lists together with one that has read none yet.
func TestRule2WrongListOfAHandlerBesideANewOne(t *testing.T) {
	for range 5 {
		var a harness.OtherAnswer
		harness.Bubble(t, informertest.Options{Wrap: a.Wrap}, func(t *testing.T, w *harness.World) {
			w.CreatePods("a/1", "a/2")
			s := harness.Share(w, informer.InformerConfig{ListMode: informer.ListModePaged})
			r := &harness.Recorder{}
			_, err := s.AddHandler(informer.HandlerConfig{Handler: r, Storage: informer.NewResourceVersionStorage()})
			require.NoError(t, err)
			stop := harness.Start(s.RunWithContext)
			time.Sleep(time.Minute)
			require.True(t, s.HasSynced())
			stop()
			r.Forget()
			a.Set(`{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"90"},"items":[]}`)
			harness.AddHandler(t, s, &harness.Recorder{})
			stop = harness.Start(s.RunWithContext)
			time.Sleep(10 * time.Second)
			stop()
			require.Empty(t, r.Events())
		})
	}
}

// A handler takes pods, beside one that takes anything, and the ListerWatcher returns another list.
func TestRule2WrongListOfAHandlerThatTakesATypeBesideOneThatTakesAny(t *testing.T) {
	for range 5 {
		synctest.Test(t, func(t *testing.T) {
			wrong := false
			lw := &cache.ListWatch{
				ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
					if wrong {
						return &corev1.SecretList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}, nil
					}
					return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", ResourceVersion: "3"}}}}, nil
				},
				WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
			}
			s := informer.NewSharedResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lw, ErrorHandler: harness.IgnoreErrors})
			harness.AddHandler(t, s, &harness.Recorder{})
			deleted := 0
			harness.AddHandler(t, s, informer.TypedResourceEventHandlerFuncs[*corev1.Pod]{DeleteFunc: func(informer.DeletedObject[*corev1.Pod]) { deleted++ }})
			stop := harness.Start(s.RunWithContext)
			time.Sleep(time.Second)
			stop()
			wrong = true
			stop = harness.Start(s.RunWithContext)
			time.Sleep(time.Minute)
			stop()
			require.Zero(t, deleted)
		})
	}
}

// A server that gives pages without objects for ever is asked with pauses.
func TestHandlersOfAListWithoutAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lists atomic.Int64
		lw := &cache.ListWatch{
			ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
				return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: fmt.Sprint("t", lists.Add(1))}}, nil
			},
			WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
		}
		s := informer.NewSharedResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lw, ListMode: informer.ListModePaged})
		recorders(t, s, 2)
		defer harness.Start(s.RunWithContext)()
		time.Sleep(10 * time.Second)
		require.Less(t, lists.Load(), int64(30))
	})
}

// An ErrorHandler ends its goroutine while a joint list is read: Run returns all the same.
func TestAnErrorHandlerEndsItsGoroutineInAJointList(t *testing.T) {
	forJointModes(t, informertest.Options{}, func(t *testing.T, w *harness.World, c informer.InformerConfig) {
		large(w, 300)
		w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"list", "watch-list"}}, Effect: informertest.Garbage(1)})
		c.WatchListPageSize = 400
		c.ErrorHandler = func(*informer.Reflector, error) { goruntime.Goexit() }
		s := harness.Share(w, c)
		recorders(t, s, 2)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { s.RunWithContext(ctx) })
		time.Sleep(time.Minute)
		cancel()
		running.Wait()
	})
}

// A server that has never answered was not heard of.
func TestNoContactByAJointList(t *testing.T) {
	forJointModes(t, informertest.Options{}, func(t *testing.T, w *harness.World, c informer.InformerConfig) {
		w.CreatePods(harness.Keys(5)...)
		w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"list", "watch-list", "watch", "get"}}, Effect: informertest.Reset()})
		s := harness.Share(w, c)
		recorders(t, s, 2)
		defer harness.Start(s.RunWithContext)()
		time.Sleep(100 * time.Millisecond)
		for _, h := range s.Handlers() {
			require.True(t, h.Status().LastContact.IsZero(), "%v: %v", h.Name(), h.Status().LastError)
		}
	})
}

// A server that has no watch-lists is asked for one watch-list and one list.
func TestHandlersAtAServerWithoutWatchLists(t *testing.T) {
	for name, effect := range map[string]informertest.Effect{
		"unknown": informertest.RefuseWatchList(), "bad request": informertest.Status(http.StatusBadRequest),
		"forbidden": informertest.Status(http.StatusForbidden), "endless": informertest.EndlessWatchList(),
	} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(5)...)
			w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch-list"}}, Effect: effect})
			s := harness.Share(w, informer.InformerConfig{})
			all := recorders(t, s, 3)
			defer harness.Start(s.RunWithContext)()
			time.Sleep(time.Minute)
			require.True(t, s.HasSynced())
			require.Equal(t, []string{"watch-list", "list limit=500"}, w.Lists())
			w.RequireState(all...)
		})
	}
}
