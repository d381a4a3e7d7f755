package sharing_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
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

// jointModes are the modes of a list, and what the server is asked for by all handlers that start
// together: five objects in pages of two.
var jointModes = map[informer.ListMode][]string{
	informer.ListModePaged:     {"list limit=2", "list limit=2 continue", "list limit=2 continue"},
	informer.ListModeFull:      {"list rv=0"},
	informer.ListModeWatchList: {"watch-list"},
}

// forJointModes runs a test for each mode, in pages of two objects.
func forJointModes(t *testing.T, opts informertest.Options, test func(t *testing.T, w *harness.World, c informer.InformerConfig)) {
	for mode := range jointModes {
		harness.BubbleRun(t, mode.String(), opts, func(t *testing.T, w *harness.World) {
			test(t, w, informer.InformerConfig{ListMode: mode, WatchListPageSize: 2})
		})
	}
}

// recorders adds so many handlers.
func recorders(t *testing.T, s *informer.SharedResourceVersionInformer, n int) (all []*harness.Recorder) {
	for range n {
		r := &harness.Recorder{}
		harness.AddHandler(t, s, r)
		all = append(all, r)
	}
	return all
}

// slowRecorders adds a handler for each time that a call takes.
func slowRecorders(t *testing.T, s *informer.SharedResourceVersionInformer, each ...time.Duration) (all []*harness.Recorder) {
	for _, pause := range each {
		r := &harness.Recorder{Before: func(string) { time.Sleep(pause) }}
		harness.AddHandler(t, s, r)
		all = append(all, r)
	}
	return all
}

// initial are the calls for the objects of keys that a first list has.
func initial(keys []string) (calls []string) {
	for _, key := range keys {
		calls = append(calls, "add "+key+" initial")
	}
	return calls
}

// Handlers that start together are served by one list. One that comes later has its own.
func TestHandlersThatStartTogetherShareAList(t *testing.T) {
	forJointModes(t, informertest.Options{}, func(t *testing.T, w *harness.World, c informer.InformerConfig) {
		w.CreatePods(harness.Keys(5)...)
		s := harness.Share(w, c)
		all := recorders(t, s, 3)
		defer harness.Settle(s.RunWithContext)()
		require.True(t, s.HasSynced())
		require.Equal(t, jointModes[c.ListMode], w.Lists())
		for _, r := range all {
			require.Equal(t, initial(harness.Keys(5)), r.Events())
		}
		require.EqualValues(t, 1, w.Watching.Load())
		w.UpdatePod("a/0001", "changed")
		w.DeletePods("a/0002")
		w.CreatePods("a/0009")
		synctest.Wait()
		all = append(all, recorders(t, s, 1)...)
		synctest.Wait()
		require.Len(t, w.Lists(), 2*len(jointModes[c.ListMode]))
		w.RequireState(all...)
		w.RequireOneWatch()
	})
}

// So are the handlers of a ListerWatcher that decodes, and each has objects of its own.
func TestHandlersThatStartTogetherShareAListOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lists, watches atomic.Int64
		watching := watch.NewFake()
		lw := &cache.ListWatch{
			ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
				lists.Add(1)
				return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}}}, nil
			},
			WatchFunc: func(metav1.ListOptions) (watch.Interface, error) {
				watches.Add(1)
				return watching, nil
			},
		}
		s := informer.NewSharedResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lw})
		objects := make(chan interface{}, 5)
		for range 2 {
			harness.AddHandler(t, s, informer.ResourceEventHandlerFuncs{AddFunc: func(obj interface{}) { objects <- obj }})
		}
		stop := harness.Settle(s.RunWithContext)
		require.True(t, s.HasSynced())
		require.EqualValues(t, 1, lists.Load())
		require.EqualValues(t, 1, watches.Load())
		stop()
		close(objects)
		delivered := map[interface{}]bool{}
		for obj := range objects {
			delivered[obj] = true
		}
		require.Len(t, delivered, 4, "objects belong to their handler")
	})
}

// A handler with a checkpoint does not list. The others do not wait for it.
func TestHandlersThatStartBesideOneThatResumes(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		var resumes harness.Recorder
		checkpoint := w.Lived(&resumes)
		before := len(w.Lists())
		s := harness.Share(w, informer.InformerConfig{ListMode: informer.ListModePaged})
		all := recorders(t, s, 2)
		_, err := s.AddHandler(informer.HandlerConfig{Handler: &resumes, Checkpoint: checkpoint})
		require.NoError(t, err)
		defer harness.Start(s.RunWithContext)()
		time.Sleep(time.Minute)
		require.True(t, s.HasSynced())
		require.Len(t, w.Lists(), before+1)
		for _, r := range append(all, &resumes) {
			w.RequireState(r)
		}
	})
}

// large creates n objects of 4 KiB: much more than a list holds for those that are behind.
func large(w *harness.World, n int) {
	for i, key := range harness.Keys(n) {
		_, err := w.Create(harness.Pods, harness.Object(harness.Pods, key, strings.Repeat(fmt.Sprint(i%10), 4<<10)))
		require.NoError(w.T, err)
	}
}

// A handler that hangs, or is much slower than the others, holds them up for a moment. Then it lists
// for itself.
func TestASlowHandlerLeavesTheListOfTheOthers(t *testing.T) {
	for name, each := range map[string]time.Duration{"hangs": time.Hour, "is slow": 50 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			forJointModes(t, informertest.Options{}, func(t *testing.T, w *harness.World, c informer.InformerConfig) {
				c.WatchListPageSize = 100
				large(w, 300)
				s := harness.Share(w, c)
				all := recorders(t, s, 2)
				var slowly atomic.Bool
				slowly.Store(true)
				slow := &harness.Recorder{Before: func(string) {
					if slowly.Load() {
						time.Sleep(each)
					}
				}}
				_, err := s.AddHandler(informer.HandlerConfig{Handler: slow, Budget: informer.NewBudget(20 << 10)})
				require.NoError(t, err)
				defer harness.Start(s.RunWithContext)()
				time.Sleep(time.Second)
				for _, h := range s.Handlers()[:2] {
					require.True(t, h.HasSynced(), h.Name())
				}
				for _, r := range all {
					require.Equal(t, initial(harness.Keys(300)), r.Events())
				}
				w.DeletePods("a/0200")
				w.UpdatePod("a/0299", "changed")
				synctest.Wait()
				w.RequireState(all...)
				slowly.Store(false)
				time.Sleep(2 * time.Hour)
				w.RequireState(slow)
				require.True(t, s.HasSynced())
				w.RequireOneWatch()
			})
		})
	}
}

// Handlers that are all slow read one list at the pace of the fastest.
func TestHandlersThatAreAllSlowShareAList(t *testing.T) {
	forJointModes(t, informertest.Options{}, func(t *testing.T, w *harness.World, c informer.InformerConfig) {
		c.WatchListPageSize, c.Budget = 100, informer.NewBudget(100<<10)
		large(w, 300)
		s := harness.Share(w, c)
		all := slowRecorders(t, s, 50*time.Millisecond, 51*time.Millisecond, 52*time.Millisecond)
		defer harness.Start(s.RunWithContext)()
		time.Sleep(time.Minute)
		require.True(t, s.HasSynced())
		w.RequireState(all...)
		wholes := slices.DeleteFunc(w.Lists(), func(verb string) bool { return strings.Contains(verb, "continue") })
		require.Len(t, wholes, 1)
	})
}

// Whichever handler is removed in the middle of a list, the others go on with it.
func TestAHandlerIsRemovedInTheMiddleOfAList(t *testing.T) {
	for removed := range 3 {
		forJointModes(t, informertest.Options{}, func(t *testing.T, w *harness.World, c informer.InformerConfig) {
			c.WatchListPageSize, c.Budget = 100, informer.NewBudget(100<<10)
			large(w, 300)
			s := harness.Share(w, c)
			all := slowRecorders(t, s, time.Millisecond, time.Millisecond, time.Millisecond)
			defer harness.Start(s.RunWithContext)()
			time.Sleep(100 * time.Millisecond)
			require.False(t, s.HasSynced())
			lists := len(w.Lists())
			<-s.RemoveHandler(s.Handlers()[removed])
			time.Sleep(time.Minute)
			require.True(t, s.HasSynced())
			for i, r := range all {
				if i != removed {
					require.Equal(t, initial(harness.Keys(300)), r.Events())
				}
			}
			if c.ListMode == informer.ListModePaged {
				lists = 3
			}
			require.Len(t, w.Lists(), lists)
		})
	}
}

// A Run that ends in the middle of a list leaves nothing behind, and the next one lists.
func TestRunEndsInTheMiddleOfAJointList(t *testing.T) {
	for after := range 30 {
		forJointModes(t, informertest.Options{}, func(t *testing.T, w *harness.World, c informer.InformerConfig) {
			c.WatchListPageSize, c.Budget = 100, informer.NewBudget(100<<10)
			large(w, 300)
			s := harness.Share(w, c)
			all := slowRecorders(t, s, time.Millisecond, time.Millisecond)
			stop := harness.Start(s.RunWithContext)
			time.Sleep(time.Duration(after) * 12 * time.Millisecond)
			stop()
			w.DeletePods("a/0001", "a/0250")
			defer harness.Start(s.RunWithContext)()
			time.Sleep(time.Minute)
			w.RequireState(all...)
			w.RequireOneWatch()
		})
	}
}

// Whatever happens to the request of a joint list, every handler has all objects in the end.
func TestAJointListThatFails(t *testing.T) {
	for name, effect := range map[string]informertest.Effect{
		"reset": informertest.Reset(), "cut": informertest.Cut(700),
		"cut without an error": informertest.CutClean(700), "hangs": informertest.Hang(), "unavailable": informertest.Status(http.StatusServiceUnavailable),
		"forbidden": informertest.Status(http.StatusForbidden), "gone": informertest.Status(http.StatusGone),
		"garbage": informertest.Garbage(1), "too large": informertest.Oversize(1, 17<<20),
	} {
		for request := range 3 {
			t.Run(fmt.Sprint(name, " ", request), func(t *testing.T) {
				forJointModes(t, informertest.Options{}, func(t *testing.T, w *harness.World, c informer.InformerConfig) {
					w.CreatePods(harness.Keys(5)...)
					w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"list", "watch-list"}}, Effect: effect, Skip: request, Times: 1})
					s := harness.Share(w, c)
					all := recorders(t, s, 3)
					defer harness.Start(s.RunWithContext)()
					time.Sleep(10 * time.Minute)
					require.True(t, s.HasSynced())
					w.DeletePods("a/0003")
					for _, key := range []string{"a/0000", "a/0001", "a/0002", "a/0004"} {
						w.UpdatePod(key, "changed") // what could not be read is told when it changes
					}
					time.Sleep(20 * time.Minute)
					w.RequireState(all...)
					w.RequireOneWatch()
				})
			})
		}
	}
}

// What a joint list shows and cannot be read, each handler skips and counts.
func TestAnObjectOfAJointListThatCanNotBeRead(t *testing.T) {
	forJointModes(t, informertest.Options{}, func(t *testing.T, w *harness.World, c informer.InformerConfig) {
		w.CreatePods(harness.Keys(5)...)
		heal := w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"list", "watch-list"}}, Effect: informertest.Garbage(1)})
		s := harness.Share(w, c)
		all := recorders(t, s, 2)
		defer harness.Start(s.RunWithContext)()
		time.Sleep(time.Second)
		for _, h := range s.Handlers() {
			require.NotZero(t, h.Status().Skipped, h.Name())
		}
		heal()
		for _, key := range harness.Keys(5) {
			w.UpdatePod(key, "changed") // what could not be read is told when it changes
		}
		time.Sleep(time.Hour)
		w.RequireState(all...)
	})
}

// A handler that waits for its checkpoint holds up the others for a second.
func TestAHandlerWhoseCheckpointHangsHoldsUpTheOthersForASecond(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s := harness.Share(w, informer.InformerConfig{ListMode: informer.ListModePaged})
		all := recorders(t, s, 2)
		_, err := s.AddHandler(informer.HandlerConfig{Handler: &harness.Recorder{}, Checkpoint: hangingCheckpoint{}})
		require.NoError(t, err)
		defer harness.Start(s.RunWithContext)()
		time.Sleep(time.Second - time.Nanosecond)
		require.Empty(t, w.Lists())
		harness.Sleep(time.Nanosecond)
		require.Len(t, w.Lists(), 1)
		w.RequireState(all...)
	})
}

// hangingCheckpoint is a store that does not answer.
type hangingCheckpoint struct{ informer.CheckpointStore }

func (hangingCheckpoint) Load(ctx context.Context) (io.ReadCloser, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
