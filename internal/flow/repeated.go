package flow

import (
	"context"
	"errors"

	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/deltaqueue"
	"github.com/rvinformer/informer/internal/object"
	"github.com/rvinformer/informer/internal/redelivery"
)

// repeated is a run as a redelivery sees it.
type repeated struct {
	run *run
	*deltaqueue.Redelivery
}

var _ redelivery.Informer = (*repeated)(nil)

// Begin begins behind a key, after so many objects.
func (i *repeated) Begin(after string, done int64) {
	i.Redelivery = i.run.queue.Redeliver(after, done, i.run.Consumer.Max(), i.run.Versions.Doubt)
}

func (i *repeated) end() {
	if i.Redelivery != nil {
		i.End()
	}
}

// Repeat has an object delivered again, unless the watch brings it.
func (i *repeated) Repeat(ctx context.Context, it object.Item) (deltaqueue.Standing, error) {
	standing, err := i.Judge(ctx, it.Key, it.Version)
	if err != nil || standing != deltaqueue.Repeatable {
		return standing, err
	}
	return i.again(it, func(d deltaqueue.Delta) (deltaqueue.Standing, error) { return i.Put(ctx, d) })
}

// Renew delivers what the server has of a key.
func (i *repeated) Renew(ctx context.Context, it object.Item, generation uint64) (deltaqueue.Standing, error) {
	return i.again(it, func(d deltaqueue.Delta) (deltaqueue.Standing, error) {
		return i.Redelivery.Renew(ctx, d, d.Version.ResourceVersion, generation, false)
	})
}

// again puts an object, if it can be read.
func (i *repeated) again(it object.Item, put func(deltaqueue.Delta) (deltaqueue.Standing, error)) (deltaqueue.Standing, error) {
	standing, err := i.run.Intake.Again(it, put)
	var unreadable *api.ItemError
	if errors.As(err, &unreadable) {
		i.Unreadable(it, unreadable.Err)
		return deltaqueue.Past, nil
	}
	return standing, err
}

// RenewAbsent delivers the deletion of a key that the server does not have. In a shard, it may be
// another informer's, unless this one has delivered it.
func (i *repeated) RenewAbsent(ctx context.Context, key, at string, generation uint64, named bool) (deltaqueue.Standing, error) {
	d := deltaqueue.Delta{Type: cache.Deleted, Key: key}
	return i.Redelivery.Renew(ctx, d, at, generation, named && i.run.Shard.IsAll())
}

// Unreadable reports an object that cannot be delivered again.
func (i *repeated) Unreadable(it object.Item, err error) {
	i.Refuse(it.Key)
	i.run.Report.Handler(it.Unreadable(err))
}

// Knows reports whether a key is known, or a change of it waits.
func (i *repeated) Knows(key string) bool { return i.run.queue.Knows(key) }

// Unsettled returns the keys of which it is not certain what the handler has.
func (i *repeated) Unsettled() []string { return i.run.Versions.Unsettled() }

// Await returns when everything up to a resource version is acknowledged, or it cannot be told.
func (i *repeated) Await(ctx context.Context, resourceVersion string) error {
	err := i.run.WaitUntil(ctx, resourceVersion, nil)
	if errors.Is(err, api.ErrUnorderedVersion) || errors.Is(err, api.ErrServerRestored) {
		return nil
	}
	return err
}
