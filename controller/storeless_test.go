package controller_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/controller"
	"github.com/rvinformer/informer/tests/harness"
)

// storeless is a Resource that brings x in line without a store.
func (w *world) storeless(x *target, config informer.InformerConfig) controller.StorelessResource {
	w.Helper()
	if config.ListerWatcher == nil {
		config.ListerWatcher = w.Lister()
	}
	return controller.NewStorelessResource("pods", config, x.Upsert, x.Delete)
}

// Upsert gets the object of the event, Delete its final state, or what was last known of it
// where a list found the deletion.
func TestStorelessUpsertAndDelete(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("a/1", "a/2")
		var x target
		storage := informer.NewResourceVersionStorage()
		c := &controller.Controller{Resource: w.storeless(&x, informer.InformerConfig{Storage: storage})}
		require.False(w, c.HasSynced())
		require.Empty(w, c.LastSyncResourceVersion())
		defer start(c)()
		synctest.Wait()
		require.True(w, c.HasSynced())
		require.Equal(w, []string{"upsert a/1=1", "upsert a/2=1"}, x.told())
		require.Equal(w, w.ResourceVersion(), c.LastSyncResourceVersion())

		w.UpdatePod("a/1", "2")
		synctest.Wait()
		w.DeletePods("a/1")
		w.create("b/3")
		synctest.Wait()
		require.Equal(w, []string{"upsert a/1=2", "delete a/1=2", "upsert b/3=1"}, x.told())

		version, _, err := storage.GetByKey("a/2")
		require.NoError(w, err)
		w.unseen(func() { w.DeletePods("a/2") })
		time.Sleep(5 * time.Minute)
		require.Equal(w, []string{fmt.Sprintf("delete a/2=rv%v", version)}, x.told())
		require.Equal(w, w.has(), x.has())
	})
}

// What has failed is tried again with the newest object. It is acknowledged once it was
// done, and HasSynced waits for that.
func TestStorelessAcknowledgesWhatIsDone(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("a/1", "a/2")
		x := target{before: refusing(3, "upsert a/1")}
		storage := informer.NewResourceVersionStorage()
		var gone givenUp
		c := &controller.Controller{Resource: w.storeless(&x, informer.InformerConfig{Storage: storage}), OnGiveUp: gone.add}
		defer start(c)()
		synctest.Wait()
		_, known, _ := storage.GetByKey("a/1")
		require.False(w, known)
		require.Equal(w, 1, storage.Len(), "others go on")
		require.False(w, c.HasSynced())
		w.UpdatePod("a/1", "2")
		time.Sleep(time.Minute)
		require.True(w, c.HasSynced())
		require.Equal(w, 2, storage.Len())
		require.Equal(w, []string{"upsert a/1=1", "upsert a/2=1", "upsert a/1=2", "upsert a/1=2", "upsert a/1=2"}, x.told())
		require.Empty(w, gone.list())
		require.Empty(w, w.reported(), "a failure that is tried again is logged, no more")
	})
}

// What was given up counts as acknowledged: it is not told again, not even after a restart,
// before it changes.
func TestStorelessGivesUp(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("a/1")
		x := target{before: refusing(6, "upsert a/1")}
		storage := informer.NewResourceVersionStorage()
		var gone givenUp
		c := &controller.Controller{Resource: w.storeless(&x, informer.InformerConfig{Storage: storage}), OnGiveUp: gone.add}
		stop := start(c)
		time.Sleep(time.Minute)
		require.Equal(w, slices.Repeat([]string{"upsert a/1=1"}, 6), x.told())
		require.Equal(w, []string{`a/1=1: Upsert "a/1", attempt 6: refused`}, gone.list())
		require.True(w, c.HasSynced())
		require.Equal(w, 1, storage.Len())
		require.Len(w, w.reported(), 1)
		stop()
		defer start(&controller.Controller{Resource: w.storeless(&x, informer.InformerConfig{Storage: storage})})()
		time.Sleep(time.Minute)
		require.Empty(w, x.told())
		w.UpdatePod("a/1", "2")
		time.Sleep(time.Minute)
		require.Equal(w, []string{"upsert a/1=2"}, x.told())
	})
}

// An object that is given up is acknowledged when the hook has returned. So a program that writes
// the object down in the hook does not lose it.
func TestStorelessIsAcknowledgedAfterTheHook(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("a/1")
		x := target{before: refusing(-1, "upsert")}
		storage := informer.NewResourceVersionStorage()
		written := make(chan struct{})
		c := &controller.Controller{Resource: w.storeless(&x, informer.InformerConfig{Storage: storage}), MaxRetries: 1}
		var told atomic.Int32
		c.OnGiveUp = func(controller.Event, error) {
			told.Add(1)
			<-written
		}
		defer start(c)()
		time.Sleep(time.Hour)
		require.EqualValues(w, 1, told.Load())
		require.Zero(w, storage.Len())
		require.False(w, c.HasSynced())
		close(written)
		synctest.Wait()
		require.Equal(w, 1, storage.Len())
		require.True(w, c.HasSynced())
	})
}

// A Run that follows another goes on from what was acknowledged; so does a process whose
// Storage was filled.
func TestStorelessRunsAgain(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("a/1", "a/2", "a/3")
		x := target{before: refusing(1, "upsert a/2")}
		c := &controller.Controller{Resource: w.storeless(&x, informer.InformerConfig{})}
		stop := start(c)
		synctest.Wait()
		stop()
		x.told()
		w.UpdatePod("a/3", "2")
		w.DeletePods("a/1")
		stop = start(c)
		synctest.Wait()
		require.ElementsMatch(w, []string{"upsert a/2=1", "upsert a/3=2", "delete a/1=rv2"}, x.told())
		require.True(w, c.HasSynced())
		stop()
		require.Equal(w, w.has(), x.has())
		require.Empty(w, w.reported())
	})
}

// What waits when Run ends is not processed, but told by the next.
func TestStorelessStops(t *testing.T) {
	bubble(t, func(w *world) {
		for n := range 20 {
			w.create(fmt.Sprintf("a/%d", n))
		}
		busy := make(chan struct{})
		x := target{before: func(string) error {
			<-busy
			return nil
		}}
		c := &controller.Controller{Resource: w.storeless(&x, informer.InformerConfig{})}
		stop := start(c)
		synctest.Wait()
		var returned atomic.Bool
		var stopping sync.WaitGroup
		stopping.Go(func() {
			stop()
			returned.Store(true)
		})
		synctest.Wait()
		require.False(w, returned.Load(), "Run has returned before Upsert did")
		close(busy)
		stopping.Wait()
		require.Len(w, x.told(), 1)
		require.False(w, c.HasSynced())
		defer start(c)()
		synctest.Wait()
		require.Len(w, x.told(), 19)
		require.Equal(w, w.has(), x.has())
	})
}

// The controller's Workers are the informer's.
func TestStorelessWorkers(t *testing.T) {
	for workers, want := range map[int]int{0: 2, 5: 5} {
		bubble(t, func(w *world) {
			for n := range 20 {
				w.create(fmt.Sprintf("a/%d", n))
			}
			busy := make(chan struct{})
			x := target{before: func(string) error {
				<-busy
				return nil
			}}
			defer start(&controller.Controller{Resource: w.storeless(&x, informer.InformerConfig{Workers: 2}), Workers: workers})()
			synctest.Wait()
			require.Len(w, x.told(), want)
			close(busy)
		})
	}
}

// Objects are decoded as ExampleObject says.
func TestStorelessRawObjects(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("a/1")
		var kinds []string
		kind := func(_ string, obj interface{}) error {
			raw, ok := obj.(*informer.RawObject)
			if !ok {
				kinds = append(kinds, fmt.Sprintf("%T", obj))
				return nil
			}
			var decoded unstructured.Unstructured
			require.NoError(w, raw.Decode(&decoded))
			kinds = append(kinds, "raw of value "+valueOf(&decoded))
			return nil
		}
		config := informer.InformerConfig{ListerWatcher: w.Lister(), ExampleObject: &informer.RawObject{}}
		stop := start(&controller.Controller{Resource: controller.NewStorelessResource("pods", config, kind, kind)})
		synctest.Wait()
		w.unseen(func() { w.DeletePods("a/1") })
		time.Sleep(5 * time.Minute)
		stop()
		require.Equal(w, []string{"raw of value 1", "*v1.PartialObjectMetadata"}, kinds)
	})
}

// What goes wrong between informer and server is for the ErrorHandler; what is held is not.
func TestStorelessErrorHandler(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("a/1")
		x := target{before: refusing(1, "upsert")}
		var seen harness.Failures
		config := informer.InformerConfig{ErrorHandler: seen.Handle}
		defer start(&controller.Controller{Resource: w.storeless(&x, config)})()
		time.Sleep(time.Minute)
		require.Len(w, seen.Errors(), 1)
		var batch *informer.BatchError
		require.ErrorAs(w, seen.Errors()[0], &batch)
		require.ErrorIs(w, batch, errRefused)
		require.Equal(w, []string{"a/1"}, batch.Keys)

		// Without one, the controller has logged it.
		w.create("a/2")
		y := target{before: refusing(1, "upsert a/2")}
		defer start(&controller.Controller{Resource: w.storeless(&y, informer.InformerConfig{})})()
		time.Sleep(time.Minute)
		require.Equal(w, w.has(), y.has())
		require.Empty(w, w.reported())
	})
}

// initialEvents answers the first watch-list with events, and then waits for more, an end
// bookmark or anything else; later requests are the server's.
type initialEvents struct {
	events []string
	more   chan string
	once   sync.Once
}

func (e *initialEvents) wrap(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first := false
		if r.URL.Query().Get("sendInitialEvents") != "" {
			e.once.Do(func() { first = true })
		}
		if !first {
			server.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		for _, event := range e.events {
			e.write(w, event)
		}
		for {
			select {
			case event := <-e.more:
				e.write(w, event)
			case <-r.Context().Done():
				return
			}
		}
	})
}

func (e *initialEvents) write(w http.ResponseWriter, event string) {
	_, _ = io.WriteString(w, event+"\n")
	_ = http.NewResponseController(w).Flush()
}

func eventOf(change, name, rv, value string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"Pod","apiVersion":"v1","data":%q,"metadata":{"namespace":"a","name":%q,"uid":"u%s","resourceVersion":%q}}}`, change, value, name, name, rv)
}

const endBookmark = `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}`

// No Delete is called before the first list was read to its end, also not for what the
// server tells to be deleted in the middle of it.
func TestStorelessDeleteIsHeldUntilTheListWasRead(t *testing.T) {
	initial := &initialEvents{}
	bubbleWith(t, initial.wrap, func(w *world) {
		initial.events = []string{eventOf("ADDED", "1", "2", "1"), eventOf("ADDED", "2", "3", "1")}
		initial.more = make(chan string)
		storage := informer.NewResourceVersionStorage()
		require.NoError(w, storage.Replace(map[string]interface{}{"a/gone": "1"}))
		var x target
		var seen harness.Failures
		config := informer.InformerConfig{Storage: storage, ErrorHandler: seen.Handle}
		c := &controller.Controller{Resource: w.storeless(&x, config)}
		defer start(c)()
		synctest.Wait()
		initial.more <- eventOf("DELETED", "1", "8", "1")
		time.Sleep(5 * time.Second)
		initial.more <- eventOf("ADDED", "3", "4", "1")
		time.Sleep(5 * time.Second)
		require.Equal(w, []string{"upsert a/1=1", "upsert a/2=1", "upsert a/3=1"}, x.told())
		require.False(w, c.HasSynced())

		initial.more <- endBookmark
		synctest.Wait()
		require.Equal(w, []string{"delete a/gone=rv1"}, x.told(), "what the list did not show")
		time.Sleep(time.Minute)
		require.Equal(w, []string{"delete a/1=1"}, x.told())
		require.True(w, c.HasSynced())
		require.Equal(w, 2, storage.Len())
		require.Empty(w, seen.Errors(), "that is no failure")
		require.Empty(w, w.reported())
	})
}

// A Delete that is held has not failed, however often it is tried meanwhile.
func TestHeldDeleteOfAnInformerWithMaxAttempts(t *testing.T) {
	initial := &initialEvents{}
	bubbleWith(t, initial.wrap, func(w *world) {
		initial.events = []string{eventOf("ADDED", "1", "2", "1"), eventOf("ADDED", "2", "3", "1")}
		initial.more = make(chan string)
		var x target
		c := &controller.Controller{Resource: w.storeless(&x, informer.InformerConfig{MaxAttempts: 3})}
		defer start(c)()
		synctest.Wait()
		initial.more <- eventOf("DELETED", "1", "8", "1")
		for n := range 10 { // the handler takes others in
			time.Sleep(2 * time.Second)
			initial.more <- eventOf("ADDED", fmt.Sprint(n+3), fmt.Sprint(n+10), "1")
		}
		require.NotContains(w, x.told(), "delete a/1=1")
		initial.more <- endBookmark
		time.Sleep(time.Minute)
		require.Contains(w, x.told(), "delete a/1=1")
	})
}

// unversioned lists one pod, without a resource version for the list, and watches in vain.
func unversioned() cache.ListerWatcher {
	there := harness.Object(pods, "a/1", "1")
	there.SetResourceVersion("1")
	return harness.Script{
		List:  harness.Listing("", there),
		Watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
	}.LW()
}

// A list without a resource version is a complete list too.
func TestStorelessDeletesAfterAListWithoutAVersion(t *testing.T) {
	for name, resource := range map[string]func(*world, *target, *informer.ResourceVersionStorage) controller.Resource{
		"StorelessResource": func(w *world, x *target, storage *informer.ResourceVersionStorage) controller.Resource {
			return w.storeless(x, informer.InformerConfig{ListerWatcher: unversioned(), Storage: storage})
		},
		"HandlerResource": func(w *world, x *target, storage *informer.ResourceVersionStorage) controller.Resource {
			shared := harness.Share(w.World, informer.InformerConfig{ListerWatcher: unversioned()})
			w.Cleanup(harness.Start(shared.RunWithContext))
			return controller.NewHandlerResource(shared, informer.HandlerConfig{Storage: storage}, x.Upsert, x.Delete)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				storage := informer.NewResourceVersionStorage()
				require.NoError(w, storage.Replace(map[string]interface{}{"a/gone": "1"}))
				var x target
				c := &controller.Controller{Resource: resource(w, &x, storage)}
				defer start(c)()
				time.Sleep(5 * time.Minute) // "a/gone" is known in a version, so three such lists are believed
				require.ElementsMatch(w, []string{"upsert a/1=1", "delete a/gone=rv1"}, x.told())
				require.True(w, c.HasSynced())
			})
		})
	}
}

// What is held does not hold the list up for ever: here, it spends the budget.
func TestStorelessWhatIsHeldLetsTheListGoOn(t *testing.T) {
	initial := &initialEvents{}
	bubbleWith(t, initial.wrap, func(w *world) {
		initial.more = make(chan string)
		large := strings.Repeat("x", 200<<10) // more than buffers take
		for n := range 5 {
			initial.events = append(initial.events, eventOf("ADDED", fmt.Sprint(n), fmt.Sprint(n+1), large))
		}
		for n := range 5 {
			initial.events = append(initial.events, eventOf("DELETED", fmt.Sprint(n), fmt.Sprint(n+10), large))
		}
		initial.events = append(initial.events, eventOf("ADDED", "last", "16", ""), strings.Replace(endBookmark, `"9"`, `"20"`, 1))
		var x target
		c := &controller.Controller{Resource: w.storeless(&x, informer.InformerConfig{Budget: informer.NewBudget(1000)})}
		defer start(c)()
		time.Sleep(90 * time.Second)
		require.Len(w, x.has(), 5, "the first deletion is held, and nothing more is read")
		x.told()
		time.Sleep(30 * time.Minute)
		require.True(w, c.HasSynced())
		told := x.told()
		require.Contains(w, told, "upsert a/last=")
		for n := range 5 {
			require.Contains(w, told, fmt.Sprintf("delete a/%d=%s", n, large))
		}
	})
}

// A process that goes on from a checkpoint is told what the one before did not get done,
// and nothing that it did; there is no list.
func TestStorelessGoesOnFromACheckpoint(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("a/1", "a/2", "a/3")
		x := target{before: refusing(-1, "upsert a/2=2", "delete a/3")}
		s := &harness.MemoryCheckpoint{}
		stop := start(&controller.Controller{Resource: w.storeless(&x, informer.InformerConfig{Checkpoint: s}), MaxRetries: -1})
		synctest.Wait()
		w.UpdatePod("a/2", "2")
		w.DeletePods("a/3")
		w.UpdatePod("a/1", "2")
		time.Sleep(5 * time.Minute)
		require.Equal(w, map[string]string{"a/1": "2", "a/2": "1", "a/3": "1"}, x.has())
		left := s.Killed()
		stop()
		x.told()
		x.before = nil
		w.ResetRequests()
		defer start(&controller.Controller{Resource: w.storeless(&x, informer.InformerConfig{Checkpoint: left})})()
		synctest.Wait()
		require.Equal(w, w.has(), x.has())
		told := x.told()
		slices.Sort(told)
		require.Equal(w, []string{"delete a/3=1", "upsert a/2=2"}, slices.DeleteFunc(told, func(call string) bool {
			return call == "upsert a/1=2" // acknowledged, but behind what was not
		}))
		for _, r := range w.Requests() {
			if !strings.Contains(r.Options.FieldSelector, "metadata.name=") { // whether the server was restored
				require.NotEqual(w, "list", r.Verb)
			}
		}
	})
}

// Random histories, failures, kills and stops: in the end the target has what the server
// has.
func TestStorelessTorture(t *testing.T) {
	for seed := range uint64(20) {
		bubble(t, func(w *world) { torment(w, rand.New(rand.NewPCG(seed, 6))) })
	}
}

func torment(w *world, random *rand.Rand) {
	var dice sync.Mutex
	fails, thrown := true, rand.New(rand.NewPCG(random.Uint64(), 1))
	chance := func(n int) bool {
		dice.Lock()
		defer dice.Unlock()
		return fails && thrown.IntN(n) == 0
	}
	x := &target{before: func(string) error {
		if chance(3) {
			return errRefused
		}
		return nil
	}}
	s := &harness.MemoryCheckpoint{}
	for range 6 {
		config := informer.InformerConfig{Checkpoint: s, CheckpointInterval: time.Second, ListMode: informer.ListModePaged}
		stop := start(&controller.Controller{Resource: w.storeless(x, config), MaxRetries: -1, Workers: 1 + random.IntN(3)})
		for range 40 {
			w.change(random)
			time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
		}
		if random.IntN(2) == 0 {
			left := s.Killed()
			stop()
			s = left
		} else {
			stop()
		}
	}
	dice.Lock()
	fails = false
	dice.Unlock()
	stop := start(&controller.Controller{Resource: w.storeless(x, informer.InformerConfig{Checkpoint: s})})
	time.Sleep(10 * time.Minute)
	stop()
	require.Equal(w, w.has(), x.has())
}

// change makes a random change of one of ten objects.
func (w *world) change(random *rand.Rand) {
	key := fmt.Sprintf("a/%d", random.IntN(10))
	value := fmt.Sprint(random.IntN(1000))
	_, exists := w.has()[key]
	switch {
	case !exists:
		w.create(key)
	case random.IntN(3) == 0:
		w.DeletePods(key)
	default:
		w.UpdatePod(key, value)
	}
}
