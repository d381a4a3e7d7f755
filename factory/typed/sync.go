package typed

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/factory"
)

// WaitForCacheSync is WaitForCacheSyncWithContext for a channel, and returns which types
// have synced.
func (f *Factory) WaitForCacheSync(stopCh <-chan struct{}) map[reflect.Type]bool {
	return f.WaitForCacheSyncWithContext(wait.ContextForChannel(stopCh)).Synced
}

// WaitForCacheSyncWithContext waits, without looking again and again, until all informers that were
// started by now through this factory have synced, or cannot any more since they were stopped, or
// until ctx ends. The types of all of them are in the result; of several kinds of one type,
// unstructured ones, all must have synced. The error is nil if all have synced, else context.Cause
// of ctx, or factory.ErrStopped. Why one has not synced, its registry knows:
// factory.Factory.Status.
func (f *Factory) WaitForCacheSyncWithContext(ctx context.Context) cache.SyncResult {
	result := cache.SyncResult{Synced: map[reflect.Type]bool{}}
	for _, s := range f.running() {
		synced := s.sync(ctx)
		if before, ok := result.Synced[s.kind.goType]; ok {
			synced = synced && before
		}
		result.Synced[s.kind.goType] = synced
		if !synced && result.Err == nil {
			result.Err = factory.ErrStopped
		}
	}
	addSynced(&result, f.laterGroups.WaitForCacheSyncWithContext(ctx))
	if result.Err != nil && ctx.Err() != nil {
		result.Err = context.Cause(ctx)
	}
	return result
}

// running are the shares that were started.
func (f *Factory) running() (started []*share) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		if m.share != nil && m.share.started {
			started = append(started, m.share)
		}
	}
	return started
}

// sync waits until the informer has synced, and tells whether it has.
func (s *share) sync(ctx context.Context) bool {
	synced := s.HasSyncedChecker()
	select {
	case <-synced.Done():
	case <-s.ended:
	case <-ctx.Done():
	}
	return cache.IsDone(synced)
}
