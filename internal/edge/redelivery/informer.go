package redelivery

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/engine/intake"
	"github.com/rvinformer/informer/internal/engine/known"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// Informer is a run of an informer whose objects are delivered again.
type Informer struct {
	Queue    *deltaqueue.Queue
	Versions *known.Versions
	Intake   *intake.Intake
	Report   *report.Report
	Shard    api.Shard
	// AtOnce is how many keys the consumer takes at a time.
	AtOnce int
	// WaitUntil returns when everything up to a resource version is acknowledged.
	WaitUntil func(ctx context.Context, resourceVersion string) error
}

// repeat has an object delivered again, unless the watch brings it. If the standing is Doubtful, the
// object has to be asked for by itself.
func (p *pass) repeat(ctx context.Context, it object.Item) (deltaqueue.Standing, error) {
	standing, err := p.repeats.Judge(ctx, it.Key, it.Version)
	if err != nil || standing != deltaqueue.Repeatable {
		return standing, err
	}
	return p.again(it, func(d deltaqueue.Delta) (deltaqueue.Standing, error) { return p.repeats.Put(ctx, d) })
}

// renew delivers what the server has of a key that is expected, and that it was asked for. If the
// standing is Doubtful, the object has to be asked for again.
func (p *pass) renew(ctx context.Context, it object.Item, asked deltaqueue.Asked) (deltaqueue.Standing, error) {
	return p.again(it, func(d deltaqueue.Delta) (deltaqueue.Standing, error) {
		return p.repeats.Renew(ctx, d, d.Version.ResourceVersion, asked, false)
	})
}

// again puts an object, if it can be read.
func (p *pass) again(it object.Item, put func(deltaqueue.Delta) (deltaqueue.Standing, error)) (deltaqueue.Standing, error) {
	standing, err := p.Intake.Again(it, put)
	var unreadable *api.ItemError
	if errors.As(err, &unreadable) {
		p.unreadable(it, unreadable.Err)
		return deltaqueue.Past, nil
	}
	return standing, err
}

// renewAbsent is renew for a key that the server does not have: it delivers the deletion. In a shard,
// it may be another informer's, unless this one has delivered it.
func (p *pass) renewAbsent(ctx context.Context, key, at string, asked deltaqueue.Asked, named bool) (deltaqueue.Standing, error) {
	d := deltaqueue.Delta{Type: cache.Deleted, Key: key}
	return p.repeats.Renew(ctx, d, at, asked, named && p.Shard.IsAll())
}

// unreadable reports an object that cannot be delivered again. Its key is not expected any more.
func (p *pass) unreadable(it object.Item, err error) {
	p.repeats.Refuse(it.Key)
	p.Report.Handler(it.Unreadable(err))
}

// await returns when everything up to the version of an object is acknowledged, or it cannot be told.
// Of a version that may have more changes, what was told is enough: where there are no bookmarks, a quiet
// watch does not show that no more will come.
func (p *pass) await(ctx context.Context, resourceVersion string) error {
	for {
		limited, cancel := context.WithTimeout(ctx, time.Second)
		err := p.WaitUntil(limited, resourceVersion)
		cancel()
		switch {
		case errors.Is(err, api.ErrUnorderedVersion) || errors.Is(err, api.ErrServerRestored):
			return nil
		case ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded):
			return err
		case rv.NotNewer(resourceVersion, p.Queue.BegunPoint()):
			return nil
		}
	}
}
