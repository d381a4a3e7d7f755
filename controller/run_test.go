package controller_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/controller"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// Bug h of S4: it was no cache.Controller.
var _ cache.Controller = &controller.Controller{}

// S4-01: the names, with their signatures.
var (
	_ func(r controller.Resource) func()                                                                                               = controller.TestControllerRun
	_ func(cache.SharedIndexInformer, controller.ResourceUpsertFunc, controller.ResourceDeleteFunc) controller.Resource                = controller.NewResource
	_ func(string, informer.InformerConfig, controller.ResourceUpsertFunc, controller.ResourceDeleteFunc) controller.StorelessResource = controller.NewStorelessResource
	_ func(key string, obj interface{}) error                                                                                          = controller.ResourceUpsertFunc(nil)
	_ func(key string, obj interface{}) error                                                                                          = controller.ResourceDeleteFunc(nil)
	_                                                                                                                                  = controller.Event{Key: "", Obj: nil}
)

// hclogger has the methods of an hclog.Logger that a Controller calls.
type hclogger interface {
	Trace(msg string, args ...interface{})
	Debug(msg string, args ...interface{})
	Info(msg string, args ...interface{})
	Warn(msg string, args ...interface{})
	Error(msg string, args ...interface{})
	With(args ...interface{}) hclogger
}

var (
	_ controller.Logger = hclogger(nil)
	_ controller.Logger = (*slog.Logger)(nil)
)

// with is a Resource that is a Backgrounder too.
type with struct {
	controller.Resource
	run func(<-chan struct{})
}

func (r with) Run(stop <-chan struct{}) { r.run(stop) }

// withStoreless is that of a StorelessResource.
type withStoreless struct {
	controller.StorelessResource
	run func(<-chan struct{})
}

func (r withStoreless) Run(stop <-chan struct{}) { r.run(stop) }

// withHandler is that of a HandlerResource.
type withHandler struct {
	controller.HandlerResource
	run func(<-chan struct{})
}

func (r withHandler) Run(stop <-chan struct{}) { r.run(stop) }

// in has a Resource run in the background.
func in(r controller.Resource, run func(<-chan struct{})) controller.Resource {
	switch r := r.(type) {
	case controller.StorelessResource:
		return withStoreless{r, run}
	case controller.HandlerResource:
		return withHandler{r, run}
	default:
		return with{r, run}
	}
}

// S4-06: a Backgrounder is run before the informer is, and Run waits for it at the end.
func TestABackgrounder(t *testing.T) {
	sources(t, func(t *testing.T, w *world, of func(*target) controller.Resource) {
		w.create("a/1")
		var x target
		var log []string
		var c controller.Controller
		run := func(stop <-chan struct{}) {
			log = append(log, fmt.Sprintf("started, %d calls, %d requests", len(x.told()), len(w.Requests())))
			<-stop
			time.Sleep(10 * time.Second)
			log = append(log, "ended")
		}
		c.Resource = in(of(&x), run)
		w.Blocked.Lock() // a request may come before run does, but nothing is answered
		stop := start(&c)
		synctest.Wait()
		require.Len(t, log, 1)
		require.Contains(t, log[0], "started, 0 calls")
		w.Blocked.Unlock()
		time.Sleep(5 * time.Minute)
		require.True(t, c.HasSynced())
		require.Equal(t, []string{"upsert a/1=1"}, x.told())
		before := time.Now()
		stop()
		require.Equal(t, 10*time.Second, time.Since(before))
		require.Equal(t, "ended", log[1])
	})
}

// Bug i of S4: a Backgrounder that ignores its channel held Run up for ever.
func TestABackgrounderThatDoesNotStop(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Minute, -1} {
		bubble(t, func(w *world) {
			release := make(chan struct{})
			var x target
			c := &controller.Controller{
				Resource:    with{x.of(w.shared()), func(<-chan struct{}) { <-release }},
				StopTimeout: timeout,
			}
			stop := start(c)
			synctest.Wait()
			if timeout < 0 {
				go func() {
					time.Sleep(24 * time.Hour)
					close(release)
				}()
			}
			before := time.Now()
			stop()
			took := time.Since(before)
			switch {
			case timeout < 0:
				require.Equal(w, 24*time.Hour, took)
				require.Empty(w, w.reported())
				return
			case timeout == 0:
				timeout = 30 * time.Second
			}
			require.Equal(w, timeout, took)
			require.Len(w, w.reported(), 1)
			require.ErrorContains(w, w.reported()[0], "the Backgrounder controller_test.with has not returned")
			close(release)
		})
	}
}

// A Backgrounder that panics, where the process survives it, has returned.
func TestABackgrounderThatPanics(t *testing.T) {
	harness.SurvivePanics(t)
	bubble(t, func(w *world) {
		w.create("a/1")
		var x target
		stop := start(&controller.Controller{Resource: with{x.of(w.shared()), func(<-chan struct{}) { panic("ouch") }}})
		synctest.Wait()
		require.Equal(w, []string{"upsert a/1=1"}, x.told())
		before := time.Now()
		stop()
		require.Zero(w, time.Since(before))
	})
}

// A Backgrounder may ask whether the controller is synced, and waits for it with a channel.
func TestABackgrounderWaitsForTheSync(t *testing.T) {
	sources(t, func(t *testing.T, w *world, of func(*target) controller.Resource) {
		w.create("a/1")
		var x target
		var c controller.Controller
		var synced atomic.Bool
		run := func(stop <-chan struct{}) {
			select {
			case <-c.HasSyncedChecker().Done():
				synced.Store(c.HasSynced())
			case <-stop:
			}
		}
		c.Resource = in(of(&x), run)
		checker := c.HasSyncedChecker()
		require.Contains(t, checker.Name(), "controller of controller_test.with")
		stop := start(&c)
		synctest.Wait()
		stop()
		require.True(t, synced.Load())
		require.True(t, cache.IsDone(checker))
	})
}

// S4-07: nothing is processed before the source is synced; a stop before that is reported,
// once the informer has stopped (bug g of S4).
func TestNothingIsProcessedBeforeTheSync(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("a/1", "a/2", "a/3")
		i := &tapped{SharedIndexInformer: w.shared()}
		var x target
		var log journal
		log.Logger = newJournal().Logger
		c := &controller.Controller{Resource: x.of(i), Log: &log, Name: "three"}
		defer w.Heal()
		w.Inject(fault(w, "list,watch-list hang"))
		stop := start(c)
		handler := *i.waitForHandler()
		handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "a/gone"})
		time.Sleep(5 * time.Second)
		require.False(w, c.HasSynced())
		stop()
		require.True(w, i.returned.Load(), "Run has returned before the informer did")
		require.Empty(w, x.told())
		errs := slices.DeleteFunc(w.reported(), func(err error) bool { // client-go reports the list at times
			return strings.HasSuffix(err.Error(), context.Canceled.Error())
		})
		require.Len(w, errs, 1)
		require.ErrorContains(w, errs[0], `controller "three" of controller.basicResource: error syncing cache`)
	})
}

func fault(w *world, text string) informertest.Fault {
	f, err := informertest.ParseFault(text)
	require.NoError(w, err)
	return f
}

func (i *tapped) waitForHandler() *cache.ResourceEventHandler {
	synctest.Wait()
	return i.handler.Load()
}

func (i *tapped) RunWithContext(ctx context.Context) {
	i.SharedIndexInformer.RunWithContext(ctx)
	i.returned.Store(true)
}

// S4-08: what is queued when it is stopped is still processed; what has failed is not
// tried again.
func TestWhatIsQueuedIsProcessedAtTheEnd(t *testing.T) {
	bubble(t, func(w *world) {
		for n := range 5 {
			w.create(fmt.Sprintf("a/%d", n))
		}
		failing := refusing(-1, "upsert a/0", "upsert a/3")
		x := target{before: func(call string) error {
			time.Sleep(time.Second)
			return failing(call)
		}}
		stop := start(&controller.Controller{Resource: x.of(w.shared()), MaxRetries: -1, RateLimiter: slowly(time.Hour)})
		time.Sleep(500 * time.Millisecond)
		before := time.Now()
		stop()
		require.Equal(w, 4500*time.Millisecond, time.Since(before))
		require.Len(w, x.told(), 5)
		require.Len(w, x.has(), 3)
		require.Empty(w, w.reported())
	})
}

// Run has a channel, and a Run beside a running one is an error.
func TestRunWithAChannel(t *testing.T) {
	sources(t, func(t *testing.T, w *world, of func(*target) controller.Resource) {
		w.create("a/1")
		var x target
		c := &controller.Controller{Resource: of(&x)}
		stop, returned := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(returned)
			c.Run(stop)
		}()
		synctest.Wait()
		require.Equal(t, []string{"upsert a/1=1"}, x.told())
		c.Run(nil)
		require.Len(t, w.reported(), 1)
		require.ErrorIs(t, w.reported()[0], informer.ErrAlreadyRunning)
		w.UpdatePod("a/1", "2")
		synctest.Wait()
		require.Equal(t, []string{"upsert a/1=2"}, x.told(), "the first goes on")
		close(stop)
		<-returned
	})
}

// Bug c of S4: HasSynced and LastSyncResourceVersion raced with Run.
func TestWhoAsksWhileRunBegins(t *testing.T) {
	sources(t, func(t *testing.T, w *world, of func(*target) controller.Resource) {
		w.create("a/1")
		var x target
		c := &controller.Controller{Resource: of(&x)}
		var asking sync.WaitGroup
		for range 4 {
			asking.Go(func() {
				for !c.HasSynced() {
					_ = c.LastSyncResourceVersion()
					<-c.HasSyncedChecker().Done()
				}
			})
		}
		stop := start(c)
		asking.Wait()
		synctest.Wait() // client-go's informer says that it is synced before it says up to where
		require.NotEmpty(t, c.LastSyncResourceVersion())
		stop()
	})
}

// Bug d of S4: a second Run over an informer that has stopped did nothing, for ever, and
// said so in a line that could not be read.
func TestAnInformerThatHasStopped(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("a/1")
		var x target
		log := newJournal()
		c := &controller.Controller{Resource: x.of(w.shared()), Log: log}
		stop := start(c)
		synctest.Wait()
		stop()
		require.Empty(w, w.reported())
		c.RunWithContext(w.Context()) // returns at once
		require.Len(w, w.reported(), 1)
		require.ErrorContains(w, w.reported()[0], "stopped already")
		require.Contains(w, log.String(), "level=ERROR")
		require.Contains(w, log.String(), "stopped already")
		require.NotContains(w, log.String(), "BADKEY")
		require.False(w, c.HasSynced())
		require.Equal(w, []string{"upsert a/1=1"}, x.told())
	})
}

// fresh is a Resource with a new informer for each Run.
type fresh struct {
	*target
	informer func() cache.SharedIndexInformer
}

func (r fresh) Informer() cache.SharedIndexInformer { return r.informer() }

// A Resource that returns a new informer each time may run again, and each time it is
// synced anew.
func TestARunAfterAnother(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("a/1")
		var x target
		c := &controller.Controller{Resource: fresh{&x, w.shared}}
		for range 3 {
			w.Blocked.Lock()
			stop := start(c)
			synctest.Wait()
			require.False(w, c.HasSynced())
			w.Blocked.Unlock()
			time.Sleep(5 * time.Minute)
			require.True(w, c.HasSynced())
			stop()
			require.Equal(w, []string{"upsert a/1=1"}, x.told())
			require.True(w, c.HasSynced())
		}
	})
}

// Bug e of S4: its handler stayed on a shared informer. One that is run by others is not
// stopped.
func TestInformerRunByOthersIsNotStopped(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("a/1")
		i := &tapped{SharedIndexInformer: w.shared()}
		end := harness.Settle(i.SharedIndexInformer.RunWithContext)
		for n := range 3 {
			var x target
			stop := start(&controller.Controller{Resource: x.of(i)})
			synctest.Wait()
			require.Equal(w, []string{fmt.Sprintf("upsert a/1=%d", n+1)}, x.told())
			w.UpdatePod("a/1", fmt.Sprint(n+2))
			synctest.Wait()
			require.Equal(w, []string{fmt.Sprintf("upsert a/1=%d", n+2)}, x.told())
			stop()
			require.EqualValues(w, n+1, i.added.Load())
			require.EqualValues(w, n+1, i.removed.Load())
			require.False(w, i.IsStopped())
		}
		end()
		require.Empty(w, w.reported())
	})
}

// Several controllers of one informer start and stop as they like: it runs for as long as
// one of them does.
func TestControllersShareAnInformer(t *testing.T) {
	bubble(t, func(w *world) {
		for range 20 {
			i := w.shared()
			var targets [5]target
			var stops []func()
			for n := range targets {
				stops = append(stops, start(&controller.Controller{Resource: targets[n].of(i)}))
			}
			synctest.Wait()
			for n, stop := range stops {
				key := fmt.Sprintf("a/%d", n)
				w.create(key)
				synctest.Wait()
				for m := n; m < len(targets); m++ {
					require.Equal(w, w.has(), targets[m].has())
				}
				w.DeletePods(key)
				synctest.Wait()
				require.False(w, i.IsStopped())
				stop()
			}
			require.True(w, i.IsStopped())
		}
		require.Empty(w, w.reported())
	})
}

// wrapped is the same informer in a new wrapper each time, as of client-go's typed
// factories.
type wrapped struct {
	*target
	informer cache.SharedIndexInformer
}

func (r wrapped) Informer() cache.SharedIndexInformer {
	return &struct{ cache.SharedIndexInformer }{r.informer}
}

func TestControllersShareAnInformerInWrappers(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("a/1")
		i := w.shared()
		var x, y target
		one, two := start(&controller.Controller{Resource: wrapped{&x, i}}), start(&controller.Controller{Resource: wrapped{&y, i}})
		synctest.Wait()
		one()
		w.UpdatePod("a/1", "2")
		synctest.Wait()
		require.Equal(w, w.has(), y.has())
		require.False(w, i.IsStopped())
		two()
		require.True(w, i.IsStopped())
	})
}

// A controller that comes while the last one stops the informer is told that it has stopped.
func TestAControllerComesWhenTheInformerStops(t *testing.T) {
	bubble(t, func(w *world) {
		for range 50 {
			i := w.shared()
			var x target
			stop := start(&controller.Controller{Resource: x.of(i)})
			synctest.Wait()
			var stopping sync.WaitGroup
			stopping.Go(stop)
			other := start(&controller.Controller{Resource: x.of(i)})
			stopping.Wait()
			synctest.Wait()
			other()
		}
		for _, err := range w.reported() {
			require.Regexp(w, "stopped( already|, or is about to)", err.Error())
		}
	})
}

// Bug i of S4: the function that stops panicked when it was called twice.
func TestTestControllerRun(t *testing.T) {
	sources(t, func(t *testing.T, w *world, of func(*target) controller.Resource) {
		w.create("a/1")
		var x target
		r := of(&x)
		stop := controller.TestControllerRun(r)
		synctest.Wait()
		require.Equal(t, []string{"upsert a/1=1"}, x.told())
		again := controller.TestControllerRun(r) // beside the first
		synctest.Wait()
		require.Equal(t, []string{"upsert a/1=1"}, x.told())
		var stopping sync.WaitGroup
		for range 3 {
			stopping.Go(stop)
		}
		stop()
		stop()
		stopping.Wait()
		w.UpdatePod("a/1", "2")
		synctest.Wait()
		require.Equal(t, []string{"upsert a/1=2"}, x.told())
		again()
		w.UpdatePod("a/1", "3")
		controller.TestControllerRun(r)() // and after it
		for _, err := range w.reported() {
			require.Regexp(t, "stopped|error syncing cache", err.Error())
		}
	})
}

// Two at once do not start an informer twice.
func TestTestControllerRunTwiceAtOnce(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("a/1")
		for range 100 {
			var x target
			r := x.of(w.shared())
			one, two := controller.TestControllerRun(r), controller.TestControllerRun(r)
			synctest.Wait()
			require.Equal(w, []string{"upsert a/1=1", "upsert a/1=1"}, x.told())
			two()
			one()
		}
		require.Empty(w, w.reported())
	})
}

// A configuration that cannot work is refused with an error that says what is wrong.
func TestBadInput(t *testing.T) {
	call := func(string, interface{}) error { return nil }
	i := cache.NewSharedIndexInformer(&cache.ListWatch{}, nil, 0, cache.Indexers{})
	handler := informer.ResourceEventHandlerFuncs{}
	batches := informer.BatchHandlerFunc(func(context.Context, []informer.Event) error { return nil })
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	run := func(c *controller.Controller) { c.RunWithContext(stopped) }
	for want, act := range map[string]func(){
		"controller: NewResource: the informer is required":                                   func() { controller.NewResource(nil, call, call) },
		"controller: NewResource: the upsert function is required":                            func() { controller.NewResource(i, nil, call) },
		"controller: NewResource: the delete function is required":                            func() { controller.NewResource(i, call, nil) },
		`controller: NewStorelessResource "x": the upsert function is required`:               func() { controller.NewStorelessResource("x", informer.InformerConfig{}, nil, call) },
		`controller: NewStorelessResource "x": the delete function is required`:               func() { controller.NewStorelessResource("x", informer.InformerConfig{}, call, nil) },
		`controller: StorelessResource "x": Handler is set, but a Resource is called instead`: func() { controller.NewStorelessResource("x", informer.InformerConfig{Handler: handler}, call, call) },
		`controller: StorelessResource "x": BatchHandler is set, but a Resource is called instead`: func() {
			controller.NewStorelessResource("x", informer.InformerConfig{BatchHandler: batches}, call, call)
		},
		`controller: StorelessResource "x": MaxBatch is set, but a Resource has no batches`: func() { controller.NewStorelessResource("x", informer.InformerConfig{MaxBatch: 5}, call, call) },
		`informer "x": ListerWatcher is required`: func() {
			run(&controller.Controller{Resource: controller.NewStorelessResource("x", informer.InformerConfig{}, call, call)})
		},
		"name is required": func() {
			run(&controller.Controller{Resource: controller.NewStorelessResource("", informer.InformerConfig{}, call, call)})
		},
		"controller: Controller.Resource is required":  func() { run(&controller.Controller{}) },
		"controller: Controller.Resource is required ": func() { controller.TestControllerRun(nil) },
		"controller: Controller.Workers is -1":         func() { run(&controller.Controller{Resource: controller.NewResource(i, call, call), Workers: -1}) },
		"controller: the Informer of controller_test.fresh is nil": func() {
			run(&controller.Controller{Resource: fresh{&target{}, func() cache.SharedIndexInformer { return nil }}})
		},
	} {
		require.PanicsWithValue(t, strings.TrimRight(want, " "), act)
	}
}

// Run returns whatever the server does, and whenever it is stopped. Client-go's informer
// sleeps for up to a minute between two failed watch-lists, also when it is to stop.
func TestRunReturnsWhateverTheServerDoes(t *testing.T) {
	for _, text := range []string{"refuse", "hang", "503", "403", "slow=10", "garbage=1"} {
		sources(t, func(t *testing.T, w *world, of func(*target) controller.Resource) {
			w.create("a/1", "a/2", "a/3")
			w.Inject(fault(w, text))
			defer w.Heal()
			for _, wait := range []time.Duration{0, time.Millisecond, time.Second, time.Minute} {
				var x target
				stop := start(&controller.Controller{Resource: of(&x)})
				time.Sleep(wait)
				before := time.Now()
				stop()
				most := time.Minute
				if _, ours := of(&x).(controller.StorelessResource); ours {
					most = time.Second
				}
				require.Less(t, time.Since(before), most, "%s after %v", text, wait)
			}
		})
	}
}

// A resource with both kinds of sources comes to the same, whatever happens on the way.
func TestBothComeToTheSame(t *testing.T) {
	sources(t, func(t *testing.T, w *world, of func(*target) controller.Resource) {
		x := &target{before: refusing(50, "upsert a/1", "delete a/2", "upsert a/3")}
		defer start(&controller.Controller{Resource: of(x), Workers: 3, MaxRetries: -1})()
		for n := range 200 {
			key := fmt.Sprintf("a/%d", n%7)
			_, exists := w.has()[key]
			switch {
			case !exists:
				w.create(key)
			case n%3 == 0:
				w.DeletePods(key)
			default:
				w.UpdatePod(key, fmt.Sprint(n))
			}
			switch {
			case n%50 == 49:
				w.unseen(func() { w.UpdatePod(slices.Sorted(maps.Keys(w.has()))[0], fmt.Sprint(n, "unseen")) })
			case n%5 == 0:
				time.Sleep(time.Duration(n) * time.Millisecond)
			}
		}
		time.Sleep(2 * time.Hour)
		require.Equal(t, w.has(), x.has())
	})
}
