package sharing_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// While one handler hangs, the other is told of all, at once; the one that hangs is told when it
// goes on, and the watch is one again.
func TestHandlerThatHangsBlocksNoOther(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s := harness.Share(w, informer.InformerConfig{ListMode: informer.ListModePaged})
		held := make(chan struct{})
		fast := &harness.Recorder{}
		hangs := &harness.Recorder{Before: func(string) { <-held }}
		harness.AddHandler(t, s, fast)
		h, err := s.AddHandler(informer.HandlerConfig{Name: "hangs", Handler: hangs, Budget: informer.NewBudget(2000)})
		require.NoError(t, err)
		defer harness.Settle(s.RunWithContext)()
		require.Equal(t, "pods/hangs", h.Name())
		require.Zero(t, h.Status().ResourceVersion, "it has acknowledged nothing")
		value := strings.Repeat("x", 1000)
		for n := range 2000 { // much more than 256 KiB
			w.UpdatePod(fmt.Sprintf("a/%04d", n%3), fmt.Sprint(value, n))
			if n%100 == 0 {
				time.Sleep(200 * time.Millisecond)
			}
		}
		harness.Sleep(200 * time.Millisecond)
		w.RequireState(fast)
		require.False(t, h.HasSynced())
		require.False(t, s.HasSynced())
		require.LessOrEqual(t, w.Watching.Load(), int64(2))
		close(held)
		harness.Sleep(time.Second)
		w.RequireState(hangs)
		require.True(t, s.HasSynced())
		require.EqualValues(t, 1, w.Watching.Load())
		w.UpdatePod("a/0000", "last")
		synctest.Wait()
		w.RequireState(fast)
		w.RequireState(hangs)
		require.EqualValues(t, 1, w.Watching.Load())
	})
}

// What a handler panics with is not acknowledged, and concerns no other.
func TestAHandlerThatPanicsIsAlone(t *testing.T) {
	harness.SurvivePanics(t)
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s := harness.Share(w, informer.InformerConfig{})
		well, failed := &harness.Recorder{}, &harness.Failures{}
		panics := &harness.Recorder{Before: func(call string) {
			if strings.Contains(call, "a/0001") {
				panic("not this one")
			}
		}}
		a := harness.AddHandler(t, s, well)
		b, err := s.AddHandler(informer.HandlerConfig{Handler: panics, ErrorHandler: failed.Handle})
		require.NoError(t, err)
		defer harness.Start(s.RunWithContext)()
		time.Sleep(time.Hour)
		w.RequireState(well)
		require.NoError(t, a.Status().LastError)
		require.Equal(t, 3, a.Status().Objects)
		require.Equal(t, 2, b.Status().Objects)
		require.Equal(t, 3, s.Status().Objects)
		require.Error(t, b.Status().LastError)
		require.Equal(t, b.Status().LastError, s.Status().LastError)
		require.ErrorContains(t, failed.Errors()[0], "not this one")
	})
}

// Removing the handler that has opened the watch leaves the watch to the others: no request, no
// error.
func TestRemovingAHandlerLeavesTheOthersAlone(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		failed := &harness.Failures{}
		s := harness.Share(w, informer.InformerConfig{ErrorHandler: failed.Handle})
		first, second := &harness.Recorder{}, &harness.Recorder{}
		opener := harness.AddHandler(t, s, first)
		defer harness.Settle(s.RunWithContext)()
		other := harness.AddHandler(t, s, second)
		synctest.Wait()
		require.Len(t, s.Handlers(), 2)
		asked := len(w.Verbs())
		<-s.RemoveHandler(opener)
		<-opener.Done()
		require.Equal(t, opener.Done(), s.RemoveHandler(opener))
		first.Forget()
		w.UpdatePod("a/0001", "changed")
		w.DeletePods("a/0002")
		synctest.Wait()
		require.Empty(t, first.Events())
		w.RequireState(second)
		require.Len(t, w.Verbs(), asked)
		require.Equal(t, []*informer.HandlerRegistration{other}, s.Handlers())

		<-s.RemoveHandler(other)
		synctest.Wait()
		require.Zero(t, w.Watching.Load(), "it is not needed")
		last := &harness.Recorder{}
		harness.AddHandler(t, s, last)
		synctest.Wait()
		w.RequireState(last)
		require.Empty(t, failed.Errors())

		never := informer.NewSharedResourceVersionInformer("others", informer.InformerConfig{ListerWatcher: w.Lister()})
		require.PanicsWithValue(t, `shared informer "others": the handler "pods/2" is another informer's`, func() { never.RemoveHandler(other) })
	})
}

// Handlers may be added and removed by handlers, also by themselves.
func TestHandlersThatAddAndRemoveHandlers(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s := harness.Share(w, informer.InformerConfig{})
		added := &harness.Recorder{}
		var own *informer.HandlerRegistration
		var once sync.Once
		own = harness.AddHandler(t, s, &harness.Recorder{Before: func(string) {
			once.Do(func() {
				harness.AddHandler(t, s, added)
				s.RemoveHandler(own)
			})
		}})
		defer harness.Start(s.RunWithContext)()
		<-own.Done()
		time.Sleep(time.Minute)
		w.RequireState(added)
		require.True(t, s.HasSynced(), "a removed handler is not waited for")
	})
}

// Whatever the form of the objects and whoever lists and watches, each handler gets objects of its
// own.
func TestSharedForms(t *testing.T) {
	protobuf := func(w *harness.World) cache.ListerWatcher {
		config := w.Config()
		config.ContentType = runtime.ContentTypeProtobuf
		lws, err := informer.NewDynamicListerWatcherFactory(config)
		require.NoError(t, err)
		return lws.ForResource("", harness.Pods)
	}
	others := func(w *harness.World) cache.ListerWatcher { return struct{ cache.ListerWatcher }{w.Lister()} }
	for name, c := range map[string]struct {
		example runtime.Object
		lister  func(w *harness.World) cache.ListerWatcher
	}{
		"raw":          {&informer.RawObject{}, (*harness.World).Lister},
		"raw protobuf": {&informer.RawObject{}, protobuf},
		"typed":        {&corev1.Pod{}, protobuf},
		"metadata":     {&metav1.PartialObjectMetadata{}, (*harness.World).Lister},
		"unstructured": {&unstructured.Unstructured{}, (*harness.World).Lister},
		"of others":    {nil, others},
	} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(5)...)
			config := informer.InformerConfig{ListerWatcher: c.lister(w), ExampleObject: c.example, Prune: []string{"metadata.managedFields"}}
			if !strings.HasPrefix(name, "raw") {
				config.Transform = func(obj interface{}) (interface{}, error) {
					labels := obj.(metav1.Object).GetLabels()
					require.Empty(t, labels, "another handler's object")
					obj.(metav1.Object).SetLabels(map[string]string{"seen": "yes"})
					return obj, nil
				}
			}
			s := harness.Share(w, config)
			all := []*harness.Recorder{{}, {}, {}}
			for _, r := range all[:2] {
				harness.AddHandler(t, s, r)
			}
			defer harness.Settle(s.RunWithContext)()
			w.UpdatePod("a/0001", "changed")
			harness.AddHandler(t, s, all[2])
			for n := range 50 {
				w.UpdatePod(fmt.Sprintf("a/%04d", n%5), fmt.Sprint(n))
			}
			w.DeletePods("a/0003")
			w.CreatePods("b/1")
			time.Sleep(2 * time.Hour)
			for i, h := range s.Handlers() {
				w.RequireState(all[i])
				require.NoError(t, h.Status().LastError)
			}
			w.RequireOneWatch()
		})
	}
}

// A watch that brings nothing any more is given up by all, and then they share another.
func TestASilentWatchThatIsShared(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s := harness.Share(w, informer.InformerConfig{ListMode: informer.ListModePaged})
		all := []*harness.Recorder{{}, {}, {}}
		for _, r := range all {
			harness.AddHandler(t, s, r)
		}
		defer harness.Start(s.RunWithContext)()
		time.Sleep(5 * time.Minute)
		heal := w.Inject(informertest.Fault{Effect: informertest.Hang()})
		time.Sleep(time.Minute)
		w.UpdatePod("a/0001", "changed")
		w.DeletePods("a/0002")
		time.Sleep(20 * time.Minute)
		heal()
		time.Sleep(10 * time.Minute)
		w.RequireState(all...)
		time.Sleep(2 * time.Minute)
		w.RequireOneWatch()
	})
}

// Each handler goes on from its own checkpoint, by one watch and without a list; one that has none
// lists.
func TestSharedCheckpoints(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(4)...)
		checkpoints := []*harness.MemoryCheckpoint{{}, {}}
		all := []*harness.Recorder{{}, {}}
		run := func() *informer.SharedResourceVersionInformer {
			s := harness.Share(w, informer.InformerConfig{})
			for i := range all {
				_, err := s.AddHandler(informer.HandlerConfig{Handler: all[i], Checkpoint: checkpoints[i]})
				require.NoError(t, err)
			}
			defer harness.Start(s.RunWithContext)()
			time.Sleep(2 * time.Minute)
			require.True(t, s.HasSynced())
			require.False(t, s.Status().CheckpointTime.IsZero())
			return s
		}
		run()
		w.UpdatePod("a/0001", "changed")
		w.DeletePods("a/0002")
		w.ResetRequests()
		run()
		for _, r := range all {
			w.RequireState(r)
			require.Equal(t, []string{"update a/0001", "delete a/0002"}, r.Events()[4:])
		}
		require.Empty(t, w.Lists())
		require.Contains(t, w.Verbs()[0], "watch rv=")
	})
}

// A Run that follows another tells only what differs; one beside it is refused.
func TestASharedInformerRunsAgain(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		failed := &harness.Failures{}
		s := harness.Share(w, informer.InformerConfig{ErrorHandler: failed.Handle})
		require.False(t, s.HasSynced())
		require.Equal(t, informer.PhaseIdle, s.Status().Phase)
		require.Empty(t, s.LastSyncResourceVersion())
		r := &harness.Recorder{}
		harness.AddHandler(t, s, r)
		stop := harness.Settle(s.RunWithContext)
		s.Run(nil) // returns
		require.ErrorIs(t, failed.Errors()[0], informer.ErrAlreadyRunning)
		require.Equal(t, w.ResourceVersion(), s.LastSyncResourceVersion())
		require.Equal(t, w.ResourceVersion(), s.Status().ResourceVersion)
		stop()
		require.Equal(t, informer.PhaseStopped, s.Status().Phase)
		synctest.Wait()
		require.Zero(t, w.Watching.Load())

		r.Forget()
		w.UpdatePod("a/0001", "changed")
		w.DeletePods("a/0002")
		late := &harness.Recorder{}
		harness.AddHandler(t, s, late)
		stop = harness.Settle(s.RunWithContext)
		w.RequireState(r)
		w.RequireState(late)
		require.NotContains(t, strings.Join(r.Events(), " "), "add")
		stop()
	})
}

// Without handlers there is no request, and nothing to wait for.
func TestASharedInformerWithoutHandlers(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		s := harness.Share(w, informer.InformerConfig{})
		stop := harness.Settle(s.RunWithContext)
		require.True(t, s.HasSynced())
		require.Equal(t, "pods", s.HasSyncedChecker().Name())
		require.Empty(t, w.Requests())
		stop()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s.RunWithContext(ctx)
		ended := harness.AddHandler(t, s, &harness.Recorder{})
		<-s.RemoveHandler(ended)
	})
}

func TestBadSharedConfigurations(t *testing.T) {
	w := informertest.NewServer(informertest.Options{})
	defer w.Close()
	lws, err := informer.NewDynamicListerWatcherFactory(w.Config())
	require.NoError(t, err)
	good := informer.InformerConfig{ListerWatcher: lws.ForResource("", harness.Pods)}
	for want, change := range map[string]func(c *informer.InformerConfig){
		`informer "pods": ListerWatcher is required`:                            func(c *informer.InformerConfig) { c.ListerWatcher = nil },
		`shared informer "pods": Handler is one handler's: see AddHandler`:      func(c *informer.InformerConfig) { c.Handler = &harness.Recorder{} },
		`shared informer "pods": BatchHandler is one handler's: see AddHandler`: func(c *informer.InformerConfig) { c.BatchHandler = &harness.Batches{} },
		`shared informer "pods": Storage is one handler's: see AddHandler`:      func(c *informer.InformerConfig) { c.Storage = informer.NewResourceVersionStorage() },
		`shared informer "pods": Checkpoint is one handler's: see AddHandler`:   func(c *informer.InformerConfig) { c.Checkpoint = &harness.MemoryCheckpoint{} },
		`shared informer "pods": ExtraStore is one handler's: see AddHandler`:   func(c *informer.InformerConfig) { c.ExtraStore = cache.NewStore(cache.MetaNamespaceKeyFunc) },
		`informer "pods": unknown ListMode 99`:                                  func(c *informer.InformerConfig) { c.ListMode = 99 },
	} {
		bad := good
		change(&bad)
		require.PanicsWithValue(t, want, func() { informer.NewSharedResourceVersionInformer("pods", bad) })
	}
	s := informer.NewSharedResourceVersionInformer("pods", good)
	for want, bad := range map[string]informer.HandlerConfig{
		`handler "pods/1": Handler or BatchHandler is required`:         {},
		`handler "pods/x": Handler and BatchHandler exclude each other`: {Name: "x", Handler: &harness.Recorder{}, BatchHandler: &harness.Batches{}},
		`handler "pods/1": MaxBatch is -1`:                              {BatchHandler: &harness.Batches{}, MaxBatch: -1},
		`handler "pods/1": Workers is -1`:                               {Handler: &harness.Recorder{}, Workers: -1},
	} {
		_, err := s.AddHandler(bad)
		require.EqualError(t, err, want)
	}
	h, err := s.AddEventHandler(nil)
	require.Error(t, err)
	require.PanicsWithValue(t, `shared informer "pods": RemoveHandler of no handler`, func() { s.RemoveHandler(h) })
	require.Empty(t, s.Handlers())

	storage := informer.NewResourceVersionStorage()
	h, err = s.AddHandler(informer.HandlerConfig{Handler: &harness.Recorder{}, Storage: storage})
	require.NoError(t, err)
	_, err = s.AddHandler(informer.HandlerConfig{Handler: &harness.Recorder{}, Storage: storage})
	require.EqualError(t, err, `handler "pods/2": its Storage is that of the handler "pods/1"`)
	<-s.RemoveHandler(h)
	_, err = s.AddHandler(informer.HandlerConfig{Handler: &harness.Recorder{}, Storage: storage})
	require.NoError(t, err)
	s = informer.NewSharedResourceVersionInformer("pods", good)
	require.Empty(t, s.Handlers())
}

// Versions without an order are the newest that was read all the same.
func TestTheNewestOfOpaqueVersions(t *testing.T) {
	harness.Bubble(t, informertest.Options{OpaqueVersions: true}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s := harness.Share(w, informer.InformerConfig{ListMode: informer.ListModePaged})
		harness.AddHandler(t, s, &harness.Recorder{})
		harness.AddHandler(t, s, &harness.Recorder{})
		defer harness.Settle(s.RunWithContext)()
		require.Equal(t, w.ResourceVersion(), s.LastSyncResourceVersion())
		require.Equal(t, w.ResourceVersion(), s.Status().ResourceVersion)
		held := make(chan struct{})
		defer close(held)
		harness.AddHandler(t, s, &harness.Recorder{Before: func(string) { <-held }}) // has read nothing yet
		require.Equal(t, w.ResourceVersion(), s.LastSyncResourceVersion())
	})
}
