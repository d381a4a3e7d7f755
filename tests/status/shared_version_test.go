package status_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
	"github.com/rvinformer/informer/tests/harness"
)

// follower is an informer of either kind in these tests.
type follower interface {
	WaitUntil(ctx context.Context, resourceVersion string) error
	Audit(ctx context.Context, opts informer.AuditOptions) (informer.AuditReport, error)
	Status() informer.Status
}

// followers begin one of each kind, which is synced, and return it with a count of what it has.
var followers = map[string]func(w *harness.World) (follower, func() int){
	"informer": func(w *harness.World) (follower, func() int) {
		r := &harness.Recorder{}
		return harness.Settled(w, informer.InformerConfig{Handler: r}), func() int { return len(r.State()) }
	},
	"shared informer": func(w *harness.World) (follower, func() int) {
		one, two := &harness.Recorder{}, &harness.Recorder{}
		i := informer.NewSharedResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: w.Lister()})
		for _, r := range []*harness.Recorder{one, two} {
			_, err := i.AddHandler(informer.HandlerConfig{Handler: r})
			require.NoError(w.T, err)
		}
		w.T.Cleanup(harness.Settle(i.RunWithContext))
		return i, func() int { return max(len(one.State()), len(two.State())) }
	},
	"objectcache": func(w *harness.World) (follower, func() int) {
		i := objectcache.NewSharedIndexInformerWithOptions(w.Lister(), harness.ExampleObject("v1", "Pod"), objectcache.Options{})
		w.T.Cleanup(harness.Settle(i.RunWithContext))
		return i, func() int { return len(i.GetStore().ListKeys()) }
	},
}

// between has a server delete four of nine objects in one resource version, see
// informertest.Server.Expire, with a watch that breaks between these deletions for half of a minute, at
// one of many places. Seen tells whether the informer has seen such a version before. It returns how
// many times some were told and others were not.
func between(t *testing.T, seen bool, play func(t *testing.T, w *harness.World, f follower, version string)) {
	for name, follow := range followers {
		t.Run(name, func(t *testing.T) {
			broken := 0
			for bytes := 0; bytes < 6000; bytes += 200 {
				harness.BubbleRun(t, fmt.Sprint(bytes), informertest.Options{}, func(t *testing.T, w *harness.World) {
					w.CreatePods(harness.Keys(9)...)
					f, count := follow(w)
					left := 9
					if seen {
						require.NoError(t, w.Expire(harness.Pods, "a", "0000", "0001"))
						synctest.Wait()
						left = 7
					}
					require.Equal(t, left, count())
					w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch", "watch-list"}}, Effect: informertest.Cut(bytes), Times: 1})
					heal := w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch", "watch-list"}}, Effect: informertest.Status(503)})
					time.AfterFunc(30*time.Second, heal)
					require.NoError(t, w.Expire(harness.Pods, "a", "0002", "0003", "0004", "0005"))
					version := w.ResourceVersion()
					synctest.Wait()
					if told := left - count(); told > 0 && told < 4 {
						broken++
						play(t, w, f, version)
					}
				})
			}
			require.Greater(t, broken, 2, "watches that broke between the deletions")
		})
	}
}

// No claim passes a version while deletions of it may be left, once versions with several were seen.
func TestWaitUntilAVersionOfSeveralDeletions(t *testing.T) {
	between(t, true, func(t *testing.T, w *harness.World, f follower, version string) {
		require.NotEqual(t, version, f.Status().ResourceVersion)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, f.WaitUntil(ctx, version), context.DeadlineExceeded)
		require.NoError(t, f.WaitUntil(t.Context(), version))
		require.Equal(t, version, f.Status().ResourceVersion)
	})
}

// An audit takes no object for superfluous whose deletion is in the version of the list, and is about
// to come. That holds also of the first such version.
func TestAuditBetweenDeletionsOfOneVersion(t *testing.T) {
	for _, seen := range []bool{false, true} {
		t.Run(fmt.Sprint("seen=", seen), func(t *testing.T) {
			between(t, seen, func(t *testing.T, w *harness.World, f follower, _ string) {
				r, err := f.Audit(t.Context(), informer.AuditOptions{})
				require.NoError(t, err)
				require.Zero(t, r.Differences(), "%+v", r)
			})
		})
	}
}
