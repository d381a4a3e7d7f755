package status_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
	"github.com/rvinformer/informer/tests/harness"
)

// withoutBookmarks has the server send no bookmarks, and move on by changes of another resource.
func withoutBookmarks(w *harness.World) {
	w.T.Helper()
	w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch", "watch-list"}}, Effect: informertest.NoBookmarks()})
	_, err := w.Create(harness.Widgets, harness.Object(harness.Widgets, "a/other", ""))
	require.NoError(w.T, err)
}

// Where no bookmark comes, a second list tells what differs, after some minutes.
func TestAuditOfAQuietResourceWithoutBookmarks(t *testing.T) {
	for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeAuto} {
		t.Run(mode.String(), func(t *testing.T) {
			config := informer.InformerConfig{ListMode: mode, WatchListPageSize: 7}
			inAudit(t, 20, informertest.Options{}, config, func(t *testing.T, a *audited) {
				withoutBookmarks(a.World)
				a.spoil()
				began := time.Now()
				r, err := a.Audit(t.Context(), informer.AuditOptions{Repair: true})
				require.NoError(t, err)
				require.Equal(t, []string{"a/0001"}, keysIn(r.Missing))
				require.Equal(t, []string{"a/0002"}, keysIn(r.Stale))
				require.Equal(t, []string{"b/gone"}, keysIn(r.Superfluous))
				require.Equal(t, 3, r.Repaired)
				require.Equal(t, 20, r.Objects)
				require.LessOrEqual(t, time.Since(began), 4*time.Minute)
				a.RequireState(a.Recorder)

				began = time.Now()
				r, err = a.Audit(t.Context(), informer.AuditOptions{Repair: true})
				require.NoError(t, err)
				require.Zero(t, r.Differences())
				require.Less(t, time.Since(began), time.Second)
			})
		})
	}
}

// What has changed between the two lists is no difference, and what the handler has not acknowledged is
// waited for.
func TestAuditWithoutBookmarksWaitsForTheHandler(t *testing.T) {
	var held atomic.Bool
	var release chan struct{}
	slow := &harness.Recorder{Before: func(string) {
		if held.Load() {
			<-release
		}
	}}
	inAudit(t, 9, informertest.Options{}, informer.InformerConfig{Handler: slow}, func(t *testing.T, a *audited) {
		withoutBookmarks(a.World)
		release = make(chan struct{})
		held.Store(true)
		a.UpdatePod("a/0001", "changed")
		a.DeletePods("a/0002")
		a.CreatePods("a/new")
		synctest.Wait()
		_, err := a.Update(harness.Widgets, harness.Object(harness.Widgets, "a/other", "changed"))
		require.NoError(t, err)
		go func() {
			time.Sleep(10 * time.Minute)
			held.Store(false)
			close(release)
		}()
		began := time.Now()
		r, err := a.Audit(t.Context(), informer.AuditOptions{Repair: true})
		require.NoError(t, err)
		require.Zero(t, r.Differences(), "%+v", r)
		require.GreaterOrEqual(t, time.Since(began), 10*time.Minute)
	})
}

// An informer whose watch loses events is repaired by the audits of its configuration.
func TestAuditsOfObjectCacheWithoutBookmarks(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(9)...)
		r := &harness.Recorder{}
		opts := objectcache.Options{AuditEvery: 10 * time.Minute, AuditOptions: informer.AuditOptions{Repair: true}}
		i := objectcache.NewSharedIndexInformerWithOptions(w.Lister(), harness.ExampleObject("v1", "Pod"), opts)
		_, err := i.AddEventHandler(r)
		require.NoError(t, err)
		defer harness.Settle(i.RunWithContext)()
		heal := w.Inject(mustFault(t, "watch lose=1"))
		healInitial := w.Inject(mustFault(t, "watch-list lose=1"))
		w.DeletePods("a/0001")
		w.UpdatePod("a/0002", "changed")
		w.CreatePods("a/new")
		synctest.Wait()
		heal()
		healInitial()
		withoutBookmarks(w)
		require.NotEqual(t, w.Versions(), r.State())
		time.Sleep(18 * time.Minute)
		w.RequireState(r)
	})
}

// An informer that waits for its handler or its server is behind. Its audit waits for it, and finds
// nothing.
func TestAuditOfAnInformerThatIsBehindFindsNothing(t *testing.T) {
	t.Run("handler", func(t *testing.T) {
		var slow atomic.Bool
		handler := &harness.Recorder{Before: func(string) {
			if slow.Load() {
				time.Sleep(time.Minute)
			}
		}}
		config := informer.InformerConfig{Handler: handler, Budget: informer.NewBudget(1)}
		inAudit(t, 9, informertest.Options{}, config, func(t *testing.T, a *audited) {
			slow.Store(true)
			a.requireNothing(10*time.Minute, func() {})
		})
	})
	t.Run("server", func(t *testing.T) {
		inAudit(t, 9, informertest.Options{}, informer.InformerConfig{}, func(t *testing.T, a *audited) {
			a.Inject(mustFault(t, "watch,watch-list 503"))
			a.CloseClientConnections()
			a.requireNothing(10*time.Minute, a.Heal)
		})
	})
}

// requireNothing changes some objects, calls heal after a while, and requires that an audit of an
// informer that has not read them before finds nothing.
func (a *audited) requireNothing(after time.Duration, heal func()) {
	a.T.Helper()
	for n := range 20 {
		a.CreatePods(fmt.Sprintf("new/%04d", n))
	}
	a.UpdatePod("a/0001", "changed")
	a.DeletePods("a/0002")
	defer time.AfterFunc(after, heal).Stop()
	r, err := a.Audit(a.T.Context(), informer.AuditOptions{})
	require.NoError(a.T, err)
	require.Zero(a.T, r.Differences(), "%+v", r)
	require.GreaterOrEqual(a.T, r.Took, after)
}
