package objectcache_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/objectcache"
)

// What waits for the slowest handler counts in the Budget, as Status says it, until the handler is
// called with it or removed.
func TestChangesThatWaitCountInBudget(t *testing.T) {
	for name, leave := range map[string]func(b *busyPods, r cache.ResourceEventHandlerRegistration, goOn chan struct{}, stop func()){
		"called": func(_ *busyPods, _ cache.ResourceEventHandlerRegistration, goOn chan struct{}, _ func()) { close(goOn) },
		"removed": func(b *busyPods, r cache.ResourceEventHandlerRegistration, _ chan struct{}, _ func()) {
			require.NoError(b.t, b.RemoveEventHandler(r))
		},
		"stopped": func(_ *busyPods, _ cache.ResourceEventHandlerRegistration, goOn chan struct{}, stop func()) {
			close(goOn)
			stop()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				budget := informer.NewBudget(1 << 20)
				b := runBusyPods(t, objectcache.Options{Budget: budget})
				stop := b.run()
				defer stop()
				_, err := b.AddChangeHandler(func(objectcache.Change) {}, cache.HandlerOptions{})
				require.NoError(t, err)
				b.update(1)
				require.Zero(t, budget.InUse(), "all handlers keep up")
				goOn, calls := make(chan struct{}), 0
				r, err := b.AddChangeHandler(func(objectcache.Change) {
					if calls++; calls > fewPods {
						<-goOn
					}
				}, cache.HandlerOptions{})
				require.NoError(t, err)
				b.update(40)
				require.Greater(t, budget.InUse(), int64(40*fewPods*100))
				require.Equal(t, b.Status().QueuedBytes, budget.InUse())
				leave(b, r, goOn, stop)
				synctest.Wait()
				require.Zero(t, budget.InUse())
				if name == "removed" {
					close(goOn)
				}
			})
		})
	}
}
