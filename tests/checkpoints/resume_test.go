package checkpoints_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
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
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// What is known of an informer that resumes: nothing is listed, and nothing is initial.
func TestResumeStatus(t *testing.T) {
	opening := make(chan struct{})
	var hold atomic.Bool
	wrap := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if hold.Load() && harness.IsWatch(r) {
			<-opening
		}
		return true
	})
	harness.Bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *harness.World) {
		opening = make(chan struct{}) // of the bubble
		w.CreatePods(harness.Keys(3)...)
		r := &harness.Recorder{}
		s := w.Lived(r)
		saved := harness.ReadSaved(t, s.Bytes()).Resume
		hold.Store(true)
		w.CreatePods("a/new")
		i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
		require.Equal(t, informer.PhaseIdle, i.Status().Phase)
		w.Run(i)
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
		require.Equal(t, []string{"add a/new"}, r.Events(), "not initial: no list brought it")
		status := i.Status()
		require.True(t, status.Synced)
		require.Equal(t, 4, status.Objects)
		require.Equal(t, informer.PhaseWatching, status.Phase)
		require.Equal(t, informer.ListModePaged, status.ListMode)
		require.Equal(t, w.ResourceVersion(), status.ResourceVersion)
		require.Equal(t, w.ResourceVersion(), i.LastSyncResourceVersion())
		require.NoError(t, status.LastError)
		require.Zero(t, status.Queued)
		require.Empty(t, w.Lists())
		w.RequireState(r)
	})
}

// The time at which the server has accepted a resume is not that of its first event.
func TestResumedTimeStays(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		r := &harness.Recorder{}
		s := w.Lived(r)
		i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
		began := time.Now()
		w.Run(i)
		time.Sleep(5 * time.Second)
		resumed := i.Status().ResumedTime
		require.WithinDuration(t, began, resumed, 5*time.Second)
		time.Sleep(3 * time.Minute)
		w.CreatePods("a/new")
		time.Sleep(time.Minute)
		require.Equal(t, []string{"add a/new"}, r.Events())
		require.Equal(t, resumed, i.Status().ResumedTime)
	})
}

// A server that says that it has the version makes a quiet resume synced within milliseconds.
func TestQuietResumeIsSyncedByAnAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		forbidden bool
		create    bool
	}{"kube-system is read": {create: true}, "kube-system is missing": {}, "kube-system is forbidden": {forbidden: true}} {
		t.Run(name, func(t *testing.T) {
			wrap := harness.Before(func(rw http.ResponseWriter, r *http.Request) bool {
				if test.forbidden && strings.HasSuffix(r.URL.Path, "/kube-system") {
					harness.FailWith(rw, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
					return false
				}
				return true
			})
			harness.Bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *harness.World) {
				if test.create {
					w.CreateKubeSystem()
				}
				w.CreatePods(harness.Keys(3)...)
				r := &harness.Recorder{}
				s := w.Lived(r)
				i := harness.Running(w, informer.InformerConfig{Handler: r, Checkpoint: s})
				time.Sleep(100 * time.Millisecond)
				require.True(t, i.HasSynced())
				require.Empty(t, r.Events())
				require.Empty(t, w.Lists())
			})
		})
	}
}

// The forms of an answer that says that a version is forgotten.
func TestResumeFromAVersionThatIsGone(t *testing.T) {
	var armed atomic.Bool
	goneByStatus := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if !harness.IsWatch(r) || harness.IsWatchList(r) || !armed.CompareAndSwap(true, false) {
			return true
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusGone)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old resource version","reason":"Expired","code":410}`))
		return false
	})
	for name, wrap := range map[string]func(http.Handler) http.Handler{"status": goneByStatus, "event": nil} {
		for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeFull, informer.ListModeWatchList} {
			harness.BubbleRun(t, name+", "+mode.String(), informertest.Options{Wrap: wrap}, func(t *testing.T, w *harness.World) {
				w.CreatePods(harness.Keys(3)...)
				r := &harness.Recorder{}
				s := w.Lived(r)
				w.UpdatePod("a/0000", "changed")
				w.DeletePods("a/0001")
				w.CreatePods("a/new")
				if name == "event" {
					w.Compact()
				} else {
					armed.Store(true)
				}
				i := harness.Running(w, informer.InformerConfig{Handler: r, Checkpoint: s, ListMode: mode})
				time.Sleep(time.Minute)
				require.True(t, i.HasSynced())
				require.ElementsMatch(t, []string{"update a/0000", "sync a/0002", "add a/new initial", "delete a/0001 unknown"}, r.Events())
				require.Equal(t, "delete a/0001 unknown", r.Events()[3], "the sweep is last")
				require.Len(t, w.Lists(), 1, "asked %v", w.Verbs())
				w.RequireState(r)
				w.RequireSaved(s)
			})
		}
	}
}

// A server whose versions went back, for it was restored from a backup, is listed
// consistently, and what differs is told.
func TestResumeAfterTheServerWasRestored(t *testing.T) {
	for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeFull, informer.ListModeWatchList} {
		harness.BubbleRun(t, mode.String(), informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(3)...)
			for n := range 10 {
				w.UpdatePod("a/0000", fmt.Sprint(n))
			}
			r := &harness.Recorder{}
			s := w.Lived(r)
			w.SetResourceVersion(5) // a/0000 is of this version then
			w.DeletePods("a/0001")
			w.CreatePods("a/new")
			i := harness.Running(w, informer.InformerConfig{Handler: r, Checkpoint: s, ListMode: mode})
			time.Sleep(time.Minute)
			require.True(t, i.HasSynced())
			require.ElementsMatch(t, []string{"update a/0000", "sync a/0002", "add a/new initial", "delete a/0001 unknown"}, r.Events())
			w.RequireState(r)
			require.Equal(t, w.ResourceVersion(), i.Status().ResourceVersion)
			w.UpdatePod("a/0000", "again")
			w.DeletePods("a/new")
			synctest.Wait()
			w.RequireState(r)
			time.Sleep(2 * time.Minute)
			w.RequireSaved(s)
			// What was known before the backup is of no matter any more.
			w.ResetRequests()
			w.Relist()
			require.Len(t, w.Lists(), 1, "asked %v", w.Verbs())
			w.RequireState(r)
		})
	}
}

// ahead leaves a checkpoint with an object that is newer than the version to go on from,
// as it is where one handler call takes long, and what the handler was told. The object
// is a/0001, in versions of two updates.
func ahead(w *harness.World, r *harness.Recorder) *harness.MemoryCheckpoint {
	w.T.Helper()
	w.CreatePods(harness.Keys(3)...)
	s := &harness.MemoryCheckpoint{}
	var slow atomic.Bool
	var inner harness.Recorder
	inner.Before = func(call string) {
		if slow.Load() && strings.HasSuffix(call, "a/0000") {
			time.Sleep(time.Hour)
		}
	}
	stop := w.Run(harness.Follow(w, informer.InformerConfig{Handler: &inner, Checkpoint: s, Workers: 2, CheckpointInterval: time.Minute}))
	synctest.Wait()
	slow.Store(true)
	w.UpdatePod("a/0000", "slow")
	synctest.Wait()
	w.UpdatePod("a/0001", "1")
	synctest.Wait()
	w.UpdatePod("a/0001", "2")
	time.Sleep(3 * time.Minute)
	left := s.Killed()
	r.Folded = inner.State()
	stop()
	c := harness.ReadSaved(w.T, left.Bytes())
	require.Equal(w.T, "4", c.Resume)
	require.Equal(w.T, w.ResourceVersion(), c.Versions["a/0001"].ResourceVersion)
	w.ResetRequests()
	return left
}

// Never back in time: when a watch repeats events, the handler is not told those that are older
// than the checkpoint.
func TestResumeNeverGoesBack(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		r := &harness.Recorder{}
		s := ahead(w, r)
		i := harness.Running(w, informer.InformerConfig{Handler: r, Checkpoint: s})
		time.Sleep(time.Minute)
		require.Equal(t, []string{"update a/0000"}, r.Events())
		require.EqualValues(t, 2, i.Status().Stale)
		require.Empty(t, w.Lists())
		w.RequireState(r)
	})
}

// A list after a resume that failed asks for the newest version that the checkpoint
// knows, which may be that of an object: a replica that lags is not believed.
func TestResumeDoesNotBelieveALaggingReplica(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		r := &harness.Recorder{}
		s := ahead(w, r)
		newest := w.ResourceVersion()
		w.Compact()
		harness.Running(w, informer.InformerConfig{Handler: r, Checkpoint: s, ListMode: informer.ListModeFull})
		time.Sleep(time.Minute)
		require.Equal(t, []string{"list rv=" + newest}, w.Lists())
		require.Equal(t, []string{"update a/0000", "sync a/0001", "sync a/0002"}, r.Events())
		w.RequireState(r)
	})
}

// An object that was deleted and created again while no watch was open is another object.
func TestResumeWhereAnObjectWasReplaced(t *testing.T) {
	for _, compacted := range []bool{false, true} {
		harness.BubbleRun(t, fmt.Sprintf("compacted=%v", compacted), informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(2)...)
			r := &harness.Recorder{}
			s := w.Lived(r)
			old := harness.ReadSaved(t, s.Bytes()).Versions["a/0001"]
			w.DeletePods("a/0001")
			w.CreatePods("a/0001")
			want := []string{"delete a/0001", "add a/0001"}
			if compacted {
				w.CreatePods("a/other")
				w.DeletePods("a/other")
				w.Compact()
				want = []string{"sync a/0000", "delete a/0001 unknown", "add a/0001 initial"}
			}
			var deleted []interface{}
			harness.Running(w, informer.InformerConfig{Handler: harness.Deletions{Recorder: r, Objects: &deleted}, Checkpoint: s})
			harness.Sleep(time.Minute)
			require.Equal(t, want, r.Events())
			if compacted {
				last := harness.LastKnown(t, deleted[0])
				require.Equal(t, old.UID, last.UID)
				require.Equal(t, old.ResourceVersion, last.ResourceVersion)
			}
			w.RequireState(r)
		})
	}
}

// UIDs are in the checkpoint, also those that a Storage filled through Replace did not
// have and has adopted.
func TestResumeWithAdoptedUIDs(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(2)...)
		storage, r := informer.NewResourceVersionStorage(), &harness.Recorder{}
		harness.Fill(t, w, storage, r)
		s := &harness.MemoryCheckpoint{}
		w.RunFor(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, Storage: storage}), time.Minute)
		for key, v := range harness.ReadSaved(t, s.Bytes()).Versions {
			require.NotEmpty(t, v.UID, key)
		}
		r.Forget()
		w.DeletePods("a/0001")
		w.CreatePods("a/0001")
		w.Run(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s}))
		time.Sleep(time.Minute)
		require.Equal(t, []string{"delete a/0001", "add a/0001"}, r.Events())
		w.RequireState(r)
	})
}

// After a crash, what was told since the checkpoint comes again, and so is the deletion of
// an object that only that process knew.
func TestResumeAfterACrash(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s, r := &harness.MemoryCheckpoint{}, &harness.Recorder{}
		stop := w.Run(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, CheckpointInterval: time.Hour}))
		synctest.Wait()
		s.RequireListed(t)
		w.UpdatePod("a/0000", "changed")
		w.DeletePods("a/0001")
		w.CreatePods("a/short", "a/long")
		synctest.Wait()
		left := s.Killed()
		again := &harness.Recorder{Folded: r.State()}
		stop()

		w.DeletePods("a/short")
		harness.Running(w, informer.InformerConfig{Handler: again, Checkpoint: left})
		time.Sleep(time.Minute)
		events := again.Events()
		require.Contains(t, events, "update a/0000")
		require.Contains(t, events, "delete a/0001")
		require.Contains(t, events, "delete a/short")
		require.Contains(t, events, "add a/long")
		require.Len(t, w.Lists(), 1, "that of the first run")
		w.RequireState(again)
	})
}

// The same with a handler that was slow to hear of the object that came and went.
func TestResumeAfterACrashTellsOfWhatCameAndWent(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(2)...)
		s, r := &harness.MemoryCheckpoint{}, &harness.Recorder{}
		stop := w.Run(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, CheckpointInterval: time.Hour}))
		synctest.Wait()
		w.UpdatePod("a/0000", "changed")
		synctest.Wait()
		w.CreatePods("a/short")
		synctest.Wait()
		left := s.Killed()
		again := &harness.Recorder{Folded: r.State(), Before: func(string) { time.Sleep(time.Minute) }}
		stop()
		w.DeletePods("a/short")
		w.Run(harness.Follow(w, informer.InformerConfig{Handler: again, Checkpoint: left}))
		time.Sleep(time.Hour)
		require.Contains(t, again.Events(), "delete a/short", "told %v", again.Events())
		w.RequireState(again)
	})
}

// A Run after another of the same informer resumes as well.
func TestASecondRunResumes(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s, r := &harness.Lockable{MemoryCheckpoint: &harness.MemoryCheckpoint{}}, &harness.Recorder{}
		i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
		for n := range 3 {
			stop := w.Run(i)
			time.Sleep(3 * time.Second)
			require.True(t, i.HasSynced())
			w.RequireState(r)
			stop()
			w.RequireSaved(s.MemoryCheckpoint)
			require.False(t, s.IsLocked())
			require.Equal(t, w.ResourceVersion(), i.Status().ResourceVersion)
			w.UpdatePod("a/0000", fmt.Sprint(n))
			w.DeletePods(fmt.Sprintf("a/000%d", n))
			w.CreatePods("a/0000"[:5] + fmt.Sprint(n+7))
			if n == 0 {
				w.CreatePods("a/0000")
			}
		}
		require.Len(t, w.Lists(), 1)
		w.CreatePods("a/more")
		w.Compact()
		w.Run(i)
		time.Sleep(3 * time.Second)
		require.Len(t, w.Lists(), 2)
		w.RequireState(r)
	})
}

// A replica that becomes the leader again knows what the one has delivered that led meanwhile, and
// goes on from where that has ended.
func TestASecondRunAfterAnotherReplica(t *testing.T) {
	for name, test := range map[string]struct{ inMemory, compacted bool }{
		"resumes": {}, "lists": {compacted: true}, "resumes, without a journal": {inMemory: true}, "lists, without a journal": {inMemory: true, compacted: true},
	} {
		t.Run(name, func(t *testing.T) {
			harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
				w.CreatePods(harness.Keys(3)...)
				path, memory := filepath.Join(t.TempDir(), "pods"), &harness.MemoryCheckpoint{}
				r := &harness.Recorder{} // both write to the same place
				lead := func(i informer.ResourceVersionInformer, what func()) {
					stop := w.Run(i)
					time.Sleep(time.Minute)
					what()
					time.Sleep(time.Minute)
					w.RequireState(r)
					stop()
				}
				var replicas [2]informer.ResourceVersionInformer
				for n := range replicas {
					var s informer.CheckpointStore = memory
					if !test.inMemory {
						s = informer.FileCheckpoint(path)
					}
					replicas[n] = harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
				}
				lead(replicas[0], func() {})
				lead(replicas[1], func() {
					w.CreatePods("a/short", "a/long")
					w.UpdatePod("a/0001", "changed")
					w.DeletePods("a/0002")
				})
				w.DeletePods("a/short")
				if test.compacted {
					w.Compact()
				}
				w.ResetRequests()
				r.Forget()
				lead(replicas[0], func() {})
				told := slices.DeleteFunc(r.Events(), func(event string) bool { return strings.HasPrefix(event, "sync ") })
				if test.compacted {
					require.Equal(t, []string{"delete a/short unknown"}, told)
				} else {
					require.Equal(t, []string{"delete a/short"}, told)
					require.Empty(t, w.Lists())
				}
			})
		})
	}
}

// A Run whose last save has failed keeps what it knows beside what another replica has saved.
func TestASecondRunAfterAFailedSaveAndAnotherReplica(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		r, s := &harness.Recorder{}, &harness.MemoryCheckpoint{}
		var full atomic.Bool
		s.OnSave = fullWhile(&full)
		i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
		stop := w.Run(i)
		time.Sleep(time.Minute)
		w.CreatePods("a/unsaved")
		w.DeletePods("a/0001")
		synctest.Wait()
		full.Store(true)
		stop()
		full.Store(false)
		stop = w.Run(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s}))
		time.Sleep(time.Minute)
		w.CreatePods("a/other")
		synctest.Wait()
		stop()
		w.DeletePods("a/unsaved", "a/other")
		w.Compact()
		w.Run(i)
		time.Sleep(time.Minute)
		w.RequireState(r)
		w.RequireSaved(s)
	})
}

// What a Run of a shard could not save is kept also beside what a replica has saved that follows more:
// it is of the shard, though its objects do not say so any more.
func TestASecondRunOfAShardAfterAFailedSaveAndAnotherReplica(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		shard := informer.Shard{Key: informer.ShardByUID}.Split(2)[0]
		var full atomic.Bool
		r, s := &harness.Recorder{}, &harness.MemoryCheckpoint{OnSave: fullWhile(&full)}
		i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, Shard: shard})
		stop := w.Run(i)
		time.Sleep(90 * time.Second)
		full.Store(true)
		var unsaved []string
		for before := len(r.State()); len(r.State()) == before; synctest.Wait() { // until one is in the shard
			unsaved = append(unsaved, fmt.Sprintf("a/unsaved-%d", len(unsaved)))
			w.CreatePods(unsaved[len(unsaved)-1])
		}
		stop()
		full.Store(false)
		w.DeletePods(unsaved...)
		w.Compact()
		stop = w.Run(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s}))
		time.Sleep(time.Minute)
		stop()
		w.Run(i)
		time.Sleep(time.Minute)
		w.RequireState(r)
	})
}

// What a Run knows whose journal and last save have failed is in the store before the next Run can
// list, so that a kill forgets nothing.
func TestASecondRunWritesWhatAFailedSaveLacks(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		path := filepath.Join(t.TempDir(), "pods")
		r, s := &harness.Recorder{}, newDisk(path)
		i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
		stop := w.Run(i)
		time.Sleep(time.Minute)
		s.readOnly.Store(true)
		w.CreatePods("a/unsaved")
		synctest.Wait()
		stop()
		w.RequireState(r)
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NotContains(t, harness.ReadSaved(t, content).Versions, "a/unsaved")

		s.readOnly.Store(false)
		w.DeletePods("a/unsaved")
		w.Compact()
		w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"list"}}, Effect: informertest.Status(http.StatusInternalServerError)})
		stop = w.Run(i)
		time.Sleep(time.Minute)
		content, err = os.ReadFile(path) // as a kill leaves it
		require.NoError(t, err)
		stop()
		w.Heal()
		w.Run(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: &harness.MemoryCheckpoint{Content: content}}))
		time.Sleep(time.Minute)
		w.RequireState(r)
	})
}

// A Run that ends while it reads what another replica has saved leaves that to the next Run.
func TestASecondRunThatEndsWhileItReads(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		r, s := &harness.Recorder{}, &harness.MemoryCheckpoint{}
		lead := func(i informer.ResourceVersionInformer, what func()) {
			stop := w.Run(i)
			time.Sleep(time.Minute)
			what()
			time.Sleep(time.Minute)
			w.RequireState(r)
			stop()
		}
		i, other := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s}), harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
		lead(i, func() {})
		lead(other, func() { w.CreatePods("a/long") })
		ctx, cancel := context.WithCancel(t.Context())
		s.OnLoad = func(context.Context) (io.ReadCloser, error) {
			cancel() // and the store does not look at its context
			return nil, harness.ErrPass
		}
		i.RunWithContext(ctx)
		s.OnLoad = nil
		lead(other, func() { w.CreatePods("a/short") })
		w.DeletePods("a/short")
		w.Compact()
		lead(i, func() {})
	})
}

// What the program has changed in the Storage counts in the next Run, also if it is not in the store.
func TestASecondRunKeepsEditsThatWereNotSaved(t *testing.T) {
	for name, failing := range map[string]bool{"during the last save": false, "the last save fails": true} {
		t.Run(name, func(t *testing.T) {
			harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
				w.CreatePods(harness.Keys(3)...)
				storage := informer.NewResourceVersionStorage()
				var ending atomic.Bool
				forget := func() {
					require.NoError(t, storage.Delete(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "0001"}}))
				}
				s := &savedCheckpoint{}
				s.OnSave = func(context.Context, int) error {
					if failing && ending.CompareAndSwap(true, false) {
						forget()
						return errors.New("full")
					}
					return nil
				}
				s.saved = func() {
					if ending.CompareAndSwap(true, false) {
						forget()
					}
				}
				r := &harness.Recorder{}
				i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, Storage: storage})
				stop := w.Run(i)
				time.Sleep(90 * time.Second)
				w.CreatePods("a/new")
				synctest.Wait()
				ending.Store(true)
				stop()
				require.NotContains(t, storage.ListKeys(), "a/0001")
				r.Forget()
				w.Run(i)
				time.Sleep(time.Minute)
				require.Contains(t, r.Events(), "add a/0001 initial")
			})
		})
	}
}

// A checkpoint without a resource version does not tell who has saved it: what another replica has
// delivered counts after a Run whose last save has failed.
func TestASecondRunAfterAFailedSaveWithoutAVersion(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		var refuses, full atomic.Bool
		refuses.Store(true)
		unreadable := func(obj interface{}) (interface{}, error) {
			if refuses.Load() && harness.Key(obj) == "a/0001" {
				return nil, errors.New("refused")
			}
			return obj, nil
		}
		r, s := &harness.Recorder{}, &harness.MemoryCheckpoint{OnSave: fullWhile(&full)}
		i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, Transform: unreadable})
		stop := w.Run(i)
		time.Sleep(90 * time.Second)
		w.CreatePods("a/unsaved")
		synctest.Wait()
		full.Store(true)
		stop()
		full.Store(false)
		stop = w.Run(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, Transform: unreadable}))
		time.Sleep(time.Minute)
		w.CreatePods("a/short")
		time.Sleep(time.Minute)
		stop()
		require.Empty(t, harness.ReadSaved(t, s.Bytes()).Resume)
		refuses.Store(false)
		w.DeletePods("a/short")
		w.Run(i)
		time.Sleep(time.Minute)
		w.RequireState(r)
	})
}

// What another replica has told its handler, and was killed before it had saved another version, is
// in its journal. It counts after a Run whose last save has failed.
func TestASecondRunAfterAFailedSaveAndAKilledReplica(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		path := filepath.Join(t.TempDir(), "pods")
		r, s := &harness.Recorder{}, newDisk(path)
		i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
		stop := w.Run(i)
		time.Sleep(90 * time.Second)
		s.readOnly.Store(true)
		w.CreatePods("a/unsaved")
		synctest.Wait()
		stop()
		s.readOnly.Store(false)
		stop = w.Run(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: informer.FileCheckpoint(path)}))
		time.Sleep(5 * time.Second)
		w.CreatePods("a/short")
		synctest.Wait()
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		stop()
		require.NoError(t, os.WriteFile(path, content, 0o600)) // as a kill would have left it
		w.DeletePods("a/short")
		w.Compact()
		w.Run(i)
		time.Sleep(time.Minute)
		w.RequireState(r)
	})
}

// A Run that ends before it reads the checkpoint does not have the next one take a save of the Run
// before, which has failed and is there all the same, for that of another process.
func TestASecondRunAfterASaveThatFailedButIsThere(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		r, s := &harness.Recorder{}, &landingCheckpoint{}
		i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
		stop := w.Run(i)
		time.Sleep(90 * time.Second)
		stop()
		s.lands.Store(true)
		stop = w.Run(i)
		w.CreatePods("a/new")
		time.Sleep(90 * time.Second)
		require.Contains(t, harness.ReadSaved(t, s.Bytes()).Versions, "a/new")
		s.OnSave = func(context.Context, int) error { return errors.New("full") }
		w.UpdatePod("a/new", "changed")
		w.DeletePods("a/0001")
		synctest.Wait()
		w.RequireState(r)
		stop()
		s.OnSave = nil
		s.lands.Store(false)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		i.RunWithContext(ctx)
		r.Forget()
		w.Run(i)
		time.Sleep(time.Minute)
		require.Empty(t, r.Events(), "it knows all of that")
	})
}

// landingCheckpoint returns an error once it has saved, while lands is set.
type landingCheckpoint struct {
	harness.MemoryCheckpoint
	lands atomic.Bool
}

func (s *landingCheckpoint) Save(ctx context.Context, write func(io.Writer) error) error {
	if err := s.MemoryCheckpoint.Save(ctx, write); err != nil {
		return err
	}
	if s.lands.Load() {
		return errors.New("sync of the directory")
	}
	return nil
}

// A Run goes on with the redelivery that another replica has left, and with none if that has ended
// it.
func TestASecondRunAfterTheRedeliveryOfAnotherReplica(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(4)...)
		r, s := &harness.Recorder{}, &harness.MemoryCheckpoint{}
		first, other := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s}), harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
		lead := func(i informer.ResourceVersionInformer, redeliver ...string) {
			stop := w.Run(i)
			time.Sleep(time.Minute)
			if len(redeliver) == 0 {
				stop()
				return
			}
			done := make(chan error)
			go func() { done <- i.Redeliver(t.Context(), informer.RedeliverOptions{Keys: redeliver, PerSecond: 1}) }()
			time.Sleep(time.Second / 2) // it has come to the second one
			stop()
			require.ErrorIs(t, <-done, informer.ErrStopped)
		}
		lead(first, "a/0000", "a/0001")
		lead(other)
		r.Forget()
		lead(first)
		require.Empty(t, r.Events(), "the other one has ended it")

		lead(first, "a/0000", "a/0001")
		lead(other)
		lead(other, "a/0002", "a/0003")
		r.Forget()
		lead(first)
		require.Equal(t, []string{"update a/0003"}, r.Events())
		require.Nil(t, first.Status().Redelivery)
	})
}

// A Run goes on with its own redelivery if that could not be saved, and another replica has left none.
func TestASecondRunKeepsARedeliveryThatWasNotSaved(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(2)...)
		var full atomic.Bool
		r, s := &harness.Recorder{}, &harness.MemoryCheckpoint{OnSave: fullWhile(&full)}
		i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s})
		stop := w.Run(i)
		time.Sleep(time.Minute)
		full.Store(true)
		done := make(chan error)
		go func() {
			done <- i.Redeliver(t.Context(), informer.RedeliverOptions{Keys: []string{"a/0000", "a/0001"}, PerSecond: 1})
		}()
		time.Sleep(time.Second / 2) // it has come to the second one
		stop()
		require.ErrorIs(t, <-done, informer.ErrStopped)
		full.Store(false)
		stop = w.Run(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s}))
		time.Sleep(time.Minute)
		w.CreatePods("a/other")
		time.Sleep(time.Minute)
		stop()
		r.Forget()
		w.Run(i)
		time.Sleep(time.Minute)
		require.Contains(t, r.Events(), "update a/0001")
		require.NotContains(t, r.Events(), "update a/0000")
		require.Nil(t, i.Status().Redelivery)
	})
}

// An ExtraStore, which is the process's own, has what has changed while another replica led.
func TestASecondRunBringsAnExtraStoreUpToDate(t *testing.T) {
	for name, journaled := range map[string]bool{"with a journal": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
				w.CreatePods(harness.Keys(3)...)
				path, memory := filepath.Join(t.TempDir(), "pods"), &harness.MemoryCheckpoint{}
				r, extra := &harness.Recorder{}, cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc)
				follow := func(extra informer.ExtraStore) informer.ResourceVersionInformer {
					c := informer.InformerConfig{Handler: r, Checkpoint: memory, ExtraStore: extra}
					if journaled {
						c.Checkpoint = informer.FileCheckpoint(path)
					}
					return harness.Follow(w, c)
				}
				i := follow(extra)
				lead := func(i informer.ResourceVersionInformer) {
					stop := w.Run(i)
					time.Sleep(time.Minute)
					w.RequireState(r)
					stop()
				}
				lead(i)
				stop := w.Run(follow(nil))
				time.Sleep(time.Minute)
				w.DeletePods("a/0001")
				w.CreatePods("a/new")
				time.Sleep(time.Minute)
				stop()
				lead(i)
				keys := extra.ListKeys()
				slices.Sort(keys)
				require.Equal(t, []string{"a/0000", "a/0002", "a/new"}, keys)
			})
		})
	}
}

// savedCheckpoint calls saved at the end of each Save.
type savedCheckpoint struct {
	harness.MemoryCheckpoint
	saved func()
}

func (s *savedCheckpoint) Save(ctx context.Context, write func(io.Writer) error) error {
	defer s.saved()
	return s.MemoryCheckpoint.Save(ctx, write)
}

// A second Run whose first was stopped before it was synced lists.
func TestASecondRunAfterAnUnfinishedList(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(6)...)
		s := &harness.MemoryCheckpoint{}
		r := &harness.Recorder{Before: func(string) { time.Sleep(time.Second) }}
		i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, WatchListPageSize: 2})
		w.RunFor(i, 3500*time.Millisecond)
		w.DeletePods("a/0000")
		w.Run(i)
		time.Sleep(time.Minute)
		require.True(t, i.HasSynced())
		w.RequireState(r)
		w.RequireSaved(s)
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
			require.NoError(t, s.Add(harness.Pod("a/0009", "5"))) // which never was: no watch tells of it
		}, false},
		"what was deleted before": {func(t *testing.T, s *informer.ResourceVersionStorage) {
			require.NoError(t, s.Add(harness.Pod("a/0009", "3"))) // which a backup has brought back
		}, false},
		"newer": {func(t *testing.T, s *informer.ResourceVersionStorage) {
			require.NoError(t, s.Add(harness.Pod("a/0000", "5")))
		}, true},
		"less": {func(t *testing.T, s *informer.ResourceVersionStorage) {
			require.NoError(t, s.Delete(harness.Pod("a/0000", "")))
		}, false},
		"older": {func(t *testing.T, s *informer.ResourceVersionStorage) {
			require.NoError(t, s.Add(harness.Pod("a/0001", "1")))
		}, false},
		"another object": {func(t *testing.T, s *informer.ResourceVersionStorage) {
			require.NoError(t, s.Add(harness.WithUID(harness.Pod("a/0001", "3"), "other")))
		}, false},
	} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(3)...)
			r := &harness.Recorder{}
			s := w.Lived(r)
			require.Equal(t, "4", harness.ReadSaved(t, s.Bytes()).Resume)
			w.UpdatePod("a/0000", "changed") // 5
			w.UpdatePod("a/0002", "changed")
			storage := informer.NewResourceVersionStorage()
			for key, v := range harness.ReadSaved(t, s.Bytes()).Versions {
				require.NoError(t, storage.Add(harness.WithUID(harness.Pod(key, v.ResourceVersion), string(v.UID))))
			}
			test.change(t, storage)
			before := maps.Collect(storage.All())
			i := harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s, Storage: storage})
			w.Blocked.Lock()
			stop := w.Run(i)
			time.Sleep(time.Second)
			require.Equal(t, before, maps.Collect(storage.All()))
			w.Blocked.Unlock()
			time.Sleep(time.Minute)
			require.True(t, i.HasSynced())
			if test.resumes {
				require.Empty(t, w.Lists(), "asked %v", w.Verbs())
			} else {
				require.Len(t, w.Lists(), 1, "asked %v", w.Verbs())
			}
			if name == "newer" {
				require.Equal(t, []string{"update a/0002"}, r.Events())
			} else {
				w.RequireState(r)
			}
			stop()
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
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			second := atomic.Bool{}
			l := harness.TapOn(harness.Script{}.LW())
			l.OnList = harness.Lists(harness.List(versions[0], "", harness.Pod("a/1", versions[0]), harness.Pod("a/2", versions[0])))
			l.OnWatch = func(context.Context, int, metav1.ListOptions) (watch.Interface, error) {
				if !second.Load() {
					return harness.Stream(false, watch.Event{Type: watch.Modified, Object: harness.Pod("a/1", versions[1])}), nil
				}
				return harness.Stream(false,
					watch.Event{Type: watch.Modified, Object: harness.Pod("a/2", versions[2])},
					watch.Event{Type: watch.Deleted, Object: harness.Pod("a/1", versions[2])}), nil
			}
			s, r := &harness.MemoryCheckpoint{}, &harness.Recorder{}
			w.RunFor(harness.Follow(w, informer.InformerConfig{ListerWatcher: l, Handler: r, Checkpoint: s}), time.Minute)
			require.Equal(t, versions[1], harness.ReadSaved(t, s.Bytes()).Resume)
			second.Store(true)
			r.Forget()
			i := harness.Running(w, informer.InformerConfig{ListerWatcher: l, Handler: r, Checkpoint: s})
			time.Sleep(time.Minute)
			require.True(t, i.HasSynced())
			require.Equal(t, []string{"update a/2", "delete a/1"}, r.Events())
			require.Equal(t, "watch rv="+versions[1], l.Requests()[2])
			require.Equal(t, map[string]string{"a/2": versions[2]}, r.State())
		})
	}
}

// Without a version to go on from, or with that of any, there is a list.
func TestNoResumeFromNoVersion(t *testing.T) {
	for _, version := range []string{"", "0"} {
		harness.BubbleRun(t, version, informertest.Options{}, func(t *testing.T, w *harness.World) {
			l := harness.TapOn(harness.Script{}.LW())
			l.OnList = harness.Lists(harness.List(version, "", harness.Pod("a/1", "1")))
			l.OnWatch = harness.Watches(harness.Open())
			s, r := &harness.MemoryCheckpoint{}, &harness.Recorder{}
			stop := w.Run(harness.Follow(w, informer.InformerConfig{ListerWatcher: l, Handler: r, Checkpoint: s}))
			time.Sleep(time.Minute)
			stop()
			require.NotNil(t, s.Bytes())
			before := len(l.Requests())
			w.RunFor(harness.Follow(w, informer.InformerConfig{ListerWatcher: l, Handler: r, Checkpoint: s}), time.Minute)
			require.True(t, strings.HasPrefix(l.Requests()[before], "list"), "asked %v", l.Requests())
		})
	}
}

// Keys are any bytes, of any length up to a megabyte.
func TestResumeWithStrangeKeys(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		names := []string{"\xff\xfe", "é/\n\x00", strings.Repeat("long", 200_000), " ", "a.b-c"}
		var objects []*unstructured.Unstructured
		for n, name := range names {
			objects = append(objects, strange(name, fmt.Sprint(n+1)))
		}
		l := harness.TapOn(harness.Script{}.LW())
		l.OnList = harness.Lists(harness.List("9", "", append(objects, strange("", "7"))...))
		gone := atomic.Bool{}
		l.OnWatch = func(context.Context, int, metav1.ListOptions) (watch.Interface, error) {
			var events []watch.Event
			if gone.Load() {
				for n, name := range names {
					events = append(events, watch.Event{Type: watch.Deleted, Object: strange(name, fmt.Sprint(n+20))})
				}
			}
			return harness.Stream(false, events...), nil
		}
		var f harness.Failures
		s := &harness.MemoryCheckpoint{}
		var told []string
		handler := informer.ResourceEventHandlerFuncs{
			AddFunc:    func(obj interface{}) { told = append(told, "add "+harness.Key(obj)) },
			DeleteFunc: func(obj interface{}) { told = append(told, "delete "+harness.Key(obj)) },
		}
		stop := w.Run(harness.Follow(w, informer.InformerConfig{ListerWatcher: l, Handler: handler, Checkpoint: s, ErrorHandler: f.Handle}))
		time.Sleep(time.Minute)
		stop()
		require.ErrorContains(t, f.One(t), "name")
		require.Len(t, told, len(names))
		told = nil
		// That object is a gap, so the next run lists too.
		l.OnList = harness.Lists(harness.List("9", "", objects...))
		w.RunFor(harness.Follow(w, informer.InformerConfig{ListerWatcher: l, Handler: handler, Checkpoint: s}), time.Minute)
		require.Equal(t, "9", harness.ReadSaved(t, s.Bytes()).Resume)
		require.Empty(t, told)
		gone.Store(true)
		before := len(l.Requests())
		w.RunFor(harness.Follow(w, informer.InformerConfig{ListerWatcher: l, Handler: handler, Checkpoint: s}), time.Minute)
		require.Equal(t, []string{"watch rv=9"}, l.Requests()[before:])
		require.Len(t, told, len(names))
		require.Empty(t, harness.ReadSaved(t, s.Bytes()).Versions)
	})
}

func strange(name, rv string) *unstructured.Unstructured {
	obj := harness.Pod("a/x", rv)
	obj.SetName(name)
	return obj
}

// The UID of kube-system is in the checkpoint, with the other parts of the source.
func TestACheckpointNamesItsSource(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		created, err := w.Create(harness.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}})
		require.NoError(t, err)
		w.CreatePods(harness.Keys(2)...)
		s, r := &harness.MemoryCheckpoint{}, &harness.Recorder{}
		stop := w.Run(harness.Follow(w, informer.InformerConfig{Handler: r, Checkpoint: s}))
		synctest.Wait()
		stop()
		metadata := harness.ReadSaved(t, s.Bytes()).Metadata
		require.NotEmpty(t, metadata["writer"])
		delete(metadata, "writer")
		require.Equal(t, map[string]string{
			"server": "http://localhost", "resource": "v1/pods", "cluster": string(created.GetUID()), "resourceVersion": w.ResourceVersion(),
		}, metadata)
	})
}

// fullWhile is an OnSave that fails each Save while full is set.
func fullWhile(full *atomic.Bool) func(context.Context, int) error {
	return func(context.Context, int) error {
		if full.Load() {
			return errors.New("full")
		}
		return nil
	}
}
