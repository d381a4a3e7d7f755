package tests_test

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
)

// While one handler hangs, the other is told of all, at once; the one that hangs is told when it
// goes on, and the watch is one again.
func TestHandlerThatHangsBlocksNoOther(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		s := share(w, informer.InformerConfig{ListMode: informer.ListModePaged})
		held := make(chan struct{})
		fast := &recorder{}
		hangs := &recorder{before: func(string) { <-held }}
		adds(t, s, fast)
		h, err := s.AddHandler(informer.HandlerConfig{Name: "hangs", Handler: hangs, Budget: informer.NewBudget(2000)})
		require.NoError(t, err)
		defer start(s.RunWithContext)()
		synctest.Wait()
		require.Equal(t, "pods/hangs", h.Name())
		require.Zero(t, h.Status().ResourceVersion, "it has acknowledged nothing")
		value := strings.Repeat("x", 1000)
		for n := range 2000 { // much more than 256 KiB
			w.update(fmt.Sprintf("a/%04d", n%3), fmt.Sprint(value, n))
			if n%100 == 0 {
				time.Sleep(200 * time.Millisecond)
			}
		}
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		w.requireState(fast)
		require.False(t, h.HasSynced())
		require.False(t, s.HasSynced())
		require.LessOrEqual(t, w.watching.Load(), int64(2))
		close(held)
		time.Sleep(time.Second)
		synctest.Wait()
		w.requireState(hangs)
		require.True(t, s.HasSynced())
		require.EqualValues(t, 1, w.watching.Load())
		w.update("a/0000", "last")
		synctest.Wait()
		w.requireState(fast)
		w.requireState(hangs)
		require.EqualValues(t, 1, w.watching.Load())
	})
}

// What a handler panics with is not acknowledged, and concerns no other.
func TestAHandlerThatPanicsIsAlone(t *testing.T) {
	survivePanics(t)
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		s := share(w, informer.InformerConfig{})
		well, failed := &recorder{}, &failures{}
		panics := &recorder{before: func(call string) {
			if strings.Contains(call, "a/0001") {
				panic("not this one")
			}
		}}
		a := adds(t, s, well)
		b, err := s.AddHandler(informer.HandlerConfig{Handler: panics, ErrorHandler: failed.handle})
		require.NoError(t, err)
		defer start(s.RunWithContext)()
		time.Sleep(time.Hour)
		w.requireState(well)
		require.NoError(t, a.Status().LastError)
		require.Equal(t, 3, a.Status().Objects)
		require.Equal(t, 2, b.Status().Objects)
		require.Equal(t, 3, s.Status().Objects)
		require.Error(t, b.Status().LastError)
		require.Equal(t, b.Status().LastError, s.Status().LastError)
		errs, _ := failed.all()
		require.ErrorContains(t, errs[0], "not this one")
	})
}

// Removing the handler that has opened the watch leaves the watch to the others: no request, no
// error.
func TestRemovingAHandlerLeavesTheOthersAlone(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		failed := &failures{}
		s := share(w, informer.InformerConfig{ErrorHandler: failed.handle})
		first, second := &recorder{}, &recorder{}
		opener := adds(t, s, first)
		defer start(s.RunWithContext)()
		synctest.Wait()
		other := adds(t, s, second)
		synctest.Wait()
		require.Len(t, s.Handlers(), 2)
		asked := len(w.verbs())
		<-s.RemoveHandler(opener)
		<-opener.Done()
		require.Equal(t, opener.Done(), s.RemoveHandler(opener))
		first.forget()
		w.update("a/0001", "changed")
		w.remove("a/0002")
		synctest.Wait()
		require.Empty(t, first.events())
		w.requireState(second)
		require.Len(t, w.verbs(), asked)
		require.Equal(t, []*informer.HandlerRegistration{other}, s.Handlers())

		<-s.RemoveHandler(other)
		synctest.Wait()
		require.Zero(t, w.watching.Load(), "it is not needed")
		last := &recorder{}
		adds(t, s, last)
		synctest.Wait()
		w.requireState(last)
		errs, _ := failed.all()
		require.Empty(t, errs)

		never := informer.NewSharedResourceVersionInformer("others", informer.InformerConfig{ListerWatcher: w.lister()})
		require.PanicsWithValue(t, `shared informer "others": the handler "pods/2" is another informer's`, func() { never.RemoveHandler(other) })
	})
}

// Handlers may be added and removed by handlers, also by themselves.
func TestHandlersThatAddAndRemoveHandlers(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		s := share(w, informer.InformerConfig{})
		added := &recorder{}
		var own *informer.HandlerRegistration
		var once sync.Once
		own = adds(t, s, &recorder{before: func(string) {
			once.Do(func() {
				adds(t, s, added)
				s.RemoveHandler(own)
			})
		}})
		defer start(s.RunWithContext)()
		<-own.Done()
		time.Sleep(time.Minute)
		w.requireState(added)
		require.True(t, s.HasSynced(), "a removed handler is not waited for")
	})
}

// Whatever the form of the objects and whoever lists and watches, each handler gets objects of its
// own.
func TestSharedForms(t *testing.T) {
	protobuf := func(w *world) cache.ListerWatcher {
		config := w.Config()
		config.ContentType = runtime.ContentTypeProtobuf
		lws, err := informer.NewDynamicListerWatcherFactory(config)
		require.NoError(t, err)
		return lws.ForResource("", pods)
	}
	others := func(w *world) cache.ListerWatcher { return struct{ cache.ListerWatcher }{w.lister()} }
	for name, c := range map[string]struct {
		example runtime.Object
		lister  func(w *world) cache.ListerWatcher
	}{
		"raw":          {&informer.RawObject{}, (*world).lister},
		"raw protobuf": {&informer.RawObject{}, protobuf},
		"typed":        {&corev1.Pod{}, protobuf},
		"metadata":     {&metav1.PartialObjectMetadata{}, (*world).lister},
		"unstructured": {&unstructured.Unstructured{}, (*world).lister},
		"of others":    {nil, others},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
				w.create(keys(5)...)
				config := informer.InformerConfig{ListerWatcher: c.lister(w), ExampleObject: c.example, Prune: []string{"metadata.managedFields"}}
				if !strings.HasPrefix(name, "raw") {
					config.Transform = func(obj interface{}) (interface{}, error) {
						labels := obj.(metav1.Object).GetLabels()
						require.Empty(t, labels, "another handler's object")
						obj.(metav1.Object).SetLabels(map[string]string{"seen": "yes"})
						return obj, nil
					}
				}
				s := share(w, config)
				all := []*recorder{{}, {}, {}}
				for _, r := range all[:2] {
					adds(t, s, r)
				}
				defer start(s.RunWithContext)()
				synctest.Wait()
				w.update("a/0001", "changed")
				adds(t, s, all[2])
				for n := range 50 {
					w.update(fmt.Sprintf("a/%04d", n%5), fmt.Sprint(n))
				}
				w.remove("a/0003")
				w.create("b/1")
				time.Sleep(2 * time.Hour)
				for i, h := range s.Handlers() {
					w.requireState(all[i])
					require.NoError(t, h.Status().LastError)
				}
				w.requireOneWatch()
			})
		})
	}
}

// A watch that brings nothing any more is given up by all, and then they share another.
func TestASilentWatchThatIsShared(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		s := share(w, informer.InformerConfig{ListMode: informer.ListModePaged})
		all := []*recorder{{}, {}, {}}
		for _, r := range all {
			adds(t, s, r)
		}
		defer start(s.RunWithContext)()
		time.Sleep(5 * time.Minute)
		heal := w.Inject(informertest.Fault{Effect: informertest.Hang()})
		time.Sleep(time.Minute)
		w.update("a/0001", "changed")
		w.remove("a/0002")
		time.Sleep(20 * time.Minute)
		heal()
		time.Sleep(10 * time.Minute)
		for _, r := range all {
			w.requireState(r)
		}
		time.Sleep(2 * time.Minute)
		w.requireOneWatch()
	})
}

// Each handler goes on from its own checkpoint, by one watch and without a list; one that has none
// lists.
func TestSharedCheckpoints(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(4)...)
		checkpoints := []*memoryCheckpoint{{}, {}}
		all := []*recorder{{}, {}}
		run := func() *informer.SharedResourceVersionInformer {
			s := share(w, informer.InformerConfig{})
			for i := range all {
				_, err := s.AddHandler(informer.HandlerConfig{Handler: all[i], Checkpoint: checkpoints[i]})
				require.NoError(t, err)
			}
			defer start(s.RunWithContext)()
			time.Sleep(2 * time.Minute)
			require.True(t, s.HasSynced())
			require.False(t, s.Status().CheckpointTime.IsZero())
			return s
		}
		run()
		w.update("a/0001", "changed")
		w.remove("a/0002")
		w.ResetRequests()
		run()
		for _, r := range all {
			w.requireState(r)
			require.Equal(t, []string{"update a/0001", "delete a/0002"}, r.events()[4:])
		}
		require.Empty(t, w.lists())
		require.Contains(t, w.verbs()[0], "watch rv=")
	})
}

// A Run that follows another tells only what differs; one beside it is refused.
func TestASharedInformerRunsAgain(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		failed := &failures{}
		s := share(w, informer.InformerConfig{ErrorHandler: failed.handle})
		require.False(t, s.HasSynced())
		require.Equal(t, informer.PhaseIdle, s.Status().Phase)
		require.Empty(t, s.LastSyncResourceVersion())
		r := &recorder{}
		adds(t, s, r)
		stop := start(s.RunWithContext)
		synctest.Wait()
		s.Run(nil) // returns
		errs, _ := failed.all()
		require.ErrorIs(t, errs[0], informer.ErrAlreadyRunning)
		require.Equal(t, w.ResourceVersion(), s.LastSyncResourceVersion())
		require.Equal(t, w.ResourceVersion(), s.Status().ResourceVersion)
		stop()
		require.Equal(t, informer.PhaseStopped, s.Status().Phase)
		synctest.Wait()
		require.Zero(t, w.watching.Load())

		r.forget()
		w.update("a/0001", "changed")
		w.remove("a/0002")
		late := &recorder{}
		adds(t, s, late)
		stop = start(s.RunWithContext)
		synctest.Wait()
		w.requireState(r)
		w.requireState(late)
		require.NotContains(t, strings.Join(r.events(), " "), "add")
		stop()
	})
}

// Without handlers there is no request, and nothing to wait for.
func TestASharedInformerWithoutHandlers(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		s := share(w, informer.InformerConfig{})
		stop := start(s.RunWithContext)
		synctest.Wait()
		require.True(t, s.HasSynced())
		require.Equal(t, "pods", s.HasSyncedChecker().Name())
		require.Empty(t, w.Requests())
		stop()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s.RunWithContext(ctx)
		ended := adds(t, s, &recorder{})
		<-s.RemoveHandler(ended)
	})
}

func TestBadSharedConfigurations(t *testing.T) {
	w := informertest.NewServer(informertest.Options{})
	defer w.Close()
	lws, err := informer.NewDynamicListerWatcherFactory(w.Config())
	require.NoError(t, err)
	good := informer.InformerConfig{ListerWatcher: lws.ForResource("", pods)}
	for want, change := range map[string]func(c *informer.InformerConfig){
		`informer "pods": ListerWatcher is required`:                            func(c *informer.InformerConfig) { c.ListerWatcher = nil },
		`shared informer "pods": Handler is one handler's: see AddHandler`:      func(c *informer.InformerConfig) { c.Handler = &recorder{} },
		`shared informer "pods": BatchHandler is one handler's: see AddHandler`: func(c *informer.InformerConfig) { c.BatchHandler = &batches{} },
		`shared informer "pods": Storage is one handler's: see AddHandler`:      func(c *informer.InformerConfig) { c.Storage = informer.NewResourceVersionStorage() },
		`shared informer "pods": Checkpoint is one handler's: see AddHandler`:   func(c *informer.InformerConfig) { c.Checkpoint = &memoryCheckpoint{} },
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
		`handler "pods/x": Handler and BatchHandler exclude each other`: {Name: "x", Handler: &recorder{}, BatchHandler: &batches{}},
		`handler "pods/1": MaxBatch is -1`:                              {BatchHandler: &batches{}, MaxBatch: -1},
		`handler "pods/1": Workers is -1`:                               {Handler: &recorder{}, Workers: -1},
	} {
		_, err := s.AddHandler(bad)
		require.EqualError(t, err, want)
	}
	h, err := s.AddEventHandler(nil)
	require.Error(t, err)
	require.PanicsWithValue(t, `shared informer "pods": RemoveHandler of no handler`, func() { s.RemoveHandler(h) })
	require.Empty(t, s.Handlers())

	storage := informer.NewResourceVersionStorage()
	h, err = s.AddHandler(informer.HandlerConfig{Handler: &recorder{}, Storage: storage})
	require.NoError(t, err)
	_, err = s.AddHandler(informer.HandlerConfig{Handler: &recorder{}, Storage: storage})
	require.EqualError(t, err, `handler "pods/2": its Storage is that of the handler "pods/1"`)
	<-s.RemoveHandler(h)
	_, err = s.AddHandler(informer.HandlerConfig{Handler: &recorder{}, Storage: storage})
	require.NoError(t, err)
	s = informer.NewSharedResourceVersionInformer("pods", good)
	require.Empty(t, s.Handlers())
}

// Versions without an order are the newest that was read all the same.
func TestTheNewestOfOpaqueVersions(t *testing.T) {
	bubble(t, informertest.Options{OpaqueVersions: true}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		s := share(w, informer.InformerConfig{ListMode: informer.ListModePaged})
		adds(t, s, &recorder{})
		adds(t, s, &recorder{})
		defer start(s.RunWithContext)()
		synctest.Wait()
		require.Equal(t, w.ResourceVersion(), s.LastSyncResourceVersion())
		require.Equal(t, w.ResourceVersion(), s.Status().ResourceVersion)
		held := make(chan struct{})
		defer close(held)
		adds(t, s, &recorder{before: func(string) { <-held }}) // has read nothing yet
		require.Equal(t, w.ResourceVersion(), s.LastSyncResourceVersion())
	})
}
