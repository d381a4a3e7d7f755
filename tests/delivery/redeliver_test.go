package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
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
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// updates are the calls for updates of keys.
func updates(keys ...string) (calls []string) {
	for _, key := range keys {
		calls = append(calls, "update "+key)
	}
	return calls
}

// delivered runs an informer of pods until they are delivered, and forgets that.
func delivered(w *harness.World, c informer.InformerConfig, r *harness.Recorder) (i informer.ResourceVersionInformer, stop func()) {
	w.T.Helper()
	i = harness.Follow(w, c)
	stop = w.Run(i)
	synctest.Wait()
	r.Forget()
	return i, stop
}

// redelivered is delivered, and redelivers.
func redelivered(w *harness.World, c informer.InformerConfig, r *harness.Recorder, o informer.RedeliverOptions) []string {
	w.T.Helper()
	i, _ := delivered(w, c, r)
	require.NoError(w.T, i.Redeliver(w.T.Context(), o))
	require.Nil(w.T, i.Status().Redelivery)
	w.RequireState(r)
	return r.Events()
}

// labelled is a pod with a label.
func labelled(key, app string) *unstructured.Unstructured {
	pod := harness.Object(harness.Pods, key, "labelled")
	pod.SetLabels(map[string]string{"app": app})
	return pod
}

// All objects are delivered once, as updates, over several pages, to each sort of handler, from
// each sort of list.
func TestRedeliverDeliversAllOnceAsUpdates(t *testing.T) {
	keys := harness.Keys(1200)
	for name, config := range map[string]func(r *harness.Recorder) informer.InformerConfig{
		"handler": func(r *harness.Recorder) informer.InformerConfig { return informer.InformerConfig{Handler: r} },
		"handler without syncs": func(r *harness.Recorder) informer.InformerConfig {
			return informer.InformerConfig{Handler: informer.ResourceEventHandlerFuncs{AddFunc: func(obj interface{}) { r.OnAdd(obj, false) }, UpdateFunc: r.OnUpdate, DeleteFunc: r.OnDelete}}
		},
		"workers": func(r *harness.Recorder) informer.InformerConfig {
			return informer.InformerConfig{Handler: r, Workers: 4}
		},
		"watch-list": func(r *harness.Recorder) informer.InformerConfig {
			return informer.InformerConfig{Handler: r, ListMode: informer.ListModeWatchList}
		},
		"transform": func(r *harness.Recorder) informer.InformerConfig {
			return informer.InformerConfig{Handler: r, Transform: func(obj interface{}) (interface{}, error) { return obj, nil }}
		},
		"budget of one object": func(r *harness.Recorder) informer.InformerConfig {
			return informer.InformerConfig{Handler: r, Budget: informer.NewBudget(100)}
		},
	} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(keys...)
			var r harness.Recorder
			c := config(&r)
			calls := redelivered(w, c, &r, informer.RedeliverOptions{})
			slices.Sort(calls) // of workers
			require.Equal(t, updates(keys...), calls)
			if c.Budget != nil {
				require.Zero(t, c.Budget.InUse())
			}
		})
	}
}

// Batches have few of them beside what the watch brings.
func TestRedeliverFillsBatchesInPart(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		keys := harness.Keys(1200)
		w.CreatePods(keys...)
		b := harness.Batches{}
		i, _ := delivered(w, informer.InformerConfig{BatchHandler: &b}, &b.Recorder)
		before := len(b.Sizes())
		require.NoError(t, i.Redeliver(t.Context(), informer.RedeliverOptions{}))
		require.Equal(t, updates(keys...), b.Events())
		for _, size := range b.Sizes()[before:] {
			require.LessOrEqual(t, size, 50)
		}
	})
}

// The server selects what a Selector asks for, besides what the informer selects.
func TestRedeliverSelects(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		for key, app := range map[string]string{"a/1": "web", "a/2": "db", "b/3": "web"} {
			_, err := w.Create(harness.Pods, labelled(key, app))
			require.NoError(t, err)
		}
		var r harness.Recorder
		calls := redelivered(w, informer.InformerConfig{Handler: &r}, &r, informer.RedeliverOptions{Selector: "app in (web)"})
		require.Equal(t, updates("a/1", "b/3"), calls)
	})
}

// A ListerWatcher of others may list what the Selector leaves out. It is not delivered.
func TestRedeliverSelectsFromListerWatcherThatDoesNot(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		web, db := harness.Pod("a/1", "5"), harness.Pod("a/2", "6")
		web.SetLabels(map[string]string{"app": "web"})
		db.SetLabels(map[string]string{"app": "db"})
		plain := harness.Script{
			List:  harness.Listing("9", web, db),
			Watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
		}
		var r harness.Recorder
		i, stop := delivered(w, informer.InformerConfig{ListerWatcher: plain.LW(), Handler: &r}, &r)
		defer stop()
		require.NoError(t, i.Redeliver(t.Context(), informer.RedeliverOptions{Selector: "app=web"}))
		require.Equal(t, updates("a/1"), r.Events())
	})
}

// Of Keys, those are delivered that the server has, and of the others their deletion, also if the
// handler is not known to have them.
func TestRedeliverOfKeysDeliversDeletions(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2", "a/3", "a/4")
		var r harness.Recorder
		i := harness.Settled(w, informer.InformerConfig{Handler: &r})
		w.DeletePods("a/3")
		synctest.Wait()
		r.Forget()
		require.NoError(t, i.Redeliver(t.Context(), informer.RedeliverOptions{Keys: []string{"a/4", "a/1", "a/3", "b/9", "a/4"}}))
		require.Equal(t, []string{"update a/1", "delete a/3 unknown", "update a/4", "delete b/9 unknown"}, r.Events())
		w.RequireState(&r)
	})
}

// What is wrong with the options, or with the moment, is said, and nothing is delivered.
func TestRedeliverRefuses(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		var r harness.Recorder
		i := harness.Follow(w, informer.InformerConfig{Handler: &r})
		require.ErrorIs(t, i.Redeliver(t.Context(), informer.RedeliverOptions{}), informer.ErrNotRunning)
		stop := w.Run(i)
		synctest.Wait()
		r.Forget()
		long := make([]string, 100)
		for n := range long {
			long[n] = fmt.Sprintf("a/%0400d", n)
		}
		for text, o := range map[string]informer.RedeliverOptions{
			"PerSecond is -1": {PerSecond: -1},
			"selector":        {Selector: "a in"},
			"only one":        {Selector: "a", Keys: []string{"a/1"}},
			`key "a/"`:        {Keys: []string{"a/"}},
			`key ""`:          {Keys: []string{""}},
			"bytes, 32768 is": {Keys: long},
		} {
			require.ErrorContains(t, i.Redeliver(t.Context(), o), text)
		}
		require.Nil(t, i.Status().Redelivery)
		stop()
		require.ErrorIs(t, i.Redeliver(t.Context(), informer.RedeliverOptions{}), informer.ErrNotRunning)
		require.Empty(t, r.Events())
	})
}

// An informer of one namespace cannot tell whether an object of another one is gone. What its
// selectors leave out is gone for it, as if a change had it leave.
func TestRedeliverOfKeysThatAreNotFollowed(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "b/2")
		var r harness.Recorder
		i, _ := delivered(w, informer.InformerConfig{Handler: &r, ListerWatcher: w.Factory().ForResource("a", harness.Pods)}, &r)
		for _, key := range []string{"b/2", "2", "aa/2"} {
			err := i.Redeliver(t.Context(), informer.RedeliverOptions{Keys: []string{"a/1", key}})
			require.ErrorContains(t, err, strconv.Quote(key)+` is not of namespace "a"`)
		}
		require.Empty(t, r.Events())
		require.NoError(t, i.Redeliver(t.Context(), informer.RedeliverOptions{Keys: []string{"a/1", "a/gone"}}))
		require.Equal(t, map[string]int{"update a/1": 1, "delete a/gone": 1}, count(r.Events()))

		selecting := w.Factory().ForResourceWithOptions("", harness.Pods, func(o *metav1.ListOptions) { o.LabelSelector = "app=web" })
		i, _ = delivered(w, informer.InformerConfig{Handler: &r, ListerWatcher: selecting}, &r)
		require.NoError(t, i.Redeliver(t.Context(), informer.RedeliverOptions{Keys: []string{"b/2"}}))
		require.Equal(t, map[string]int{"delete b/2": 1}, count(r.Events()))
	})
}

// So many a second are delivered; Status says how far that is; a second call is refused meanwhile,
// and the end of the context gives up.
func TestRedeliverKeepsItsPace(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		keys := harness.Keys(1000)
		w.CreatePods(keys...)
		var r harness.Recorder
		i, _ := delivered(w, informer.InformerConfig{Handler: &r}, &r)
		began := time.Now()
		ctx, cancel := context.WithCancelCause(t.Context())
		done := redeliver(ctx, i, informer.RedeliverOptions{PerSecond: 10})
		harness.Sleep(50*time.Second + time.Millisecond)
		require.InDelta(t, 500, len(r.Events()), 2)
		s := i.Status().Redelivery
		require.NotNil(t, s)
		require.Equal(t, began.UnixNano(), s.Started.UnixNano())
		require.EqualValues(t, len(r.Events()), s.Done)
		require.EqualValues(t, 1000, s.Total)
		require.Equal(t, keys[s.Done-1], s.Position)
		require.Equal(t, 10, s.PerSecond)
		require.NoError(t, s.Err)
		require.ErrorIs(t, i.Redeliver(t.Context(), informer.RedeliverOptions{}), informer.ErrRedelivering)
		enough := errors.New("enough")
		cancel(enough)
		require.ErrorIs(t, <-done, enough)
		require.Nil(t, i.Status().Redelivery)
		delivered := len(r.Events())
		time.Sleep(time.Minute)
		require.Len(t, r.Events(), delivered)
		require.NoError(t, i.Redeliver(t.Context(), informer.RedeliverOptions{}))
		require.Len(t, r.Events(), delivered+1000)
	})
}

// An object that is deleted meanwhile is deleted once, and one that changes is never delivered in an
// older state after a newer one, while the watch is behind the list or the list behind the watch.
func TestRedeliverBesideChanges(t *testing.T) {
	for name, late := range map[string]time.Duration{"watch is late": 100 * time.Millisecond, "list is late": time.Millisecond} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(1500)...)
			versions := versionsOf{}
			var r harness.Recorder
			i, _ := delivered(w, informer.InformerConfig{Handler: ordered{&r, &versions}}, &r)
			defer w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch"}}, Effect: informertest.Delay(late)})()
			done := redeliver(t.Context(), i, informer.RedeliverOptions{PerSecond: 150})
			for n := range 40 {
				time.Sleep(250 * time.Millisecond)
				w.UpdatePod(fmt.Sprintf("a/%04d", n*10), "changed")
				w.UpdatePod(fmt.Sprintf("a/%04d", 1499-n*10), "changed")
				w.DeletePods(fmt.Sprintf("a/%04d", n*10+1), fmt.Sprintf("a/%04d", 1499-n*10-1))
				w.CreatePods(fmt.Sprintf("a/%04d-new", n*10))
			}
			require.NoError(t, <-done)
			harness.Sleep(time.Minute)
			w.RequireState(&r)
			require.Empty(t, versions.wrong())
			calls := count(r.Events())
			for n := range 1500 {
				key := fmt.Sprintf("a/%04d", n)
				if deletions := calls["delete "+key]; deletions > 0 {
					require.Equal(t, 1, deletions)
					continue
				}
				require.Positive(t, calls["update "+key], key)
			}
		})
	}
}

// count counts calls. All calls for deletions are equal.
func count(calls []string) map[string]int {
	n := map[string]int{}
	for _, call := range calls {
		n[strings.TrimSuffix(call, " unknown")]++
	}
	return n
}

// ordered is a handler that has the order of versions checked.
type ordered struct {
	*harness.Recorder
	versions *versionsOf
}

func (o ordered) OnAdd(obj interface{}, initial bool) {
	o.versions.see(obj)
	o.Recorder.OnAdd(obj, initial)
}

func (o ordered) OnUpdate(old, obj interface{}) {
	o.versions.see(obj)
	o.Recorder.OnUpdate(old, obj)
}

// versionsOf has the newest version that a handler was given of each key.
type versionsOf struct {
	mu     sync.Mutex
	newest map[string]int
	errs   []string
}

func (v *versionsOf) see(obj interface{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	key, version := harness.Key(obj), 0
	_, _ = fmt.Sscan(obj.(*unstructured.Unstructured).GetResourceVersion(), &version)
	if v.newest == nil {
		v.newest = map[string]int{}
	}
	if version < v.newest[key] {
		v.errs = append(v.errs, fmt.Sprintf("%s in version %d after %d", key, version, v.newest[key]))
	}
	v.newest[key] = version
}

func (v *versionsOf) wrong() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.errs
}

// What the handler fails for comes again, and Redeliver waits for it. Other keys go on, and neither
// the resource version nor WaitUntil waits for it.
func TestRedeliverWaitsForWhatFails(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		keys := harness.Keys(300)
		w.CreatePods(keys...)
		var mu sync.Mutex
		failing := false
		fails := func(on bool) {
			mu.Lock()
			defer mu.Unlock()
			failing = on
		}
		b := harness.Batches{Fail: func(batch []string) error {
			mu.Lock()
			defer mu.Unlock()
			if !failing {
				return nil
			}
			return refusing(batch, "a/0007")
		}}
		i, _ := delivered(w, informer.InformerConfig{BatchHandler: &b}, &b.Recorder)
		fails(true)
		done := redeliver(t.Context(), i, informer.RedeliverOptions{})
		harness.Sleep(time.Minute)
		require.Len(t, b.Events(), 299)
		require.Equal(t, "a/0006", i.Status().Redelivery.Position)
		require.EqualValues(t, 299, i.Status().Redelivery.Done)
		w.CreatePods("z/new")
		require.NoError(t, i.WaitUntil(t.Context(), w.ResourceVersion()))
		require.Equal(t, w.ResourceVersion(), i.Status().ResourceVersion)
		fails(false)
		require.NoError(t, <-done)
		require.Contains(t, b.Events(), "update a/0007")
		w.RequireState(&b.Recorder)
	})
}

// A run that ends, or a process that is killed, leaves a redelivery with which the next one goes on,
// from about where it was.
func TestRedeliverGoesOnInTheNextRun(t *testing.T) {
	keys := harness.Keys(2000)
	for name, killed := range map[string]bool{"stopped": false, "killed": true} {
		for kind, file := range map[string]bool{"file": true, "store": false} {
			harness.BubbleRun(t, name+" "+kind, informertest.Options{}, func(t *testing.T, w *harness.World) {
				w.CreatePods(keys...)
				plain := &harness.MemoryCheckpoint{}
				store := informer.CheckpointStore(plain)
				path := filepath.Join(t.TempDir(), "pods")
				if file {
					store = informer.FileCheckpoint(path)
				}
				var r harness.Recorder
				i := harness.Follow(w, informer.InformerConfig{Handler: &r, Checkpoint: store})
				stop := w.Run(i)
				harness.Sleep(time.Second)
				r.Forget()
				done := redeliver(t.Context(), i, informer.RedeliverOptions{PerSecond: 10})
				harness.Sleep(100 * time.Second)
				require.InDelta(t, 1000, len(r.Events()), 20)
				next := store
				switch {
				case killed && file:
					next = informer.FileCheckpoint(copyOf(t, path))
				case killed:
					next = plain.Killed()
				}
				before := r.Events()
				stop()
				require.ErrorIs(t, <-done, informer.ErrStopped)
				require.NotNil(t, i.Status().Redelivery)
				again := harness.Recorder{Folded: r.State()}
				w.DeletePods("a/1500")
				i = harness.Follow(w, informer.InformerConfig{Handler: &again, Checkpoint: next})
				w.Run(i)
				harness.Sleep(time.Second)
				s := i.Status().Redelivery
				require.NotNil(t, s)
				require.Equal(t, 10, s.PerSecond)
				require.ErrorIs(t, i.Redeliver(t.Context(), informer.RedeliverOptions{}), informer.ErrRedelivering)
				harness.Sleep(200 * time.Second)
				require.Nil(t, i.Status().Redelivery)
				all := count(append(before, again.Events()...))
				for _, key := range keys {
					if key != "a/1500" {
						require.Positive(t, all["update "+key], key)
					}
				}
				require.Equal(t, 1, all["delete a/1500"])
				twice := len(before) + len(again.Events()) - 2000
				most := 20
				if killed {
					most = 620 // of a minute
				}
				require.LessOrEqual(t, twice, most)
				w.RequireState(&again)
			})
		}
	}
}

// copyOf is a copy of a checkpoint, as a kill leaves it.
func copyOf(t *testing.T, path string) string {
	t.Helper()
	content, err := informer.FileCheckpoint(path).Load(t.Context())
	require.NoError(t, err)
	defer content.Close()
	b, err := io.ReadAll(content)
	require.NoError(t, err)
	other := path + "-killed"
	require.NoError(t, os.WriteFile(other, b, 0o600))
	return other
}

// Each handler of a shared informer can have its own.
func TestRedeliverToSharedHandlers(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		keys := harness.Keys(30)
		w.CreatePods(keys...)
		s := harness.Share(w, informer.InformerConfig{})
		require.ErrorIs(t, s.Redeliver(t.Context(), informer.RedeliverOptions{}), informer.ErrNoHandler)
		var one, two harness.Recorder
		h := harness.AddHandler(t, s, &one)
		harness.AddHandler(t, s, &two)
		defer harness.Settle(s.RunWithContext)()
		one.Forget()
		two.Forget()
		require.NoError(t, h.Redeliver(t.Context(), informer.RedeliverOptions{}))
		require.Equal(t, updates(keys...), one.Events())
		require.Empty(t, two.Events())
		require.NoError(t, s.Redeliver(t.Context(), informer.RedeliverOptions{Keys: keys[:1]}))
		require.Equal(t, updates(append(keys, keys[0])...), one.Events())
		require.Equal(t, updates(keys[0]), two.Events())
	})
}

// Requests that fail, pages that are cut, tokens that expire: each key comes, and none is left out.
func TestRedeliverOverFaults(t *testing.T) {
	for name, effect := range map[string]informertest.Effect{
		"expired": informertest.Status(410), "unavailable": informertest.Status(503), "reset": informertest.Reset(), "cut": informertest.Cut(3000),
		"slow down": informertest.Status(429).RetryAfter(time.Second), "garbage": informertest.Garbage(3),
	} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			keys := harness.Keys(1700)
			w.CreatePods(keys...)
			var r harness.Recorder
			i, _ := delivered(w, informer.InformerConfig{Handler: &r}, &r)
			w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"list"}}, Effect: effect, Times: 3, Skip: 1})
			require.NoError(t, i.Redeliver(t.Context(), informer.RedeliverOptions{PerSecond: 1000}))
			calls := r.Events()
			slices.Sort(calls)
			if name == "garbage" {
				require.GreaterOrEqual(t, len(calls), 1697)
				return
			}
			require.Equal(t, updates(keys...), calls)
		})
	}
}

// An answer whose only object cannot be read, not even its name, does not say that the object is gone.
func TestRedeliverDeletesNothingThatCannotBeRead(t *testing.T) {
	for media, with := range map[string]func(*rest.Config) *rest.Config{
		"json": func(c *rest.Config) *rest.Config { return c }, "protobuf": harness.Protobuf,
	} {
		harness.BubbleRun(t, media, informertest.Options{}, func(t *testing.T, w *harness.World) {
			var poison atomic.Bool
			b := harness.Batches{Fail: func(batch []string) error {
				if poison.Load() {
					return refusing(batch, "a/1")
				}
				return nil
			}}
			i := harness.Running(w, informer.InformerConfig{
				BatchHandler: &b, MaxAttempts: 1, ListerWatcher: harness.ListerOf(t, with(w.Config())), ExampleObject: &metav1.PartialObjectMetadata{},
			})
			w.CreatePods("a/1")
			synctest.Wait()
			poison.Store(true)
			w.UpdatePod("a/1", "changed")
			time.Sleep(time.Second)
			require.Equal(t, []string{"a/1"}, letterKeys(i))
			poison.Store(false)
			b.Forget()
			w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"list"}, With: "fieldSelector"}, Effect: informertest.Garbage(1)})
			for _, o := range []informer.RedeliverOptions{{}, {Keys: []string{"a/1"}}} {
				require.NoError(t, i.Redeliver(t.Context(), o))
			}
			require.Empty(t, b.Events())
			require.Equal(t, []string{"a/1"}, letterKeys(i))
			w.Heal()
			require.NoError(t, i.Redeliver(t.Context(), informer.RedeliverOptions{}))
			require.Equal(t, updates("a/1"), b.Events())
			require.Empty(t, letterKeys(i))
		})
	}
}

// While the informer lists, nothing is delivered again, so that no object that is gone counts as
// shown. A server that was restored from a backup is followed to its older state.
func TestRedeliverBesideARestoredServer(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		keys := harness.Keys(600)
		w.CreatePods(keys...)
		backup := w.Backup()
		w.CreatePods("z/gone")
		w.UpdatePod("a/0500", "newer")
		var r harness.Recorder
		i, _ := delivered(w, informer.InformerConfig{Handler: &r}, &r)
		done := redeliver(t.Context(), i, informer.RedeliverOptions{PerSecond: 10})
		time.Sleep(10 * time.Second)
		w.Restore(backup)
		time.Sleep(10 * time.Second)
		w.UpdatePod("a/0400", "after")
		require.NoError(t, <-done)
		harness.Sleep(3 * time.Minute)
		w.RequireState(&r)
		calls := count(r.Events())
		require.Equal(t, 1, calls["delete z/gone"])
		for _, key := range keys {
			require.Positive(t, calls["update "+key]+calls["add "+key], key)
		}
	})
}

// Redeliver tries dead letters again: what the server has in its newest state, and what it lacks as a
// deletion; also in a process that has them from its checkpoint. Those that fail again stay.
func TestRedeliverTriesDeadLettersAgain(t *testing.T) {
	for name, restarts := range map[string]bool{"same process": false, "next process": true} {
		for which, o := range map[string]informer.RedeliverOptions{
			"all": {}, "keys": {Keys: []string{"a/1", "a/2", "a/3", "a/4"}},
		} {
			harness.BubbleRun(t, name+" "+which, informertest.Options{}, func(t *testing.T, w *harness.World) {
				var mu sync.Mutex
				poison := []string{"a/1", "a/2", "a/3", "a/4"}
				b := harness.Batches{Fail: func(batch []string) error {
					mu.Lock()
					defer mu.Unlock()
					return refusing(batch, poison...)
				}}
				store := &harness.MemoryCheckpoint{}
				config := informer.InformerConfig{BatchHandler: &b, MaxAttempts: 2, Checkpoint: store}
				i := harness.Follow(w, config)
				stop := w.Run(i)
				synctest.Wait()
				mu.Lock()
				poison = nil
				mu.Unlock()
				w.CreatePods("a/1", "a/2", "a/5")
				synctest.Wait()
				mu.Lock()
				poison = []string{"a/1", "a/2", "a/3", "a/4"}
				mu.Unlock()
				w.CreatePods("a/3", "a/4")
				w.UpdatePod("a/1", "changed")
				time.Sleep(time.Minute)
				w.DeletePods("a/2", "a/4") // known, and not known
				time.Sleep(time.Minute)
				require.Equal(t, []string{"a/1", "a/2", "a/3", "a/4"}, letterKeys(i))
				if restarts {
					stop()
					i = harness.Follow(w, config)
					w.Run(i)
					time.Sleep(time.Minute)
				}
				require.Equal(t, []string{"a/1", "a/2", "a/3", "a/4"}, letterKeys(i))
				b.Forget()
				require.NoError(t, i.Redeliver(t.Context(), o))
				require.Equal(t, []string{"a/1", "a/2", "a/3", "a/4"}, letterKeys(i))
				mu.Lock()
				poison = nil
				mu.Unlock()
				b.Forget()
				require.NoError(t, i.Redeliver(t.Context(), o))
				require.Empty(t, letterKeys(i))
				calls := b.Events()
				slices.Sort(calls)
				want := []string{"add a/3", "delete a/2 unknown", "delete a/4 unknown", "update a/1"}
				if o.Keys == nil {
					want = append(want, "update a/5")
				}
				require.Equal(t, want, calls)
				w.RequireState(&b.Recorder)
			})
		}
	}
}

// A run that ends in the middle of a redelivery returns after the last call of the handler.
func TestRunEndsInTheMiddleOfARedelivery(t *testing.T) {
	keys := harness.Keys(100)
	for n := range 50 {
		harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(keys...)
			var ended atomic.Bool
			b := harness.Batches{Fail: func([]string) error {
				if ended.Load() {
					t.Error("the handler was called after the end of the run")
				}
				return nil
			}}
			i := harness.Follow(w, informer.InformerConfig{BatchHandler: &b, Workers: 4})
			stop := w.Run(i)
			synctest.Wait()
			done := redeliver(t.Context(), i, informer.RedeliverOptions{})
			for range n * 20 {
				runtime.Gosched()
			}
			stop()
			ended.Store(true)
			if err := <-done; err != nil && !errors.Is(err, informer.ErrNotRunning) {
				require.ErrorIs(t, err, informer.ErrStopped)
			}
		})
	}
}
