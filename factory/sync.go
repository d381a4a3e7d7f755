package factory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/klog/v2"
)

// SyncResult is what waiting for informers to sync has come to.
type SyncResult struct {
	// Unsynced are those that have not synced, and why, in the order of their keys.
	// Nothing was waited for in vain if there are none.
	Unsynced []Status
	// Err is why they are not waited for any longer: context.Cause of the context, or
	// ErrStopped. It is nil if all have synced.
	Err error
}

// AsError is nil if all have synced, and otherwise an error of Err that says
// which have not, and why.
func (r SyncResult) AsError() error {
	if r.Err == nil {
		return nil
	}
	whys := make([]string, 0, len(r.Unsynced))
	for _, s := range r.Unsynced {
		whys = append(whys, s.String())
	}
	return fmt.Errorf("%d informers not synced: %w: %s", len(whys), r.Err, strings.Join(whys, "; "))
}

// WaitForCacheSync waits until all informers that are started by now have synced,
// and returns true; or false, if stopCh is closed before, or if one of them was ended by
// its stop channel, or by Shutdown, before it has synced. Where all have synced, that is
// true whether stopCh is closed or not. Those that are released or stopped (Stop)
// meanwhile are not waited for.
func (f *Factory) WaitForCacheSync(stopCh <-chan struct{}) bool {
	for _, w := range f.waits(klog.Background()) {
		if !w.wait(stopCh) && f.counts(w.life) {
			return false
		}
	}
	return true
}

// WaitForCacheSyncWithContext is WaitForCacheSync for a context, and says which
// informers have not synced. It waits for all others even if one cannot sync any more.
func (f *Factory) WaitForCacheSyncWithContext(ctx context.Context) SyncResult {
	var unsynced []*life
	for _, w := range f.waits(klog.FromContext(ctx)) {
		if !w.wait(ctx.Done()) && f.counts(w.life) {
			unsynced = append(unsynced, w.life)
		}
	}
	switch {
	case len(unsynced) == 0:
		return SyncResult{}
	case ctx.Err() != nil:
		return SyncResult{Unsynced: f.statusesOf(unsynced), Err: context.Cause(ctx)}
	default:
		return SyncResult{Unsynced: f.statusesOf(unsynced), Err: ErrStopped}
	}
}

// wait is for one informer to sync.
type wait struct {
	life   *life
	synced <-chan struct{}
	// ending is closed when the informer was told to end.
	ending <-chan struct{}
}

// waits are those for all informers that are started. It logs the others, because a forgotten Start
// looks as if they had synced.
func (f *Factory) waits(logger klog.Logger) (waits []wait) {
	f.mu.Lock()
	var unstarted []string
	for _, l := range f.lives {
		if l.started.IsZero() {
			unstarted = append(unstarted, l.key.String())
			continue
		}
		waits = append(waits, wait{life: l, synced: l.synced, ending: l.ctx.Done()})
	}
	f.mu.Unlock()
	if len(unstarted) > 0 {
		slices.Sort(unstarted)
		shown := unstarted[:min(len(unstarted), maxUnstartedShown)]
		logger.Info("Informers that were not started are not waited for", "count", len(unstarted), "informers", shown)
	}
	return waits
}

// maxUnstartedShown is how many informers that were not started a line of the log names.
const maxUnstartedShown = 5

func (w wait) wait(stop <-chan struct{}) (synced bool) {
	select {
	case <-w.synced:
	case <-w.ending:
	case <-stop:
	}
	return isClosed(w.synced)
}

// counts reports whether the factory was not told to let go of a life.
func (f *Factory) counts(l *life) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !l.removed
}
