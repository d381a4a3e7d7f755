package status_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
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
	"github.com/rvinformer/informer/tests/harness"
)

// audited is an informer of some pods that runs, whose storage a test can spoil.
type audited struct {
	*harness.World
	informer.ResourceVersionInformer
	*harness.Recorder
	storage *informer.ResourceVersionStorage
}

// inAudit runs test beside an informer of n pods that has synced.
func inAudit(t *testing.T, n int, opts informertest.Options, c informer.InformerConfig, test func(t *testing.T, a *audited)) {
	t.Helper()
	harness.Bubble(t, opts, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(n)...)
		a := &audited{World: w, Recorder: &harness.Recorder{}, storage: informer.NewResourceVersionStorage()}
		c.Storage = a.storage
		if c.Handler == nil {
			c.Handler = a.Recorder
		}
		a.ResourceVersionInformer = harness.Follow(w, c)
		defer harness.Settle(a.RunWithContext)()
		require.True(t, a.HasSynced())
		a.Forget()
		test(t, a)
	})
}

// opaqueLister hides that a ListerWatcher reads off the wire.
type opaqueLister struct{ cache.ListerWatcher }

// spoil plants a difference of each sort.
func (a *audited) spoil() {
	a.T.Helper()
	require.NoError(a.T, a.storage.Delete(harness.PartialObject("a", "0001", "1", "")))
	require.NoError(a.T, a.storage.Add(harness.PartialObject("a", "0002", "1", "")))
	require.NoError(a.T, a.storage.Add(harness.PartialObject("b", "gone", "2", "")))
}

func keysIn(differences []informer.AuditDifference) (keys []string) {
	for _, d := range differences {
		keys = append(keys, d.Key)
	}
	return keys
}

func TestAuditOfARightInformerFindsNothingAndWaitsForNothing(t *testing.T) {
	inAudit(t, 20, informertest.Options{}, informer.InformerConfig{WatchListPageSize: 7}, func(t *testing.T, a *audited) {
		a.ResetRequests()
		began := time.Now()
		r, err := a.Audit(t.Context(), informer.AuditOptions{})
		require.NoError(t, err)
		require.Zero(t, r.Differences())
		require.Equal(t, 20, r.Objects)
		require.Equal(t, a.ResourceVersion(), r.ResourceVersion)
		require.Equal(t, []string{"list limit=7", "list limit=7 continue", "list limit=7 continue"}, a.Verbs())
		require.Less(t, time.Since(began), time.Second)
		require.Equal(t, 20, a.Status().LastAudit.Objects)
		require.NoError(t, a.Status().LastAudit.Err)
	})
}

func TestAuditFindsEachSortOfDifference(t *testing.T) {
	inAudit(t, 20, informertest.Options{}, informer.InformerConfig{WatchListPageSize: 7}, func(t *testing.T, a *audited) {
		a.spoil()
		require.NoError(t, a.storage.Delete(harness.PartialObject("a", "0003", "", "")))
		version, _, _ := a.storage.GetByKey("a/0004")
		require.NoError(t, a.storage.Add(harness.PartialObject("a", "0004", version.(string), "another")))
		r, err := a.Audit(t.Context(), informer.AuditOptions{})
		require.NoError(t, err)
		require.Equal(t, []string{"a/0001", "a/0003"}, keysIn(r.Missing))
		require.Equal(t, []string{"a/0002", "a/0004"}, keysIn(r.Stale))
		require.Equal(t, []string{"b/gone"}, keysIn(r.Superfluous))
		require.Equal(t, []int{2, 2, 1}, []int{r.MissingCount, r.StaleCount, r.SuperfluousCount})
		require.Equal(t, informer.AuditVersion{ResourceVersion: "1"}, r.Stale[0].Own)
		require.Equal(t, version, r.Stale[1].Server.ResourceVersion)
		require.NotEmpty(t, r.Stale[1].Server.UID)
		require.Equal(t, informer.AuditVersion{ResourceVersion: "2"}, r.Superfluous[0].Own)
		require.Zero(t, r.Repaired)
		require.Empty(t, a.Events(), "nothing is repaired that is not to be")
		last := a.Status().LastAudit
		require.Equal(t, []int{2, 2, 1}, []int{last.Missing, last.Stale, last.Superfluous})
	})
}

func TestAuditRepairsWhatDiffers(t *testing.T) {
	for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeWatchList, informer.ListModeFull} {
		t.Run(mode.String(), func(t *testing.T) {
			inAudit(t, 20, informertest.Options{}, informer.InformerConfig{ListMode: mode}, func(t *testing.T, a *audited) {
				a.spoil()
				r, err := a.Audit(t.Context(), informer.AuditOptions{Repair: true})
				require.NoError(t, err)
				require.Equal(t, 3, r.Differences())
				require.Equal(t, 3, r.Repaired)
				require.True(t, r.Missing[0].Repaired && r.Stale[0].Repaired && r.Superfluous[0].Repaired)
				told := strings.Join(a.Events(), "\n")
				require.Contains(t, told, "add a/0001")
				require.Contains(t, told, "update a/0002")
				require.Contains(t, told, "delete b/gone unknown")
				a.RequireState(a.Recorder)
				r, err = a.Audit(t.Context(), informer.AuditOptions{Repair: true})
				require.NoError(t, err)
				require.Zero(t, r.Differences())
			})
		})
	}
}

func TestRepairOfManyDifferencesLeavesNone(t *testing.T) {
	inAudit(t, 350, informertest.Options{}, informer.InformerConfig{}, func(t *testing.T, a *audited) {
		for n, key := range harness.Keys(350) {
			namespace, name, _ := strings.Cut(key, "/")
			if n%2 == 0 {
				require.NoError(t, a.storage.Delete(harness.PartialObject(namespace, name, "1", "")))
			} else {
				require.NoError(t, a.storage.Add(harness.PartialObject(namespace, name, "1", "")))
			}
			require.NoError(t, a.storage.Add(harness.PartialObject("b", name, "2", "")))
		}
		r, err := a.Audit(t.Context(), informer.AuditOptions{Repair: true})
		require.NoError(t, err)
		require.Equal(t, []int{175, 175, 350}, []int{r.MissingCount, r.StaleCount, r.SuperfluousCount})
		require.Equal(t, 700, r.Repaired)
		require.Equal(t, 700, a.Status().LastAudit.Repaired)
		a.RequireState(a.Recorder)
	})
}

func TestAuditWaitsForAHandlerThatIsBehind(t *testing.T) {
	var held atomic.Bool
	var release chan struct{}
	slow := &harness.Recorder{Before: func(string) {
		if held.Load() {
			<-release
		}
	}}
	inAudit(t, 5, informertest.Options{}, informer.InformerConfig{Handler: slow}, func(t *testing.T, a *audited) {
		release = make(chan struct{})
		held.Store(true)
		a.UpdatePod("a/0001", "changed")
		a.DeletePods("a/0002")
		a.CreatePods("a/new")
		var r informer.AuditReport
		var err error
		over := make(chan struct{})
		go func() {
			defer close(over)
			r, err = a.Audit(t.Context(), informer.AuditOptions{})
		}()
		time.Sleep(time.Second)
		select {
		case <-over:
			t.Fatalf("the audit did not wait: %v, %v", r, err)
		default:
		}
		_, second := a.Audit(t.Context(), informer.AuditOptions{})
		require.ErrorIs(t, second, informer.ErrAuditRunning)
		held.Store(false)
		close(release)
		<-over
		require.NoError(t, err)
		require.Zero(t, r.Differences())
	})
}

func TestAuditOfAChangingInformerFindsNothing(t *testing.T) {
	inAudit(t, 300, informertest.Options{}, informer.InformerConfig{WatchListPageSize: 10}, func(t *testing.T, a *audited) {
		stop := make(chan struct{})
		var writing sync.WaitGroup
		writing.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(10 * time.Millisecond):
				}
				key := fmt.Sprintf("a/%04d", n%300)
				switch n % 4 {
				case 0:
					a.DeletePods(key)
				case 1:
					a.UpdatePod(key, fmt.Sprint(n))
				case 2:
					a.DeletePods(key)
					a.CreatePods(key)
				default:
					a.CreatePods("a/new-" + fmt.Sprint(n))
				}
				if n%300 == 299 {
					for i := 0; i < 300; i += 4 {
						a.CreatePods(fmt.Sprintf("a/%04d", i))
					}
				}
			}
		})
		for range 6 {
			r, err := a.Audit(t.Context(), informer.AuditOptions{BytesPerSecond: 10_000})
			require.NoError(t, err)
			require.Zero(t, r.Differences(), "%+v", r)
			require.Positive(t, r.Took)
		}
		close(stop)
		writing.Wait()
	})
}

// Without a bookmark, an informer of a quiet resource cannot know that it has come to the version
// of the list.
func TestAuditOfAQuietResourceWaitsForTheNextBookmark(t *testing.T) {
	inAudit(t, 5, informertest.Options{}, informer.InformerConfig{}, func(t *testing.T, a *audited) {
		_, err := a.Create(harness.Widgets, harness.Object(harness.Widgets, "a/other", ""))
		require.NoError(t, err)
		a.spoil()
		began := time.Now()
		r, err := a.Audit(t.Context(), informer.AuditOptions{})
		require.NoError(t, err)
		require.Equal(t, 3, r.Differences())
		require.LessOrEqual(t, time.Since(began), 2*time.Minute)
	})
}

func TestAuditBeginsAgainWhenItsPagesExpire(t *testing.T) {
	for _, test := range []struct {
		times, lists int
		fails        bool
	}{{1, 4, false}, {2, 6, false}, {0, 6, true}} {
		t.Run(fmt.Sprint(test.times), func(t *testing.T) {
			inAudit(t, 10, informertest.Options{}, informer.InformerConfig{WatchListPageSize: 5}, func(t *testing.T, a *audited) {
				defer a.Inject(mustFault(t, fmt.Sprintf("list page=later 410 times=%d", test.times)))()
				a.spoil()
				a.ResetRequests()
				r, err := a.Audit(t.Context(), informer.AuditOptions{})
				if test.fails {
					require.ErrorContains(t, err, "after 5 objects of the server")
					require.Equal(t, err, a.Status().LastAudit.Err)
				} else {
					require.NoError(t, err)
					require.Equal(t, 3, r.Differences())
				}
				lists := 0
				for _, verb := range a.Verbs() {
					if strings.HasPrefix(verb, "list limit=5") {
						lists++
					}
				}
				require.Equal(t, test.lists, lists)
			})
		})
	}
}

func mustFault(t *testing.T, text string) informertest.Fault {
	t.Helper()
	fault, err := informertest.ParseFault(text)
	require.NoError(t, err)
	return fault
}

func TestAuditIsPaced(t *testing.T) {
	inAudit(t, 100, informertest.Options{}, informer.InformerConfig{WatchListPageSize: 10}, func(t *testing.T, a *audited) {
		began := time.Now()
		r, err := a.Audit(t.Context(), informer.AuditOptions{BytesPerSecond: 1000})
		require.NoError(t, err)
		due := time.Duration(float64(r.Bytes) * 0.9 / 1000 * float64(time.Second))
		require.InDelta(t, due.Seconds(), time.Since(began).Seconds(), 1)
		began = time.Now()
		_, err = a.Audit(t.Context(), informer.AuditOptions{BytesPerSecond: -1})
		require.NoError(t, err)
		require.Less(t, time.Since(began), time.Second)
	})
}

func TestAuditThatCannotBeSaysWhy(t *testing.T) {
	harness.BubbleRun(t, "not running", informertest.Options{}, func(t *testing.T, w *harness.World) {
		i := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}})
		_, err := i.Audit(t.Context(), informer.AuditOptions{})
		require.ErrorIs(t, err, informer.ErrNotRunning)
		require.ErrorContains(t, err, "pods")
		stop := harness.Settle(i.RunWithContext)
		stop()
		_, err = i.Audit(t.Context(), informer.AuditOptions{})
		require.ErrorIs(t, err, informer.ErrNotRunning)
	})
	harness.BubbleRun(t, "not synced", informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.Inject(mustFault(t, "500"))
		i := harness.Settled(w, informer.InformerConfig{Handler: &harness.Recorder{}})
		_, err := i.Audit(t.Context(), informer.AuditOptions{})
		require.ErrorIs(t, err, informer.ErrNotSynced)
	})
	harness.BubbleRun(t, "foreign ListerWatcher", informertest.Options{}, func(t *testing.T, w *harness.World) {
		i := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}, ListerWatcher: opaqueLister{w.Lister()}})
		_, err := i.Audit(t.Context(), informer.AuditOptions{})
		require.ErrorIs(t, err, informer.ErrNoMetadata)
	})
	harness.BubbleRun(t, "ends while it waits", informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		storage := informer.NewResourceVersionStorage()
		i := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}, Storage: storage})
		stop := harness.Settle(i.RunWithContext)
		_, err := w.Create(harness.Widgets, harness.Object(harness.Widgets, "a/other", ""))
		require.NoError(t, err)
		require.NoError(t, storage.Add(harness.PartialObject("b", "gone", "2", "")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = i.Audit(ctx, informer.AuditOptions{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "after 3 objects of the server: waiting until the informer has acknowledged version")
		over := make(chan error)
		go func() {
			_, err := i.Audit(t.Context(), informer.AuditOptions{})
			over <- err
		}()
		synctest.Wait()
		stop()
		require.ErrorIs(t, <-over, informer.ErrStopped)
	})
	t.Run("opaque versions", func(t *testing.T) {
		inAudit(t, 3, informertest.Options{OpaqueVersions: true}, informer.InformerConfig{}, func(t *testing.T, a *audited) {
			_, err := a.Audit(t.Context(), informer.AuditOptions{})
			require.ErrorIs(t, err, informer.ErrUnorderedVersion)
		})
	})
	t.Run("older server", func(t *testing.T) {
		inAudit(t, 3, informertest.Options{}, informer.InformerConfig{}, func(t *testing.T, a *audited) {
			a.UpdatePod("a/0001", "changed")
			synctest.Wait()
			a.SetResourceVersion(2)
			_, err := a.Audit(t.Context(), informer.AuditOptions{})
			require.ErrorIs(t, err, informer.ErrServerRestored)
		})
	})
	t.Run("refused", func(t *testing.T) {
		inAudit(t, 3, informertest.Options{}, informer.InformerConfig{}, func(t *testing.T, a *audited) {
			a.Inject(mustFault(t, "list 403"))
			_, err := a.Audit(t.Context(), informer.AuditOptions{})
			require.ErrorContains(t, err, "after 0 objects")
			require.ErrorContains(t, err, "403")
		})
	})
	t.Run("pages without an end", func(t *testing.T) {
		inAudit(t, 10, informertest.Options{}, informer.InformerConfig{WatchListPageSize: 2}, func(t *testing.T, a *audited) {
			a.Inject(mustFault(t, "list repeat-token"))
			_, err := a.Audit(t.Context(), informer.AuditOptions{})
			require.ErrorContains(t, err, "an earlier page")
		})
	})
	t.Run("not a list", func(t *testing.T) {
		inAudit(t, 3, informertest.Options{}, informer.InformerConfig{}, func(t *testing.T, a *audited) {
			a.Inject(mustFault(t, "list foreign"))
			_, err := a.Audit(t.Context(), informer.AuditOptions{Repair: true})
			require.ErrorContains(t, err, "not a Kubernetes list")
			require.Equal(t, 3, a.storage.Len())
		})
	})
}

// The informer's own selectors say what the server has.
func TestAuditSelectsAsTheInformerDoes(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		selected, other := harness.Object(harness.Pods, "a/selected", ""), harness.Object(harness.Pods, "a/other", "")
		selected.SetLabels(map[string]string{"app": "mine"})
		_, err := w.Create(harness.Pods, selected)
		require.NoError(t, err)
		_, err = w.Create(harness.Pods, other)
		require.NoError(t, err)
		storage := informer.NewResourceVersionStorage()
		lw := informer.NewFilteredListerWatcher(w.Lister(), func(opts *metav1.ListOptions) { opts.LabelSelector = "app=mine" })
		i := harness.Settled(w, informer.InformerConfig{Handler: &harness.Recorder{}, Storage: storage, ListerWatcher: lw})
		r, err := i.Audit(t.Context(), informer.AuditOptions{})
		require.NoError(t, err)
		require.Equal(t, 1, r.Objects)
		require.Zero(t, r.Differences())
		require.NoError(t, storage.Delete(harness.PartialObject("a", "selected", "", "")))
		r, err = i.Audit(t.Context(), informer.AuditOptions{})
		require.NoError(t, err)
		require.Equal(t, []string{"a/selected"}, keysIn(r.Missing))
	})
}

// An object that was deleted after the list is not missing, whatever version the deletion has.
func TestAuditAsksForWhatMayBeDeleted(t *testing.T) {
	var a *audited
	once := sync.OnceFunc(func() {
		a.DeletePods("a/0001")
		require.NoError(a.T, a.storage.Delete(harness.PartialObject("a", "0001", "", ""))) // as acknowledged without a version
		require.NoError(a.T, a.storage.Delete(harness.PartialObject("a", "0002", "", "")))
	})
	between := func(server http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if a != nil && r.URL.Query().Has("continue") {
				once()
			}
			server.ServeHTTP(rw, r)
		})
	}
	inAudit(t, 10, informertest.Options{Wrap: between}, informer.InformerConfig{WatchListPageSize: 4}, func(t *testing.T, now *audited) {
		require.NoError(t, now.storage.Delete(harness.PartialObject("a", "0001", "", "")))
		require.NoError(t, now.storage.Delete(harness.PartialObject("a", "0002", "", "")))
		a = now
		r, err := a.Audit(t.Context(), informer.AuditOptions{})
		require.NoError(t, err)
		require.Equal(t, []string{"a/0002"}, keysIn(r.Missing))
		require.Equal(t, 1, r.Differences())
	})
}

func TestAuditEveryAuditsFromTimeToTime(t *testing.T) {
	told := &harness.Failures{}
	config := informer.InformerConfig{
		AuditEvery: time.Hour, AuditOptions: informer.AuditOptions{Repair: true}, ErrorHandler: told.Handle,
	}
	inAudit(t, 5, informertest.Options{}, config, func(t *testing.T, a *audited) {
		require.Nil(t, a.Status().LastAudit)
		time.Sleep(75*time.Minute + time.Second)
		first := a.Status().LastAudit
		require.NotNil(t, first)
		require.NoError(t, first.Err)
		require.Equal(t, 5, first.Objects)
		errs := told.Errors()
		require.Empty(t, errs, "nothing is said of an audit that finds nothing")
		a.spoil()
		second := a.Status().LastAudit
		for limit := time.Now().Add(76 * time.Minute); second.Time.Equal(first.Time); second = a.Status().LastAudit {
			require.True(t, time.Now().Before(limit), "an audit takes place after 75 minutes at most")
			time.Sleep(time.Minute) // the third one, which finds nothing, may be 45 minutes later
		}
		require.Equal(t, []int{1, 1, 1, 3}, []int{second.Missing, second.Stale, second.Superfluous, second.Repaired})
		a.RequireState(a.Recorder)
		errs, _ = told.All()
		require.Len(t, errs, 1)
		require.ErrorIs(t, errs[0], informer.ErrDiffered)
		require.ErrorContains(t, errs[0], `1 objects are missing, 1 stale and 1 superfluous, "a/0001" for instance; 3 are repaired`)
	})
}

// An audit that waits for its handler does not keep the others of the server from theirs.
func TestHandlerThatHangsEndsNoOtherAudits(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(5)...)
		lister := w.Lister()
		var hangs atomic.Bool
		release := make(chan struct{})
		hanging := harness.Running(w, informer.InformerConfig{ListerWatcher: lister, AuditEvery: time.Hour, Handler: &harness.Recorder{Before: func(string) {
			if hangs.Load() {
				<-release
			}
		}}})
		other := harness.Running(w, informer.InformerConfig{ListerWatcher: lister, AuditEvery: time.Hour, Handler: &harness.Recorder{}})
		time.Sleep(3 * time.Hour)
		require.NoError(t, hanging.Status().LastAudit.Err)
		hangs.Store(true)
		began := time.Now()
		w.UpdatePod("a/0001", "changed")
		for range 5 {
			time.Sleep(3 * time.Hour)
			require.WithinDuration(t, time.Now(), other.Status().LastAudit.Time, 80*time.Minute)
			require.WithinDuration(t, time.Now(), other.Status().LastAudited, 80*time.Minute)
		}
		require.Equal(t, time.Hour, hanging.Status().AuditEvery)
		require.WithinDuration(t, began, hanging.Status().LastAudited, 80*time.Minute, "what was not audited since is shown")
		hangs.Store(false)
		close(release)
		time.Sleep(80 * time.Minute)
		require.WithinDuration(t, time.Now(), hanging.Status().LastAudited, 80*time.Minute)
	})
}

func TestAuditEveryNeedsMetadata(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		config := informer.InformerConfig{Handler: &harness.Recorder{}, ListerWatcher: opaqueLister{w.Lister()}, AuditEvery: time.Hour}
		require.PanicsWithValue(t,
			`informer "pods": AuditEvery needs a ListerWatcher of a DynamicListerWatcherFactory, not a status_test.opaqueLister`,
			func() { harness.Follow(w, config) })
		config.AuditEvery, config.ListerWatcher = -1, w.Lister()
		require.PanicsWithValue(t, `informer "pods": AuditEvery is -1ns`, func() { harness.Follow(w, config) })
	})
}

// Handlers that share a watch are audited each.
func TestAuditOfASharedInformerAuditsItsHandlers(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(5)...)
		s := harness.Share(w, informer.InformerConfig{})
		var handlers [2]*harness.Recorder
		var storages [2]*informer.ResourceVersionStorage
		for n := range handlers {
			handlers[n], storages[n] = &harness.Recorder{}, informer.NewResourceVersionStorage()
			_, err := s.AddHandler(informer.HandlerConfig{Handler: handlers[n], Storage: storages[n]})
			require.NoError(t, err)
		}
		defer harness.Settle(s.RunWithContext)()
		r, err := s.Audit(t.Context(), informer.AuditOptions{})
		require.NoError(t, err)
		require.Zero(t, r.Differences())
		require.NoError(t, storages[1].Delete(harness.PartialObject("a", "0001", "", "")))
		r, err = s.Handlers()[0].Audit(t.Context(), informer.AuditOptions{})
		require.NoError(t, err)
		require.Zero(t, r.Differences())
		handlers[0].Forget()
		r, err = s.Audit(t.Context(), informer.AuditOptions{Repair: true})
		require.NoError(t, err)
		require.Equal(t, []string{"a/0001"}, keysIn(r.Missing))
		require.Equal(t, 5, r.Objects)
		require.Equal(t, 1, r.Repaired)
		require.Empty(t, handlers[0].Events(), "the other handler is left alone")
		w.RequireState(handlers[1])
		require.Equal(t, 1, s.Status().LastAudit.Missing)
		w.UpdatePod("a/0002", "changed")
		synctest.Wait()
		w.RequireState(handlers[0])
		w.RequireState(handlers[1])
	})
}

// A repair while a list is read follows it with another list.
func TestAuditRepairsWhileAListIsRead(t *testing.T) {
	inAudit(t, 20, informertest.Options{}, informer.InformerConfig{WatchListPageSize: 5}, func(t *testing.T, a *audited) {
		heal := a.Inject(mustFault(t, "list page=later hang times=1 skip=3"))
		a.Compact()
		a.spoil()
		over := make(chan error)
		go func() {
			_, err := a.Audit(t.Context(), informer.AuditOptions{Repair: true})
			over <- err
		}()
		time.Sleep(30 * time.Second) // the list of the repair hangs
		a.CloseClientConnections()
		heal()
		require.NoError(t, <-over)
		a.RequireState(a.Recorder)
	})
}

// The next audit finds events that the server has not sent, and the handler gets them.
func TestAuditRepairsWhatAServerHasKeptToItself(t *testing.T) {
	for seed := range uint64(10) {
		dice := rand.New(rand.NewPCG(seed, 0))
		inAudit(t, 30, informertest.Options{Seed: seed}, informer.InformerConfig{WatchListPageSize: 7}, func(t *testing.T, a *audited) {
			heal := a.Inject(mustFault(t, "watch lose=2"))
			there := map[string]bool{}
			for _, key := range harness.Keys(30) {
				there[key] = true
			}
			for range 60 {
				key := fmt.Sprintf("a/%04d", dice.IntN(40))
				switch {
				case !there[key]:
					a.CreatePods(key)
				case dice.IntN(2) == 0:
					a.UpdatePod(key, fmt.Sprint(dice.Uint64()))
				default:
					a.DeletePods(key)
				}
				_, err := a.Get(harness.Pods, "a", strings.TrimPrefix(key, "a/"))
				there[key] = err == nil
			}
			synctest.Wait()
			heal()
			versions := a.Versions()
			differences := 0
			for _, key := range harness.Keys(40) {
				if a.State()[key] != versions[key] {
					differences++
				}
			}
			require.Positive(t, differences)
			r, err := a.Audit(t.Context(), informer.AuditOptions{Repair: true})
			require.NoError(t, err)
			require.Equal(t, differences, r.Differences())
			require.Equal(t, differences, r.Repaired)
			a.RequireState(a.Recorder)
		})
	}
}
