package flow

import (
	"fmt"

	"github.com/rvinformer/informer/internal/deltaqueue"
	"github.com/rvinformer/informer/internal/keytable"
	"github.com/rvinformer/informer/internal/shard"
)

// SetShard has another shard followed. What has left it is forgotten: it is not taken for a call of the consumer any more. What has come to it is
// listed, by the run under way or the next one. The error says what is wrong with the shard.
//
// The shard changes first. From then on, the queue takes nothing that is not in it, and no checkpoint that does not name it gets a new version.
func (f *Flow) SetShard(to shard.Shard) error {
	if err := to.Validate(); err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	f.resharding.Lock()
	defer f.resharding.Unlock()
	from, _ := f.Extent.Shard()
	if f.Keeper != nil && to != from {
		f.Keeper.ShardChanges(from, to)
	}
	if !f.Extent.Change(to) {
		return nil
	}
	f.mu.Lock()
	running, r := f.running, f.underWay
	f.mu.Unlock()
	if !running {
		return nil // the next run forgets
	}
	wider := to.Contains(from)
	if r != nil {
		r.queue.Restrict(wider)
		f.forgetFailure(r.queue)
	}
	if !wider {
		f.forget(r)
	}
	if r == nil {
		return nil
	}
	if f.Keeper != nil {
		f.Keeper.ShardChanged()
	}
	r.follower.ShardChanged()
	return nil
}

// forget forgets what is not in the shard. Of what the consumer has failed for, only the queue knows the UID, and has dropped what is not in the shard already.
func (f *Flow) forget(r *run) {
	failed := map[string]bool{}
	if r != nil {
		for _, key := range f.Versions.UnsettledUnknown() {
			failed[key] = r.queue.Holds(key)
		}
	}
	f.Versions.Forget(func(key string, v keytable.Version) bool {
		begun := v == keytable.Version{}
		return !(begun && failed[key]) && f.Extent.Forgets(key, string(v.UID), begun)
	})
}

// forgetFailure notes that the consumer does not fail any more, if what it has failed for has left the shard.
func (f *Flow) forgetFailure(queue *deltaqueue.Queue) {
	if !f.Extent.IsAll() && !queue.Retrying() {
		f.Report.Handled()
	}
}
