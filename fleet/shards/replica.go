package shards

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/registry"
)

// Replica is one process of those that share the work of a fleet. Its methods are safe for
// concurrent use.
type Replica struct {
	config   Config
	identity string
	running  atomic.Bool

	wake   chan struct{} // has room for one
	terms  *terms
	seen   *observed
	ledger *ledger
	member *member
	leases informer.ResourceVersionInformer
	// registry has leases, and the coverage of the fleet.
	registry registry.Registry

	mu       sync.Mutex
	tenures  map[fleet.Unit]*tenure
	states   states
	problems problems
}

// New returns a replica that has not begun yet. The error names what is wrong with the
// configuration.
func New(config Config) (*Replica, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	r := &Replica{
		config: config,
		// A process that is started again is another member: what the one before has sent may still
		// arrive.
		identity: config.Identity + "_" + utilrand.String(8),
		wake:     make(chan struct{}, 1),
		tenures:  map[fleet.Unit]*tenure{},
	}
	r.terms = &terms{base: context.Background(), deadline: config.RenewDeadline, changed: r.awake}
	r.seen = newObserved(config.RenewDeadline/2, r.awake)
	r.ledger = newLedger(config, r.identity, r.seen)
	r.member, err = newMember(config, r.identity, r.terms.renewed, func(err error) { r.problem("renewing the member lease", err) })
	if err != nil {
		return nil, fmt.Errorf("shards: %w", err)
	}
	r.leases = informer.NewResourceVersionInformer("leases of "+config.Name, informer.InformerConfig{
		ListerWatcher: leasesOf(config),
		ExampleObject: &coordinationv1.Lease{},
		BatchHandler:  r.seen,
		ErrorHandler:  r.watchError,
		// The renewals of this replica are events, so that silence means a broken watch.
		StallTimeout: config.RenewDeadline,
		Backoff:      &wait.Backoff{Duration: config.RetryPeriod / 4, Cap: config.RetryPeriod, Steps: 4, Factor: 2, Jitter: 0.5},
	})
	name := "fleet " + config.Name
	r.registry.Add(registry.Labels{Group: "coordination.k8s.io", Version: "v1", Resource: "leases", Informer: name}, r.leases)
	r.registry.Add(registry.Labels{Informer: name}, coverage{r})
	return r, nil
}

// endMargin is how much before its time a watch may end and still have lasted for it.
const endMargin = 2 * time.Second

// leasesOf lists and watches the Leases of a fleet. After a watch that has ended before its time,
// they are listed: a server that was restored from a backup, and has already passed the version
// reached, would go on from there in silence.
func leasesOf(config Config) cache.ListerWatcher {
	leases := config.Client.Leases(config.Namespace)
	var mu sync.Mutex
	var due time.Time // when the watch before ends; zero after a list
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			mu.Lock()
			due = time.Time{}
			mu.Unlock()
			options.LabelSelector = selector(config.Name)
			return leases.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			mu.Lock()
			early := options.SendInitialEvents == nil && time.Now().Before(due.Add(-endMargin))
			due = time.Now().Add(time.Duration(ptr.Deref(options.TimeoutSeconds, 0)) * time.Second)
			mu.Unlock()
			if early {
				return nil, apierrors.NewResourceExpired("the watch before has ended early")
			}
			options.LabelSelector = selector(config.Name)
			return leases.Watch(ctx, options)
		},
	}
}

// Identity is how Leases name this replica: that of the Config, and an ending of its own for each
// Replica.
func (r *Replica) Identity() string { return r.identity }

// Run takes part in the fleet until ctx ends, and then hands its units out: it returns when every
// RunUnit has returned, all units are released and the member Lease is deleted. Once no unit could
// be released for RenewDeadline, the others are left to expire. It tries to delete the Lease for
// half of RenewDeadline.
//
// The contexts of RunUnit have the values of ctx. Errors of requests are in Status; Run goes on. It
// returns an error if this replica was run before.
func (r *Replica) Run(ctx context.Context) error {
	if !r.running.CompareAndSwap(false, true) {
		return errors.New("shards: a Replica runs once")
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	r.terms.base = context.WithoutCancel(ctx)
	var background sync.WaitGroup
	background.Go(func() { r.leases.RunWithContext(life) })
	background.Go(func() { r.member.run(life) })
	background.Go(func() { r.reportSync(life) })

	r.decide(ctx, life)

	end()
	background.Wait()
	r.terms.close()
	r.ledger.releasing.close()
	// All that was owned is released, or others must wait for the Lease to expire.
	r.problem("deleting the member lease", r.member.remove(context.WithoutCancel(ctx)))
	return nil
}

// reportSync takes note when the Leases are known.
func (r *Replica) reportSync(ctx context.Context) {
	select {
	case <-r.leases.HasSyncedChecker().Done():
		r.seen.sync()
	case <-ctx.Done():
	}
}

func (r *Replica) awake() {
	select {
	case r.wake <- struct{}{}:
	default: // a look at everything is due already
	}
}

// watchError notes a failure of the watch of Leases; nil is the end of it.
func (r *Replica) watchError(_ *informer.Reflector, err error) {
	r.problem("watching leases", err)
}

// problem takes note of an error, or of the end of one.
func (r *Replica) problem(doing string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problems.note(doing, err, time.Now())
}
