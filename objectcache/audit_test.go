package objectcache_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
)

func keysIn(differences []informer.AuditDifference) (keys []string) {
	for _, d := range differences {
		keys = append(keys, d.Key)
	}
	return keys
}

// inAudit runs test beside an informer of 20 pods, encoded or decoded, that has synced.
func inAudit(t *testing.T, opts objectcache.Options, test func(t *testing.T, w *world, i *objectcache.Informer)) {
	for _, decoded := range []bool{false, true} {
		bubbleRun(t, fmt.Sprint("decoded=", decoded), informertest.Options{}, func(t *testing.T, w *world) {
			for n := range 20 {
				w.create(fmt.Sprintf("a/%02d", n))
			}
			opts := opts
			opts.Decoded = decoded
			i := newInformer(w.lister(), nil, opts)
			defer start(i.RunWithContext)()
			synctest.Wait()
			require.True(t, i.HasSynced())
			test(t, w, i)
		})
	}
}

// lie has changes happen that no watch tells.
func (w *world) lie() {
	w.t.Helper()
	fault, err := informertest.ParseFault("watch,watch-list lose=1")
	require.NoError(w.t, err)
	defer w.Inject(fault)()
	w.update("a/02", "changed")
	w.remove("a/03", "a/04")
	w.create("a/04", "b/new")
	synctest.Wait()
}

func TestAuditFindsAndRepairsWhatAWatchHasLost(t *testing.T) {
	inAudit(t, objectcache.Options{WatchListPageSize: 7}, func(t *testing.T, w *world, i *objectcache.Informer) {
		r, err := i.Audit(t.Context(), informer.AuditOptions{})
		require.NoError(t, err)
		require.Zero(t, r.Differences())
		require.Equal(t, 20, r.Objects)
		w.lie()
		r, err = i.Audit(t.Context(), informer.AuditOptions{})
		require.NoError(t, err)
		require.Equal(t, []string{"b/new"}, keysIn(r.Missing))
		require.Equal(t, []string{"a/02", "a/04"}, keysIn(r.Stale))
		require.Equal(t, []string{"a/03"}, keysIn(r.Superfluous))
		require.NotEqual(t, r.Stale[1].Own.UID, r.Stale[1].Server.UID)
		r, err = i.Audit(t.Context(), informer.AuditOptions{Repair: true})
		require.NoError(t, err)
		require.Equal(t, 4, r.Repaired)
		versions, err := w.ResourceVersions(pods, "")
		require.NoError(t, err)
		require.ElementsMatch(t, slices.Collect(maps.Keys(versions)), i.GetIndexer().ListKeys())
		r, err = i.Audit(t.Context(), informer.AuditOptions{})
		require.NoError(t, err)
		require.Zero(t, r.Differences())
		require.Zero(t, i.Status().LastAudit.Stale)
	})
}

func TestRepairOfManyLostChangesLeavesNoDifference(t *testing.T) {
	inAudit(t, objectcache.Options{}, func(t *testing.T, w *world, i *objectcache.Informer) {
		for n := range 400 {
			w.create(fmt.Sprintf("c/%03d", n))
		}
		synctest.Wait()
		fault, err := informertest.ParseFault("watch,watch-list lose=1")
		require.NoError(t, err)
		heal := w.Inject(fault)
		for n := range 200 {
			w.update(fmt.Sprintf("c/%03d", n), "changed")
			w.remove(fmt.Sprintf("c/%03d", n+200))
			w.create(fmt.Sprintf("d/%03d", n))
		}
		synctest.Wait()
		heal()
		r, err := i.Audit(t.Context(), informer.AuditOptions{Repair: true})
		require.NoError(t, err)
		require.Equal(t, []int{200, 200, 200}, []int{r.MissingCount, r.StaleCount, r.SuperfluousCount})
		require.Equal(t, 600, r.Repaired)
		require.Equal(t, 600, i.Status().LastAudit.Repaired)
	})
}

func TestAuditOfAStoreThatChangesFindsNothing(t *testing.T) {
	inAudit(t, objectcache.Options{WatchListPageSize: 2}, func(t *testing.T, w *world, i *objectcache.Informer) {
		over := make(chan struct{})
		go func() {
			defer close(over)
			for n := range 300 {
				key := fmt.Sprintf("a/%02d", n%20)
				w.update(key, fmt.Sprint(n))
				if n%3 == 0 {
					w.remove(key)
					time.Sleep(10 * time.Millisecond)
					w.create(key)
				}
				time.Sleep(5 * time.Millisecond)
			}
		}()
		for audits := 0; ; audits++ {
			r, err := i.Audit(t.Context(), informer.AuditOptions{BytesPerSecond: 20_000})
			require.NoError(t, err)
			require.Zero(t, r.Differences(), "%+v", r)
			select {
			case <-over:
				require.Positive(t, audits)
				return
			default:
			}
		}
	})
}

func TestAuditEveryRepairsTheStore(t *testing.T) {
	var errs []string
	opts := objectcache.Options{
		AuditEvery: time.Hour, AuditOptions: informer.AuditOptions{Repair: true},
		ErrorHandler: func(_ *informer.Reflector, err error) {
			if err != nil {
				errs = append(errs, err.Error())
			}
		},
	}
	inAudit(t, opts, func(t *testing.T, w *world, i *objectcache.Informer) {
		errs = nil
		w.lie()
		sleep(80 * time.Minute)
		require.Equal(t, 4, i.Status().LastAudit.Repaired)
		require.Contains(t, strings.Join(errs, "\n"), "the informer differed from its server")
	})
}

func TestAuditOfAStoreThatCannotBeSaysWhy(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		i := newInformer(w.lister(), nil, objectcache.Options{})
		_, err := i.Audit(t.Context(), informer.AuditOptions{})
		require.ErrorIs(t, err, informer.ErrNotRunning)
		fault, err := informertest.ParseFault("500")
		require.NoError(t, err)
		w.Inject(fault)
		stop := start(i.RunWithContext)
		synctest.Wait()
		_, err = i.Audit(t.Context(), informer.AuditOptions{})
		require.ErrorIs(t, err, informer.ErrNotSynced)
		stop()
		_, err = i.Audit(t.Context(), informer.AuditOptions{})
		require.ErrorIs(t, err, informer.ErrNotRunning)
		require.Panics(t, func() { newInformer(w.lister(), nil, objectcache.Options{AuditEvery: -1}) })
	})
}

// start runs an informer until the returned stop, which waits for it to return.
func start(run func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}
