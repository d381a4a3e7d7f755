package informer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
)

// quarter is the first half of half.
var quarter = informer.Shard{Key: informer.ShardByUID, End: 1 << 62}

// owned are what a handler believes of those objects that are in a shard. A handler is not told what it is to forget.
func (w *world) owned(r *recorder, s informer.Shard, uids map[string]string) map[string]string {
	state := r.state()
	maps.DeleteFunc(state, func(key, _ string) bool {
		namespace, _, _ := strings.Cut(key, "/")
		return !s.Includes(namespace, uids[key])
	})
	return state
}

// uids are those of the pods.
func (w *world) uids() map[string]string {
	objects, err := w.List(pods, "")
	require.NoError(w.t, err)
	uids := map[string]string{}
	for _, o := range objects {
		uids[key(o)] = string(o.GetUID())
	}
	return uids
}

// TestSetShard changes the shard of an informer that runs. Only what comes to the shard is listed, in a list that asks for no more; what leaves it
// is not told, and the watch goes on.
func TestSetShard(t *testing.T) {
	upper := informer.Shard{Key: informer.ShardByUID, Start: 1 << 63}
	middle := informer.Shard{Key: informer.ShardByUID, Start: 1 << 62, End: 3 << 62}
	all := informer.Shard{}
	for _, test := range []struct {
		name     string
		from, to informer.Shard
		// lists is how many are read, and selector what the first one asks for.
		lists    int
		selector string
	}{
		{"wider", quarter, half, 1, informer.Shard{Key: informer.ShardByUID, Start: 1 << 62, End: 1 << 63}.String()},
		{"to all", middle, all, 1, quarter.String() + " || " + informer.Shard{Key: informer.ShardByUID, Start: 3 << 62}.String()},
		{"narrower", half, quarter, 0, ""},
		{"from all", all, half, 0, ""},
		{"moved", half, middle, 1, informer.Shard{Key: informer.ShardByUID, Start: 1 << 63, End: 3 << 62}.String()},
		{"disjoint", half, upper, 1, upper.String()},
		{"another key", half, informer.Shard{Key: informer.ShardByNamespace, End: 1 << 63}, 1, informer.Shard{Key: informer.ShardByNamespace, End: 1 << 63}.String()},
		{"the same", half, half, 0, ""},
	} {
		for _, known := range []bool{false, true} {
			for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeWatchList} {
				t.Run(fmt.Sprintf("%s/known=%v/%v", test.name, known, mode), func(t *testing.T) {
					bubble(t, informertest.Options{ShardedListAndWatch: known}, func(t *testing.T, w *world) {
						w.create(keys(60)...)
						var r recorder
						var f failures
						i := follow(w, informer.InformerConfig{Handler: &r, Shard: test.from, ListMode: mode, ErrorHandler: f.handle})
						defer start(i.RunWithContext)()
						<-i.HasSyncedChecker().Done()
						time.Sleep(time.Minute)
						w.ResetRequests()
						r.forget()
						require.NoError(t, i.SetShard(test.to))
						require.Equal(t, test.to, i.Status().Shard)
						synctest.Wait()
						time.Sleep(time.Second)
						synctest.Wait()
						require.True(t, i.Status().ShardListed)
						uids := w.uids()
						require.Equal(t, w.shardOf(pods, test.to), w.owned(&r, test.to, uids))
						require.Equal(t, len(w.shardOf(pods, test.to)), i.Status().Objects)
						for _, event := range r.events() {
							_, k, _ := strings.Cut(event, " ")
							require.True(t, strings.HasPrefix(event, "add ") || strings.HasPrefix(event, "sync "), event)
							if test.from.Key == test.to.Key {
								require.False(t, test.from.Includes("a", uids[k]), event)
							}
						}
						lists := 0
						for _, request := range w.Requests() {
							if request.Verb == "list" {
								if lists == 0 {
									require.Equal(t, test.selector, request.Options.ShardSelector)
								}
								lists++
							}
						}
						if mode == informer.ListModePaged || test.lists == 0 {
							require.Equal(t, test.lists, lists)
						}
						// What happens now is told by the watch of the new shard.
						lastKnown := r.state()
						for n, k := range keys(60) {
							switch n % 3 {
							case 0:
								w.update(k, "2")
							case 1:
								w.remove(k)
							}
						}
						w.create("b/1", "b/2", "b/3", "b/4")
						synctest.Wait()
						now := w.uids()
						last := maps.Clone(uids)
						maps.Copy(last, now)
						require.Equal(t, w.shardOf(pods, test.to), w.owned(&r, test.to, last))
						for k := range lastKnown {
							if _, exists := now[k]; !exists && test.to.Includes("a", uids[k]) {
								require.Contains(t, r.events(), "delete "+k)
							}
						}
						errs, _ := f.all()
						require.Empty(t, errs)
					})
				})
			}
		}
	}
}

// TestSetShardMissesNothingInBetween changes objects of the part that stays and of the part that comes while that is listed: nothing of the
// first is missed, and the second ends as it is at the server.
func TestSetShardMissesNothingInBetween(t *testing.T) {
	for _, known := range []bool{false, true} {
		t.Run(fmt.Sprintf("known=%v", known), func(t *testing.T) {
			var during atomic.Pointer[func()]
			wrap := before(func(_ http.ResponseWriter, r *http.Request) bool {
				if continues(r) {
					if act := during.Swap(nil); act != nil {
						(*act)()
					}
				}
				return true
			})
			bubble(t, informertest.Options{ShardedListAndWatch: known, Wrap: wrap}, func(t *testing.T, w *world) {
				w.create(keys(60)...)
				var r recorder
				i := follow(w, informer.InformerConfig{Handler: &r, Shard: half, WatchListPageSize: 7})
				defer start(i.RunWithContext)()
				<-i.HasSyncedChecker().Done()
				before := r.state()
				during.Store(new(func() {
					for n, k := range keys(60) {
						switch n % 4 {
						case 0:
							w.update(k, "2")
						case 1:
							w.remove(k)
						case 2: // another object of the name
							w.remove(k)
							w.create(k)
						}
					}
					w.create("b/1", "b/2", "b/3", "b/4", "b/5")
				}))
				require.NoError(t, i.SetShard(informer.Shard{}))
				synctest.Wait()
				require.Nil(t, during.Load())
				w.requireState(&r)
				for n, k := range keys(60) {
					if _, had := before[k]; had && n%4 == 1 {
						require.Contains(t, r.events(), "delete "+k)
					}
				}
				require.Equal(t, 50, i.Status().Objects)
			})
		})
	}
}

// TestSetShardWhileListing changes the shard before the first list is complete.
func TestSetShardWhileListing(t *testing.T) {
	for name, to := range map[string]informer.Shard{"wider": {}, "narrower": quarter, "disjoint": {Key: informer.ShardByUID, Start: 1 << 63}} {
		for at := range 3 {
			t.Run(fmt.Sprintf("%s/page %d", name, at), func(t *testing.T) {
				var set atomic.Pointer[func()]
				var page atomic.Int64
				wrap := before(func(_ http.ResponseWriter, r *http.Request) bool {
					if !isWatch(r) && r.URL.Query().Has("continue") || r.URL.Query().Get("limit") == "7" {
						if page.Add(1) > int64(at) {
							if act := set.Swap(nil); act != nil {
								(*act)()
							}
						}
					}
					return true
				})
				bubble(t, informertest.Options{ShardedListAndWatch: true, Wrap: wrap}, func(t *testing.T, w *world) {
					w.create(keys(60)...)
					var r recorder
					i := follow(w, informer.InformerConfig{Handler: &r, Shard: half, WatchListPageSize: 7})
					set.Store(new(func() { require.NoError(t, i.SetShard(to)) }))
					defer start(i.RunWithContext)()
					<-i.HasSyncedChecker().Done()
					synctest.Wait()
					require.Nil(t, set.Load())
					require.True(t, i.Status().ShardListed)
					require.Equal(t, w.shardOf(pods, to), w.owned(&r, to, w.uids()))
					require.Equal(t, len(w.shardOf(pods, to)), i.Status().Objects)
					require.NotContains(t, strings.Join(r.events(), "\n"), "delete")
				})
			})
		}
	}
}

// TestSetShardOfABlockedHandler drops what waits of the part that is given up, although the queue is full and the handler fails: otherwise it
// would never come to the new shard.
func TestSetShardOfABlockedHandler(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3000)...)
		uids := w.uids()
		upper := informer.Shard{Key: informer.ShardByUID, Start: 1 << 63}
		var mu sync.Mutex
		refused := half // what another writer owns
		seen := map[string]bool{}
		handler := informer.BatchHandlerFunc(func(_ context.Context, events []informer.Event) error {
			mu.Lock()
			defer mu.Unlock()
			for _, e := range events {
				if refused.Includes("a", uids[e.Key]) {
					return fmt.Errorf("%s is another's", e.Key)
				}
			}
			for _, e := range events {
				seen[e.Key] = true
			}
			return nil
		})
		i := follow(w, informer.InformerConfig{BatchHandler: handler, Shard: half})
		defer start(i.RunWithContext)()
		time.Sleep(10 * time.Minute)
		require.Positive(t, i.Status().Queued)
		require.NoError(t, i.SetShard(upper))
		time.Sleep(time.Minute)
		require.True(t, i.HasSynced())
		require.Zero(t, i.Status().Queued)
		require.Equal(t, slices.Sorted(maps.Keys(w.shardOf(pods, upper))), slices.Sorted(maps.Keys(seen)))
	})
}

// TestShardListedWhenAcknowledged has a handler take its time for what has come to a shard, whatever list shows it. Until then, the status does not
// claim it, and nor does that of another run.
func TestShardListedWhenAcknowledged(t *testing.T) {
	for name, to := range map[string]informer.Shard{
		"wider":       {},
		"disjoint":    {Key: informer.ShardByUID, Start: 1 << 63},
		"another key": {Key: informer.ShardByNamespace, Start: 1 << 63},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
				w.create(keys(40)...)
				w.create("b/1", "c/1", "d/1", "e/1", "f/1", "g/1")
				var slow atomic.Bool
				release := make(chan struct{})
				handler := informer.BatchHandlerFunc(func(ctx context.Context, _ []informer.Event) error {
					if !slow.Load() {
						return nil
					}
					select {
					case <-release:
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				})
				i := follow(w, informer.InformerConfig{BatchHandler: handler, Shard: half})
				stop := start(i.RunWithContext)
				<-i.HasSyncedChecker().Done()
				require.True(t, i.Status().ShardListed)
				slow.Store(true)
				require.NoError(t, i.SetShard(to))
				time.Sleep(time.Minute)
				require.Positive(t, i.Status().Queued)
				require.False(t, i.Status().ShardListed)
				stop()
				require.False(t, i.Status().ShardListed)
				defer start(i.RunWithContext)()
				time.Sleep(time.Minute)
				require.Positive(t, i.Status().Queued)
				require.False(t, i.Status().ShardListed)
				close(release)
				time.Sleep(time.Minute)
				require.Zero(t, i.Status().Queued)
				require.True(t, i.Status().ShardListed)
				require.Equal(t, len(w.shardOf(pods, to)), i.Status().Objects)
			})
		})
	}
}

// TestSetShardAwayAndBackDuringACall takes an object from an informer, and gives it back, while the handler is told of it. The handler has dropped it
// meanwhile, so it is told again, or told that it is gone.
func TestSetShardAwayAndBackDuringACall(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		t.Run(fmt.Sprintf("deleted=%v", deleted), func(t *testing.T) {
			bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
				w.create("a/b")
				of := informer.Shard{Key: informer.ShardByNamespace}.Split(2)
				if !of[0].Includes("a", "") {
					of[0], of[1] = of[1], of[0]
				}
				release := make(chan struct{})
				var mu sync.Mutex
				var told []string
				handler := informer.BatchHandlerFunc(func(_ context.Context, events []informer.Event) error {
					mu.Lock()
					for _, e := range events {
						told = append(told, string(e.Type)+" "+e.Key)
					}
					mu.Unlock()
					<-release
					return nil
				})
				storage := informer.NewResourceVersionStorage()
				i := follow(w, informer.InformerConfig{BatchHandler: handler, Shard: of[0], Storage: storage})
				defer start(i.RunWithContext)()
				time.Sleep(time.Second)
				require.NoError(t, i.SetShard(of[1]))
				require.NoError(t, i.SetShard(of[0]))
				if deleted {
					w.remove("a/b")
				}
				time.Sleep(time.Minute)
				close(release)
				time.Sleep(10 * time.Minute)
				mu.Lock()
				defer mu.Unlock()
				if deleted {
					require.Equal(t, []string{"Added a/b", "Deleted a/b"}, told)
				} else {
					require.Equal(t, []string{"Added a/b", "Updated a/b"}, told)
				}
				require.True(t, i.Status().ShardListed)
				require.Equal(t, w.shardOf(pods, of[0]), maps.Collect(storage.All()))
			})
		})
	}
}

// TestFailureForWhatHasLeftTheShardIsForgotten has a handler fail for objects that leave the shard then, or during the call.
func TestFailureForWhatHasLeftTheShardIsForgotten(t *testing.T) {
	for _, during := range []bool{false, true} {
		t.Run(fmt.Sprintf("during=%v", during), func(t *testing.T) {
			bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
				w.create(keys(20)...)
				entered, release := make(chan struct{}, 1), make(chan struct{})
				handler := informer.BatchHandlerFunc(func(context.Context, []informer.Event) error {
					select {
					case entered <- struct{}{}:
					default:
						return nil
					}
					if during {
						<-release
					}
					return errors.New("no")
				})
				i := follow(w, informer.InformerConfig{BatchHandler: handler, MaxBatch: 100, ErrorHandler: (&failures{}).handle})
				entered <- struct{}{}
				defer start(i.RunWithContext)()
				<-i.HasSyncedChecker().Done()
				<-entered
				var one string // is all that waits for the handler
				for k, uid := range w.uids() {
					if half.Includes("", uid) {
						one = k
					}
				}
				w.update(one, "2")
				synctest.Wait()
				if !during {
					require.Error(t, i.Status().LastError)
				}
				require.NoError(t, i.SetShard(informer.Shard{Key: informer.ShardByUID, Start: 1 << 63}))
				close(release)
				synctest.Wait()
				require.Zero(t, i.Status().Queued)
				require.NoError(t, i.Status().LastError)
			})
		})
	}
}

// TestSetShardBeforeAndAfterRun sets the shard of an informer that does not run.
func TestSetShardBeforeAndAfterRun(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(40)...)
		var r recorder
		i := follow(w, informer.InformerConfig{Handler: &r})
		require.NoError(t, i.SetShard(half))
		stop := start(i.RunWithContext)
		<-i.HasSyncedChecker().Done()
		require.Equal(t, w.shardOf(pods, half), r.state())
		stop()
		require.NoError(t, i.SetShard(quarter))
		r.forget()
		defer start(i.RunWithContext)()
		time.Sleep(time.Minute)
		require.NotContains(t, strings.Join(r.events(), "\n"), "delete")
		require.Equal(t, len(w.shardOf(pods, quarter)), i.Status().Objects)

		err := i.SetShard(informer.Shard{Key: informer.ShardByUID, Start: 5, End: 5})
		require.EqualError(t, err, "pods: shard from 0x0000000000000005 to 0x0000000000000005: the range is empty")
		require.Equal(t, quarter, i.Status().Shard)
	})
}

// TestSetShardOfASharedInformer changes the shard of all handlers, also of one that is added later, and they share a watch again.
func TestSetShardOfASharedInformer(t *testing.T) {
	bubble(t, informertest.Options{ShardedListAndWatch: true}, func(t *testing.T, w *world) {
		w.create(keys(40)...)
		s := informer.NewSharedResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: w.lister(), Shard: quarter, ListMode: informer.ListModePaged, ErrorHandler: (&failures{}).handle,
		})
		var handlers [3]recorder
		for n := range 2 {
			_, err := s.AddEventHandler(&handlers[n])
			require.NoError(t, err)
		}
		defer start(s.RunWithContext)()
		<-s.HasSyncedChecker().Done()
		require.Error(t, s.SetShard(informer.Shard{Start: 1}))
		require.NoError(t, s.SetShard(half))
		_, err := s.AddEventHandler(&handlers[2])
		require.NoError(t, err)
		time.Sleep(time.Minute)
		w.update("a/0001", "2")
		w.remove(keys(10)...)
		w.create("b/1", "b/2", "b/3", "b/4")
		synctest.Wait()
		for n := range handlers {
			require.Equal(t, w.shardOf(pods, half), handlers[n].state(), "handler %d", n)
		}
		require.True(t, s.Status().ShardListed)
		require.Equal(t, half, s.Status().Shard)
		require.EqualValues(t, 1, w.watching.Load())
	})
}

// TestSetShardAtRandom changes the shards of some informers at random, while objects change at random. In between, they are a partition, and then
// each object is with the informer of its shard, and with no other.
func TestSetShardAtRandom(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 1))
			options := informertest.Options{ShardedListAndWatch: dice.IntN(2) == 0}
			bubble(t, options, func(t *testing.T, w *world) {
				const informers = 4
				split := func() []informer.Shard {
					bounds := []uint64{0}
					for range informers - 1 {
						bounds = append(bounds, 1+dice.Uint64N(1<<64-1))
					}
					slices.Sort(bounds)
					k := informer.ShardByUID
					if dice.IntN(4) == 0 {
						k = informer.ShardByNamespace
					}
					shards := make([]informer.Shard, informers)
					for n := range shards {
						shards[n] = informer.Shard{Key: k, Start: bounds[n], End: append(bounds, 0)[n+1]}
					}
					return shards
				}
				shards := split()
				handlers := make([]holder, informers)
				storages := make([]*informer.ResourceVersionStorage, informers)
				all := make([]informer.ResourceVersionInformer, informers)
				modes := []informer.ListMode{informer.ListModePaged, informer.ListModeFull, informer.ListModeWatchList}
				for n := range all {
					storages[n] = informer.NewResourceVersionStorage()
					handlers[n].w, handlers[n].shard = w, shards[n]
					all[n] = follow(w, informer.InformerConfig{
						Handler: &handlers[n], Shard: shards[n], Storage: storages[n], WatchListPageSize: 5, ListMode: modes[dice.IntN(len(modes))], Workers: 1 + dice.IntN(2),
					})
					defer start(all[n].RunWithContext)()
				}
				names := keys(40)
				for n := range names {
					names[n] = fmt.Sprintf("n%d/%d", n%7, n)
				}
				exists := map[string]bool{}
				for range 30 {
					for range dice.IntN(30) {
						k := names[dice.IntN(len(names))]
						switch {
						case !exists[k]:
							w.create(k)
							exists[k] = true
						case dice.IntN(2) == 0:
							w.remove(k)
							exists[k] = false
						default:
							w.update(k, fmt.Sprint(dice.Uint64()))
						}
						if dice.IntN(3) == 0 {
							time.Sleep(time.Duration(dice.IntN(300)) * time.Millisecond)
						}
					}
					if dice.IntN(8) == 0 {
						w.Compact()
					}
					if dice.IntN(3) == 0 {
						shards = split()
						for _, n := range dice.Perm(informers) {
							handlers[n].begin(shards[n])
							require.NoError(t, all[n].SetShard(shards[n]))
							handlers[n].forget()
							time.Sleep(time.Duration(dice.IntN(20)) * time.Millisecond)
						}
					}
				}
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				for n, s := range shards {
					want := w.shardOf(pods, s)
					require.Equal(t, want, maps.Collect(storages[n].All()), "informer %d of %v", n, s)
					require.Equal(t, want, handlers[n].of(s), "informer %d of %v", n, s)
					require.Empty(t, handlers[n].wrong)
					require.True(t, all[n].Status().ShardListed)
				}
			})
		})
	}
}

// holder is a handler that keeps UID and version of what it is told, and is slow at times. It notes a deletion of an object that is there.
type holder struct {
	w *world

	mu    sync.Mutex
	shard informer.Shard
	has   map[string]metav1.ObjectMeta
	wrong []string
}

func (h *holder) OnAdd(obj interface{}, _ bool) { h.keep(obj) }
func (h *holder) OnUpdate(_, obj interface{})   { h.keep(obj) }
func (h *holder) OnSync(obj interface{})        { h.keep(obj) }

func (h *holder) keep(obj interface{}) {
	if rand.IntN(10) == 0 {
		time.Sleep(rand.N(time.Second))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.has == nil {
		h.has = map[string]metav1.ObjectMeta{}
	}
	m := obj.(metav1.Object)
	if !h.shard.Includes(m.GetNamespace(), string(m.GetUID())) { // the call was under way when the shard was changed
		return
	}
	h.has[key(obj)] = metav1.ObjectMeta{Namespace: m.GetNamespace(), UID: m.GetUID(), ResourceVersion: m.GetResourceVersion()}
}

func (h *holder) OnDelete(obj interface{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	uid := obj.(metav1.Object).GetUID()
	name, _ := cache.ParseObjectName(key(obj))
	if now, err := h.w.Get(pods, name.Namespace, name.Name); err == nil && now.GetUID() == uid {
		h.wrong = append(h.wrong, fmt.Sprintf("%s with UID %s is there", key(obj), uid))
	}
	delete(h.has, key(obj))
}

// of are the versions of what it has of a shard.
func (h *holder) of(s informer.Shard) map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	state := map[string]string{}
	for k, m := range h.has {
		if s.Includes(m.Namespace, string(m.UID)) {
			state[k] = m.ResourceVersion
		}
	}
	return state
}

// begin has it keep what is in a shard, which is set next: calls for what comes to it begin before SetShard has returned.
func (h *holder) begin(s informer.Shard) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shard = s
}

// forget drops what is not in the shard that was set, as a user does whose part another one takes over.
func (h *holder) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.has, func(_ string, m metav1.ObjectMeta) bool { return !h.shard.Includes(m.Namespace, string(m.UID)) })
}

// TestCheckpointAfterSetShard goes on from the checkpoint that is saved after a change of the shard, as one that was killed at any step does.
func TestCheckpointAfterSetShard(t *testing.T) {
	for name, to := range map[string]informer.Shard{"narrower": quarter, "wider": {}, "moved": {Key: informer.ShardByUID, Start: 1 << 62, End: 3 << 62}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
				w.create(keys(60)...)
				dir := t.TempDir()
				path := filepath.Join(dir, "pods")
				var mu sync.Mutex
				var copies []string
				keep := func() {
					mu.Lock()
					defer mu.Unlock()
					copied := fmt.Sprintf("%s-%d", path, len(copies))
					content, err := os.ReadFile(path)
					require.NoError(t, err)
					require.NoError(t, os.WriteFile(copied, content, 0o600))
					copies = append(copies, copied)
				}
				known := recorder{}
				i := follow(w, informer.InformerConfig{Handler: &known, Shard: half, Checkpoint: informer.FileCheckpoint(path), CheckpointInterval: time.Second, WatchListPageSize: 5})
				var keeping atomic.Bool
				known.before = func(string) {
					if keeping.Load() {
						keep()
					}
				}
				stop := start(i.RunWithContext)
				<-i.HasSyncedChecker().Done()
				time.Sleep(time.Minute)
				keep()
				keeping.Store(true)
				require.NoError(t, i.SetShard(to))
				keep()
				synctest.Wait()
				keep()
				time.Sleep(time.Minute)
				keep()
				keeping.Store(false)
				stop()
				keep()
				had := w.shardOf(pods, to) // before these changes
				w.remove(keys(20)...)
				w.create("b/1", "b/2", "b/3", "b/4")
				for _, copied := range copies {
					for _, s := range []informer.Shard{half, to} {
						var r recorder
						r.folded = maps.Clone(had)
						if s == half {
							r.folded = nil
						}
						i := follow(w, informer.InformerConfig{Handler: &r, Shard: s, Storage: informer.NewResourceVersionStorage(), Checkpoint: readOnly{informer.FileCheckpoint(copied)}})
						stop := start(i.RunWithContext)
						<-i.HasSyncedChecker().Done()
						synctest.Wait()
						stop()
						require.NoError(t, i.Status().CheckpointError, copied)
						require.Equal(t, len(w.shardOf(pods, s)), i.Status().Objects, "%s of %v", copied, s)
						if s == to { // what was delivered, and is gone, is deleted
							for k := range w.shardOf(pods, s) {
								delete(r.folded, k)
							}
							for k := range r.folded {
								require.NotContains(t, r.events(), "add "+k)
							}
						}
					}
				}
			})
		})
	}
}

// TestCheckpointOfAnotherShard begins with the checkpoint of a shard that was left without a run. What both shards have is known by it; the informer
// lists all, tells what is gone, and has a checkpoint of its own afterwards.
func TestCheckpointOfAnotherShard(t *testing.T) {
	upper := informer.Shard{Key: informer.ShardByUID, Start: 1 << 63}
	named := informer.Shard{Key: informer.ShardByNamespace, Start: 1 << 63}
	for _, test := range []struct {
		name string
		// made is the shard with which the second informer is made, which finds a checkpoint of half, and to the one that is set.
		made, to informer.Shard
		// waits: it is set while the run waits for its server.
		waits bool
	}{
		{"made with another key", named, named, false},
		{"another key, set before the run", half, named, false},
		{"disjoint, set before the run", half, upper, false},
		{"disjoint, set while the run waits", half, upper, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
				for n := range 30 {
					w.create(fmt.Sprintf("a/%d", n), fmt.Sprintf("other/%d", n))
				}
				path := filepath.Join(t.TempDir(), "pods")
				run := func(made, to informer.Shard) (*recorder, informer.ResourceVersionInformer) {
					var r recorder
					i := follow(w, informer.InformerConfig{Handler: &r, Shard: made, Checkpoint: informer.FileCheckpoint(path)})
					begin := func() (stop func()) { return start(i.RunWithContext) }
					if test.waits && made != to {
						w.down(func() {
							stop := begin()
							begin = func() func() { return stop }
							time.Sleep(time.Minute)
							require.NoError(t, i.SetShard(to))
						})
					}
					require.NoError(t, i.SetShard(to))
					stop := begin()
					<-i.HasSyncedChecker().Done()
					synctest.Wait()
					stop()
					require.NoError(t, i.Status().CheckpointError)
					require.Equal(t, len(w.shardOf(pods, to)), i.Status().Objects)
					return &r, i
				}
				first, _ := run(half, half)
				uids := w.uids()
				for n := range 10 {
					w.remove(fmt.Sprintf("a/%d", n), fmt.Sprintf("other/%d", n))
				}
				for k, uid := range uids {
					namespace, _, _ := strings.Cut(k, "/")
					if !half.Includes(namespace, uid) || !test.to.Includes(namespace, uid) {
						delete(first.folded, k)
					}
				}
				second, _ := run(test.made, test.to)
				require.Equal(t, test.to == upper, len(first.folded) == 0)
				for k := range first.folded { // what is in both
					_, exists := w.shardOf(pods, test.to)[k]
					told := strings.Join(second.events(), "\n") + "\n"
					require.Equal(t, !exists, strings.Contains(told, "delete "+k), k)
					require.NotContains(t, told, "add "+k+"\n")
				}
				_, third := run(test.to, test.to)
				require.NotEmpty(t, third.Status().ResumedFrom)
			})
		})
	}
}

// readOnly is a store that has what it had.
type readOnly struct{ informer.CheckpointStore }

func (readOnly) Save(context.Context, func(io.Writer) error) error { return nil }

// TestPartIsHandedOverWithoutAList narrows one informer, and has another one go on with the rest from a copy of the checkpoint.
func TestPartIsHandedOverWithoutAList(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(60)...)
		path := filepath.Join(t.TempDir(), "pods")
		var first, second recorder
		config := informer.InformerConfig{Handler: &first, Shard: half, Checkpoint: informer.FileCheckpoint(path), CheckpointInterval: time.Second}
		i := follow(w, config)
		defer start(i.RunWithContext)()
		<-i.HasSyncedChecker().Done()
		time.Sleep(time.Minute)
		w.update("a/0000", "2")
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path+".copy", content, 0o600))
		require.NoError(t, i.SetShard(quarter))
		gone := w.shardOf(pods, half)
		w.remove(keys(30)...)
		synctest.Wait()

		rest := informer.Shard{Key: informer.ShardByUID, Start: 1 << 62, End: 1 << 63}
		w.ResetRequests()
		j := follow(w, informer.InformerConfig{Handler: &second, Shard: rest, Checkpoint: informer.FileCheckpoint(path + ".copy")})
		defer start(j.RunWithContext)()
		<-j.HasSyncedChecker().Done()
		synctest.Wait()
		require.Empty(t, w.lists())
		require.Equal(t, len(w.shardOf(pods, rest)), j.Status().Objects)
		require.Equal(t, len(w.shardOf(pods, quarter)), i.Status().Objects)
		deleted := 0
		for _, k := range keys(30) {
			if _, had := gone[k]; had {
				deleted++
				require.True(t, slices.Contains(first.events(), "delete "+k) != slices.Contains(second.events(), "delete "+k), "%s is deleted once", k)
			}
		}
		require.Positive(t, deleted)
	})
}
