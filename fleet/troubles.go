package fleet

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/leaf/moment"
	"github.com/rvinformer/informer/internal/leaf/redact"
)

// The reasons of the log that are of a fleet alone.
const (
	reasonConfigure = "ConfigureFailing"
	reasonKnown     = "KnownFailing"
)

// troubles logs what holds a cluster up: a line when a reason begins to hold for its first informer,
// and one when it holds for none. No lock is held while it logs.
type troubles struct {
	cluster string

	mu sync.Mutex
	// reasons has what is held up, by name, and why.
	reasons map[string]string
	// trouble has the reasons that hold.
	trouble map[string]*trouble
	quota   report.Quota
}

// trouble is a reason that holds. Reason and since do not change. The others are guarded by the lock of
// troubles until the trouble is over; then the caller of endLocked owns it.
type trouble struct {
	reason string
	since  time.Time
	// informers counts what is held up for the reason.
	informers int
	logged    bool
}

// begin notes that a subject is held up since a moment, in place of any reason before.
func (t *troubles) begin(ctx context.Context, subject, reason, message string, since time.Time) {
	over, began := t.change(subject, reason, since)
	over.log(ctx, t.cluster, since)
	if began == nil {
		return
	}
	now := moment.Now()
	klog.FromContext(ctx).Error(nil, "Cluster is held up", "cluster", t.cluster, "reason", reason, "message", redact.Short(message, maxMessage),
		"informer", subject, "since", began.since.UTC().Format(time.RFC3339), "for", now.Since(moment.Of(began.since)).Round(time.Second).String())
}

// change gives a subject a reason. It returns the trouble that is over by that, and the one that is to be
// logged, nil for none.
func (t *troubles) change(subject, reason string, since time.Time) (over, began *trouble) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if was := t.reasons[subject]; was != reason {
		over = t.endLocked(subject)
		if t.trouble[reason] == nil {
			if t.reasons == nil {
				t.reasons, t.trouble = map[string]string{}, map[string]*trouble{}
			}
			t.trouble[reason] = &trouble{reason: reason, since: since}
		}
		t.reasons[subject] = reason
		t.trouble[reason].informers++
	}
	now, one := moment.Now(), t.trouble[reason]
	if one.logged || !t.quota.Allows(now) {
		return over, nil
	}
	t.quota.Spend(now)
	one.logged = true
	return over, one
}

// maxMessage is how much of a message is logged.
const maxMessage = 2 << 10

// end notes that a subject is not held up since a moment.
func (t *troubles) end(ctx context.Context, subject string, since time.Time) {
	t.mu.Lock()
	over := t.endLocked(subject)
	t.mu.Unlock()
	over.log(ctx, t.cluster, since)
}

// endLocked returns the trouble that is over because the subject was the last one, nil for none.
func (t *troubles) endLocked(subject string) (over *trouble) {
	one := t.trouble[t.reasons[subject]]
	if one == nil {
		return nil
	}
	delete(t.reasons, subject)
	if one.informers--; one.informers > 0 {
		return nil
	}
	delete(t.trouble, one.reason)
	return one
}

// log logs that a trouble, which is nil for none, is over since a moment, if its beginning was logged.
func (t *trouble) log(ctx context.Context, cluster string, since time.Time) {
	if t == nil || !t.logged {
		return
	}
	text := "Cluster goes on"
	if ctx.Err() != nil {
		text = "Cluster is not followed any more"
	}
	lasted := max(0, since.Sub(t.since)).Round(time.Second).String()
	klog.FromContext(ctx).Info(text, "cluster", cluster, "was", t.reason, "lasted", lasted)
}

// overseer is told of the informers of a cluster that run with a context.
type overseer struct {
	cluster *cluster
	ctx     context.Context
	// synced is that of the informer; nil where nobody waits for it.
	synced func() <-chan struct{}
}

// overseen returns a context whose informers tell the cluster, which logs for all of them.
func (c *cluster) overseen(ctx context.Context, synced func() <-chan struct{}) context.Context {
	return report.WithOverseer(ctx, overseer{c, ctx, synced})
}

func (o overseer) HeldUp(subject, reason, message string, since time.Time) {
	o.cluster.troubles.begin(o.ctx, subject, reason, message, since)
}

func (o overseer) GoesOn(subject string, since time.Time) {
	o.cluster.troubles.end(o.ctx, subject, since)
}

func (o overseer) Synced() {
	if o.synced == nil {
		return
	}
	select {
	case <-o.synced():
		o.cluster.greet(o.ctx)
	case <-o.ctx.Done():
	}
}

// greeting reports whether the cluster has synced and that is to be logged, since when it was waited
// for, and its informers.
func (c *cluster) greeting() (began time.Time, informers map[Target]informer.ResourceVersionInformer, first bool) {
	c.fleet.mu.Lock()
	defer c.fleet.mu.Unlock()
	if c.greeted || c.gone || !c.hasSyncedLocked() {
		return time.Time{}, nil, false
	}
	c.greeted, informers = true, map[Target]informer.ResourceVersionInformer{}
	for _, r := range c.units {
		for _, sub := range r.subscriptions {
			if sub.stage == following {
				informers[sub.target] = sub.lease.Informer
			}
		}
	}
	return c.awaitedSince, informers, true
}

// greet logs that the cluster is synced, once after a unit of it has begun.
func (c *cluster) greet(ctx context.Context) {
	began, informers, first := c.greeting()
	if !first {
		return
	}
	resources, objects := map[schema.GroupResource]bool{}, 0
	for target, i := range informers {
		resources[target.Resource.GroupResource()] = true
		objects += i.Status().Objects
	}
	klog.FromContext(ctx).Info("Cluster is synced", "cluster", c.name, "resources", len(resources), "informers", len(informers), "objects", objects,
		"took", time.Since(began).Round(time.Millisecond).String())
}
