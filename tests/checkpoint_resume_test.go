package tests_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
)

// lived follows the pods until the handler has acknowledged all of them, and returns the
// checkpoint that is left when it ends. What the handler was told is forgotten, but not
// the state that it has.
func (w *world) lived(r *recorder) *memoryCheckpoint {
	w.t.Helper()
	s := &memoryCheckpoint{}
	stop := w.run(follow(w, informer.InformerConfig{Handler: r, Checkpoint: s}))
	time.Sleep(10 * time.Second)
	stop()
	w.requireSaved(s)
	w.ResetRequests()
	r.forget()
	return s
}

// What is known of an informer that resumes: nothing is listed, and nothing is initial.
func TestResumeStatus(t *testing.T) {
	opening := make(chan struct{})
	var hold atomic.Bool
	wrap := before(func(w http.ResponseWriter, r *http.Request) bool {
		if hold.Load() && isWatch(r) {
			<-opening
		}
		return true
	})
	bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *world) {
		opening = make(chan struct{}) // of the bubble
		w.create(keys(3)...)
		r := &recorder{}
		s := w.lived(r)
		saved := readSaved(t, s.bytes()).resume
		hold.Store(true)
		w.create("a/new")
		i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
		require.Equal(t, informer.PhaseIdle, i.Status().Phase)
		w.run(i)
		synctest.Wait()
		time.Sleep(5 * time.Second)
		require.False(t, i.HasSynced(), "the server has not answered")
		require.Equal(t, 3, i.Status().Objects)
		require.Equal(t, informer.PhaseWatching, i.Status().Phase)
		require.Equal(t, saved, i.Status().ResourceVersion)
		require.Equal(t, saved, i.LastSyncResourceVersion())

		close(opening)
		synctest.Wait()
		require.True(t, i.HasSynced())
		require.Equal(t, []string{"add a/new"}, r.events(), "not initial: no list brought it")
		status := i.Status()
		require.True(t, status.Synced)
		require.Equal(t, 4, status.Objects)
		require.Equal(t, informer.PhaseWatching, status.Phase)
		require.Equal(t, informer.ListModePaged, status.ListMode)
		require.Equal(t, w.ResourceVersion(), status.ResourceVersion)
		require.Equal(t, w.ResourceVersion(), i.LastSyncResourceVersion())
		require.NoError(t, status.LastError)
		require.Zero(t, status.Queued)
		require.Empty(t, w.lists())
		w.requireState(r)
	})
}

// Where nothing happens, an informer is synced once the server had the time to refuse.
func TestResumeWhereNothingHappened(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		r := &recorder{}
		s := w.lived(r)
		i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
		stop := w.run(i)
		time.Sleep(3 * time.Second)
		require.True(t, i.HasSynced())
		require.Empty(t, r.events())
		before := s.saves()
		stop()
		require.Equal(t, before, s.saves())
		require.Empty(t, w.lists())
	})
}

// A server that says that it has the version makes a quiet resume synced within milliseconds.
func TestQuietResumeIsSyncedByAnAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		forbidden bool
		create    bool
	}{"kube-system is read": {create: true}, "kube-system is missing": {}, "kube-system is forbidden": {forbidden: true}} {
		t.Run(name, func(t *testing.T) {
			wrap := before(func(rw http.ResponseWriter, r *http.Request) bool {
				if test.forbidden && strings.HasSuffix(r.URL.Path, "/kube-system") {
					failWith(rw, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
					return false
				}
				return true
			})
			bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *world) {
				if test.create {
					w.createKubeSystem()
				}
				w.create(keys(3)...)
				r := &recorder{}
				s := w.lived(r)
				i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
				w.run(i)
				time.Sleep(100 * time.Millisecond)
				require.True(t, i.HasSynced())
				require.Empty(t, r.events())
				require.Empty(t, w.lists())
			})
		})
	}
}

// The forms of an answer that says that a version is forgotten.
func TestResumeFromAVersionThatIsGone(t *testing.T) {
	var armed atomic.Bool
	goneByStatus := before(func(w http.ResponseWriter, r *http.Request) bool {
		if !isWatch(r) || isWatchList(r) || !armed.CompareAndSwap(true, false) {
			return true
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusGone)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old resource version","reason":"Expired","code":410}`))
		return false
	})
	for name, wrap := range map[string]func(http.Handler) http.Handler{"status": goneByStatus, "event": nil} {
		for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeFull, informer.ListModeWatchList} {
			t.Run(name+", "+mode.String(), func(t *testing.T) {
				bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *world) {
					w.create(keys(3)...)
					r := &recorder{}
					s := w.lived(r)
					w.update("a/0000", "changed")
					w.remove("a/0001")
					w.create("a/new")
					if name == "event" {
						w.Compact()
					} else {
						armed.Store(true)
					}
					i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, ListMode: mode})
					w.run(i)
					time.Sleep(time.Minute)
					require.True(t, i.HasSynced())
					require.ElementsMatch(t, []string{"update a/0000", "sync a/0002", "add a/new initial", "delete a/0001 unknown"}, r.events())
					require.Equal(t, "delete a/0001 unknown", r.events()[3], "the sweep is last")
					require.Len(t, w.lists(), 1, "asked %v", w.verbs())
					w.requireState(r)
					w.requireSaved(s)
				})
			})
		}
	}
}

// A server whose versions went back, for it was restored from a backup, is listed
// consistently, and what differs is told.
func TestResumeAfterTheServerWasRestored(t *testing.T) {
	for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeFull, informer.ListModeWatchList} {
		t.Run(mode.String(), func(t *testing.T) {
			bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
				w.create(keys(3)...)
				for n := range 10 {
					w.update("a/0000", fmt.Sprint(n))
				}
				r := &recorder{}
				s := w.lived(r)
				w.SetResourceVersion(5) // a/0000 is of this version then
				w.remove("a/0001")
				w.create("a/new")
				i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, ListMode: mode})
				w.run(i)
				time.Sleep(time.Minute)
				require.True(t, i.HasSynced())
				require.ElementsMatch(t, []string{"update a/0000", "sync a/0002", "add a/new initial", "delete a/0001 unknown"}, r.events())
				w.requireState(r)
				require.Equal(t, w.ResourceVersion(), i.Status().ResourceVersion)
				w.update("a/0000", "again")
				w.remove("a/new")
				synctest.Wait()
				w.requireState(r)
				time.Sleep(2 * time.Minute)
				w.requireSaved(s)
				// What was known before the backup is of no matter any more.
				w.ResetRequests()
				w.relist()
				require.Len(t, w.lists(), 1, "asked %v", w.verbs())
				w.requireState(r)
			})
		})
	}
}

// ahead leaves a checkpoint with an object that is newer than the version to go on from,
// as it is where one handler call takes long, and what the handler was told. The object
// is a/0001, in versions of two updates.
func (w *world) ahead(r *recorder) *memoryCheckpoint {
	w.t.Helper()
	w.create(keys(3)...)
	s := &memoryCheckpoint{}
	var slow atomic.Bool
	var inner recorder
	inner.before = func(call string) {
		if slow.Load() && strings.HasSuffix(call, "a/0000") {
			time.Sleep(time.Hour)
		}
	}
	stop := w.run(follow(w, informer.InformerConfig{Handler: &inner, Checkpoint: s, Workers: 2, CheckpointInterval: time.Minute}))
	synctest.Wait()
	slow.Store(true)
	w.update("a/0000", "slow")
	synctest.Wait()
	w.update("a/0001", "1")
	synctest.Wait()
	w.update("a/0001", "2")
	time.Sleep(3 * time.Minute)
	left := s.killed()
	r.folded = inner.state()
	stop()
	c := readSaved(w.t, left.bytes())
	require.Equal(w.t, "4", c.resume)
	require.Equal(w.t, w.ResourceVersion(), c.versions["a/0001"].ResourceVersion)
	w.ResetRequests()
	return left
}

// Never back in time: when a watch repeats events, the handler is not told those that are older
// than the checkpoint.
func TestResumeNeverGoesBack(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		r := &recorder{}
		s := w.ahead(r)
		i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
		w.run(i)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"update a/0000"}, r.events())
		require.EqualValues(t, 2, i.Status().Stale)
		require.Empty(t, w.lists())
		w.requireState(r)
	})
}

// A list after a resume that failed asks for the newest version that the checkpoint
// knows, which may be that of an object: a replica that lags is not believed.
func TestResumeDoesNotBelieveALaggingReplica(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		r := &recorder{}
		s := w.ahead(r)
		newest := w.ResourceVersion()
		w.Compact()
		i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, ListMode: informer.ListModeFull})
		w.run(i)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"list rv=" + newest}, w.lists())
		require.Equal(t, []string{"update a/0000", "sync a/0001", "sync a/0002"}, r.events())
		w.requireState(r)
	})
}

// An object that was deleted and created again while no watch was open is another object.
func TestResumeWhereAnObjectWasReplaced(t *testing.T) {
	for _, compacted := range []bool{false, true} {
		t.Run(fmt.Sprintf("compacted=%v", compacted), func(t *testing.T) {
			bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
				w.create(keys(2)...)
				r := &recorder{}
				s := w.lived(r)
				old := readSaved(t, s.bytes()).versions["a/0001"]
				w.remove("a/0001")
				w.create("a/0001")
				want := []string{"delete a/0001", "add a/0001"}
				if compacted {
					w.create("a/other")
					w.remove("a/other")
					w.Compact()
					want = []string{"sync a/0000", "delete a/0001 unknown", "add a/0001 initial"}
				}
				var deleted []interface{}
				i := follow(w, informer.InformerConfig{Handler: deletions{r, &deleted}, Checkpoint: s})
				w.run(i)
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Equal(t, want, r.events())
				if compacted {
					last := lastKnown(t, deleted[0])
					require.Equal(t, old.UID, last.UID)
					require.Equal(t, old.ResourceVersion, last.ResourceVersion)
				}
				w.requireState(r)
			})
		})
	}
}

// UIDs are in the checkpoint, also those that a Storage filled through Replace did not
// have and has adopted.
func TestResumeWithAdoptedUIDs(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(2)...)
		versions, err := w.ResourceVersions(pods, "")
		require.NoError(t, err)
		stored := map[string]interface{}{}
		for key, version := range versions {
			stored[key] = version
		}
		storage := informer.NewResourceVersionStorage()
		require.NoError(t, storage.Replace(stored))
		r := &recorder{folded: maps.Clone(versions)}
		s := &memoryCheckpoint{}
		stop := w.run(follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, Storage: storage}))
		time.Sleep(time.Minute)
		stop()
		for key, v := range readSaved(t, s.bytes()).versions {
			require.NotEmpty(t, v.UID, key)
		}
		r.forget()
		w.remove("a/0001")
		w.create("a/0001")
		w.run(follow(w, informer.InformerConfig{Handler: r, Checkpoint: s}))
		time.Sleep(time.Minute)
		require.Equal(t, []string{"delete a/0001", "add a/0001"}, r.events())
		w.requireState(r)
	})
}

// After a crash, what was told since the checkpoint comes again, and so is the deletion of
// an object that only that process knew.
func TestResumeAfterACrash(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		s, r := &memoryCheckpoint{}, &recorder{}
		stop := w.run(follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, CheckpointInterval: time.Hour}))
		synctest.Wait()
		s.requireListed(t)
		w.update("a/0000", "changed")
		w.remove("a/0001")
		w.create("a/short", "a/long")
		synctest.Wait()
		left := s.killed()
		again := &recorder{folded: r.state()}
		stop()

		w.remove("a/short")
		i := follow(w, informer.InformerConfig{Handler: again, Checkpoint: left})
		w.run(i)
		time.Sleep(time.Minute)
		events := again.events()
		require.Contains(t, events, "update a/0000")
		require.Contains(t, events, "delete a/0001")
		require.Contains(t, events, "delete a/short")
		require.Contains(t, events, "add a/long")
		require.Len(t, w.lists(), 1, "that of the first run")
		w.requireState(again)
	})
}

// The same with a handler that was slow to hear of the object that came and went.
func TestResumeAfterACrashTellsOfWhatCameAndWent(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(2)...)
		s, r := &memoryCheckpoint{}, &recorder{}
		stop := w.run(follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, CheckpointInterval: time.Hour}))
		synctest.Wait()
		w.update("a/0000", "changed")
		synctest.Wait()
		w.create("a/short")
		synctest.Wait()
		left := s.killed()
		again := &recorder{folded: r.state(), before: func(string) { time.Sleep(time.Minute) }}
		stop()
		w.remove("a/short")
		w.run(follow(w, informer.InformerConfig{Handler: again, Checkpoint: left}))
		time.Sleep(time.Hour)
		require.Contains(t, again.events(), "delete a/short", "told %v", again.events())
		w.requireState(again)
	})
}

// A Run after another of the same informer resumes as well.
func TestASecondRunResumes(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(3)...)
		s, r := &lockable{memoryCheckpoint: &memoryCheckpoint{}}, &recorder{}
		i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
		for n := range 3 {
			stop := w.run(i)
			time.Sleep(3 * time.Second)
			require.True(t, i.HasSynced())
			w.requireState(r)
			stop()
			w.requireSaved(s.memoryCheckpoint)
			require.False(t, s.isLocked())
			require.Equal(t, w.ResourceVersion(), i.Status().ResourceVersion)
			w.update("a/0000", fmt.Sprint(n))
			w.remove(fmt.Sprintf("a/000%d", n))
			w.create("a/0000"[:5] + fmt.Sprint(n+7))
			if n == 0 {
				w.create("a/0000")
			}
		}
		require.Len(t, w.lists(), 1)
		w.create("a/more")
		w.Compact()
		w.run(i)
		time.Sleep(3 * time.Second)
		require.Len(t, w.lists(), 2)
		w.requireState(r)
	})
}

// A second Run whose first was stopped before it was synced lists.
func TestASecondRunAfterAnUnfinishedList(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create(keys(6)...)
		s := &memoryCheckpoint{}
		r := &recorder{before: func(string) { time.Sleep(time.Second) }}
		i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, WatchListPageSize: 2})
		stop := w.run(i)
		time.Sleep(3500 * time.Millisecond)
		stop()
		w.remove("a/0000")
		w.run(i)
		time.Sleep(time.Minute)
		require.True(t, i.HasSynced())
		w.requireState(r)
		w.requireSaved(s)
	})
}

// A Storage that is filled stays, and the version of the checkpoint counts only if the
// Storage can be what became of the checkpoint.
func TestResumeWithAFilledStorage(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(t *testing.T, storage *informer.ResourceVersionStorage)
		resumes bool
	}{
		"the same": {func(*testing.T, *informer.ResourceVersionStorage) {}, true},
		"more": {func(t *testing.T, s *informer.ResourceVersionStorage) {
			require.NoError(t, s.Add(pod("a/0009", "5"))) // which never was: no watch tells of it
		}, false},
		"what was deleted before": {func(t *testing.T, s *informer.ResourceVersionStorage) {
			require.NoError(t, s.Add(pod("a/0009", "3"))) // which a backup has brought back
		}, false},
		"newer": {func(t *testing.T, s *informer.ResourceVersionStorage) {
			require.NoError(t, s.Add(pod("a/0000", "5")))
		}, true},
		"less": {func(t *testing.T, s *informer.ResourceVersionStorage) {
			require.NoError(t, s.Delete(pod("a/0000", "")))
		}, false},
		"older": {func(t *testing.T, s *informer.ResourceVersionStorage) {
			require.NoError(t, s.Add(pod("a/0001", "1")))
		}, false},
		"another object": {func(t *testing.T, s *informer.ResourceVersionStorage) {
			require.NoError(t, s.Add(withUID(pod("a/0001", "3"), "other")))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
				w.create(keys(3)...)
				r := &recorder{}
				s := w.lived(r)
				require.Equal(t, "4", readSaved(t, s.bytes()).resume)
				w.update("a/0000", "changed") // 5
				w.update("a/0002", "changed")
				storage := informer.NewResourceVersionStorage()
				for key, v := range readSaved(t, s.bytes()).versions {
					require.NoError(t, storage.Add(withUID(pod(key, v.ResourceVersion), string(v.UID))))
				}
				test.change(t, storage)
				before := maps.Collect(storage.All())
				i := follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, Storage: storage})
				w.blocked.Lock()
				stop := w.run(i)
				time.Sleep(time.Second)
				require.Equal(t, before, maps.Collect(storage.All()))
				w.blocked.Unlock()
				time.Sleep(time.Minute)
				require.True(t, i.HasSynced())
				if test.resumes {
					require.Empty(t, w.lists(), "asked %v", w.verbs())
				} else {
					require.Len(t, w.lists(), 1, "asked %v", w.verbs())
				}
				if name == "newer" {
					require.Equal(t, []string{"update a/0002"}, r.events())
				} else {
					w.requireState(r)
				}
				stop()
			})
		})
	}
}

// Opaque versions, whose order is not known, are resumed from as they are.
func TestResumeFromOpaqueVersions(t *testing.T) {
	for name, versions := range map[string][3]string{
		"opaque":     {"v-one", "v-two", "v-three"},
		"200 digits": {strings.Repeat("7", 199) + "1", strings.Repeat("7", 199) + "2", strings.Repeat("7", 199) + "3"},
		"bytes":      {"\x00\xff", "\xfe/\n", "é"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
				second := atomic.Bool{}
				l := tapOn(script{}.lw())
				l.onList = lists(list(versions[0], "", pod("a/1", versions[0]), pod("a/2", versions[0])))
				l.onWatch = func(context.Context, int, metav1.ListOptions) (watch.Interface, error) {
					if !second.Load() {
						return stream(false, watch.Event{Type: watch.Modified, Object: pod("a/1", versions[1])}), nil
					}
					return stream(false,
						watch.Event{Type: watch.Modified, Object: pod("a/2", versions[2])},
						watch.Event{Type: watch.Deleted, Object: pod("a/1", versions[2])}), nil
				}
				s, r := &memoryCheckpoint{}, &recorder{}
				stop := w.run(follow(w, informer.InformerConfig{ListerWatcher: l, Handler: r, Checkpoint: s}))
				time.Sleep(time.Minute)
				stop()
				require.Equal(t, versions[1], readSaved(t, s.bytes()).resume)
				second.Store(true)
				r.forget()
				i := follow(w, informer.InformerConfig{ListerWatcher: l, Handler: r, Checkpoint: s})
				w.run(i)
				time.Sleep(time.Minute)
				require.True(t, i.HasSynced())
				require.Equal(t, []string{"update a/2", "delete a/1"}, r.events())
				require.Equal(t, "watch rv="+versions[1], l.requests()[2])
				require.Equal(t, map[string]string{"a/2": versions[2]}, r.state())
			})
		})
	}
}

// Without a version to go on from, or with that of any, there is a list.
func TestNoResumeFromNoVersion(t *testing.T) {
	for _, version := range []string{"", "0"} {
		t.Run(version, func(t *testing.T) {
			bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
				l := tapOn(script{}.lw())
				l.onList = lists(list(version, "", pod("a/1", "1")))
				l.onWatch = watches(open())
				s, r := &memoryCheckpoint{}, &recorder{}
				stop := w.run(follow(w, informer.InformerConfig{ListerWatcher: l, Handler: r, Checkpoint: s}))
				time.Sleep(time.Minute)
				stop()
				require.NotNil(t, s.bytes())
				before := len(l.requests())
				stop = w.run(follow(w, informer.InformerConfig{ListerWatcher: l, Handler: r, Checkpoint: s}))
				time.Sleep(time.Minute)
				stop()
				require.True(t, strings.HasPrefix(l.requests()[before], "list"), "asked %v", l.requests())
			})
		})
	}
}

// Keys are any bytes, of any length up to a megabyte.
func TestResumeWithStrangeKeys(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		names := []string{"\xff\xfe", "é/\n\x00", strings.Repeat("long", 200_000), " ", "a.b-c"}
		var objects []*unstructured.Unstructured
		for n, name := range names {
			objects = append(objects, strange(name, fmt.Sprint(n+1)))
		}
		l := tapOn(script{}.lw())
		l.onList = lists(list("9", "", append(objects, strange("", "7"))...))
		gone := atomic.Bool{}
		l.onWatch = func(context.Context, int, metav1.ListOptions) (watch.Interface, error) {
			var events []watch.Event
			if gone.Load() {
				for n, name := range names {
					events = append(events, watch.Event{Type: watch.Deleted, Object: strange(name, fmt.Sprint(n+20))})
				}
			}
			return stream(false, events...), nil
		}
		var f failures
		s := &memoryCheckpoint{}
		var told []string
		handler := informer.ResourceEventHandlerFuncs{
			AddFunc:    func(obj interface{}) { told = append(told, "add "+key(obj)) },
			DeleteFunc: func(obj interface{}) { told = append(told, "delete "+key(obj)) },
		}
		stop := w.run(follow(w, informer.InformerConfig{ListerWatcher: l, Handler: handler, Checkpoint: s, ErrorHandler: f.handle}))
		time.Sleep(time.Minute)
		stop()
		errs, _ := f.all()
		require.Len(t, errs, 1)
		require.ErrorContains(t, errs[0], "name")
		require.Len(t, told, len(names))
		told = nil
		// That object is a gap, so the next run lists too.
		l.onList = lists(list("9", "", objects...))
		stop = w.run(follow(w, informer.InformerConfig{ListerWatcher: l, Handler: handler, Checkpoint: s}))
		time.Sleep(time.Minute)
		stop()
		require.Equal(t, "9", readSaved(t, s.bytes()).resume)
		require.Empty(t, told)
		gone.Store(true)
		before := len(l.requests())
		stop = w.run(follow(w, informer.InformerConfig{ListerWatcher: l, Handler: handler, Checkpoint: s}))
		time.Sleep(time.Minute)
		stop()
		require.Equal(t, []string{"watch rv=9"}, l.requests()[before:])
		require.Len(t, told, len(names))
		require.Empty(t, readSaved(t, s.bytes()).versions)
	})
}

func strange(name, rv string) *unstructured.Unstructured {
	obj := pod("a/x", rv)
	obj.SetName(name)
	return obj
}

// The UID of kube-system is in the checkpoint, with the other parts of the source.
func TestACheckpointNamesItsSource(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		created, err := w.Create(namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}})
		require.NoError(t, err)
		w.create(keys(2)...)
		s, r := &memoryCheckpoint{}, &recorder{}
		stop := w.run(follow(w, informer.InformerConfig{Handler: r, Checkpoint: s}))
		synctest.Wait()
		stop()
		require.Equal(t, map[string]string{
			"server": "http://localhost", "resource": "v1/pods", "cluster": string(created.GetUID()), "resourceVersion": w.ResourceVersion(),
		}, readSaved(t, s.bytes()).metadata)
	})
}
