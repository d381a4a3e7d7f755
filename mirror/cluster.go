package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rvinformer/informer"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// cluster is one API server: its discovery, and then a feed for each of its resources.
type cluster struct {
	name     string
	client   *rest.Config
	wanted   []string // as the user has named them; none = everything
	database database
	relist   bool // whatever the checkpoints say
	feeds    feedConfig
	board    *board

	known func()        // takes the discovery off the board
	began time.Time     // of this run
	ready chan struct{} // closed when discovery has ended, whatever came of it

	mu       sync.Mutex
	state    discoveryState
	took     time.Duration // from the start to this state
	problem  error         // of discovery; what is missing once it is done
	nextTry  time.Time     // of discovery, after a problem; zero where it has ended
	followed []*feed
}

func newCluster(at endpoint, wanted []string, from database, relist bool, feeds feedConfig, on *board) *cluster {
	c := &cluster{
		name:     at.name,
		client:   at.client,
		wanted:   wanted,
		database: from,
		relist:   relist,
		feeds:    feeds,
		board:    on,
		ready:    make(chan struct{}),
		began:    time.Now(),
	}
	c.known = on.ShowDiscovery(c.name, c)
	return c
}

// discoveryState says how far the cluster's discovery is.
type discoveryState int

const (
	discovering     discoveryState = iota
	discovered                     // followed is complete
	discoveryGaveUp                // problem says why
)

// Run discovers the cluster's resources and follows them until the context ends.
func (c *cluster) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	defer close(c.ready)

	factory, err := informer.NewDynamicListerWatcherFactory(c.client)
	if err != nil {
		c.note(discoveryGaveUp, fmt.Errorf("client configuration: %w", err), time.Time{})
		return
	}
	what, err := c.discover(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		c.note(discoveryGaveUp, err, time.Time{})
		return
	}
	unserved := c.dropUnserved(ctx, what)
	if ctx.Err() != nil || isUnusable(unserved) { // the run ends
		return
	}
	if unserved != nil {
		what.missing = append(what.missing, unserved)
	}
	for _, resource := range what.resources {
		at := place{cluster: c.name, resource: resource}
		storage, err := c.seed(ctx, at)
		if ctx.Err() != nil || isUnusable(err) {
			return
		}
		if err != nil {
			what.missing = append(what.missing, err)
			continue
		}
		from := &checkpoint{place: at, server: c.client.Host, hidden: c.relist, database: c.database, writer: c.feeds.writer, last: newLastCheckpoint(ctx)}
		f := newFeed(at, factory.ForResource("", resource), storage, from, c.feeds)
		c.mu.Lock()
		c.followed = append(c.followed, f)
		c.mu.Unlock()
		c.board.Show(at, f.informer)
		running.Go(func() { f.Run(ctx) })
	}
	c.note(discovered, what.missed(), time.Time{})
	c.known()
}

// seed reads what the database knows of a place. It tries again while the database is down.
func (c *cluster) seed(ctx context.Context, at place) (*informer.ResourceVersionStorage, error) {
	patience, backoff := newPatience(c.feeds.timeout, time.Now()), newRetryBackoff()
	for {
		storage := informer.NewResourceVersionStorage()
		err := c.database.Seed(ctx, storage, at)
		if err == nil || isUnusable(err) {
			return storage, err
		}
		if err := c.pause(ctx, patience, backoff.Step(), err); err != nil {
			return nil, err
		}
	}
}

// newRetryBackoff is for what is asked before there are informers, which have their own.
func newRetryBackoff() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 6, Cap: 15 * time.Second}
}

// pause waits before the next try after err. Its error says why there is none.
func (c *cluster) pause(ctx context.Context, patience *patience, pause time.Duration, err error) error {
	patience.Failed(err)
	if pointless := patience.Spent(time.Now(), 0); pointless != nil {
		return pointless
	}
	c.note(discovering, err, time.Now().Add(pause))
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Settled waits until the first sync of everything has an outcome.
func (c *cluster) Settled(ctx context.Context) error {
	select {
	case <-c.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for _, f := range c.Feeds() {
		select {
		case <-f.settled:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// discover asks until it is answered, or until there is no sense in asking on.
func (c *cluster) discover(ctx context.Context) (found, error) {
	client, err := discovery.NewDiscoveryClientForConfig(c.client)
	if err != nil {
		return found{}, fmt.Errorf("client configuration: %w", err)
	}
	patience, backoff := newPatience(c.feeds.timeout, time.Now()), newRetryBackoff()
	for {
		var what found
		if len(c.wanted) == 0 {
			what, err = discoverAll(ctx, client)
		} else {
			what, err = discoverNamed(ctx, client, c.wanted)
		}
		if err == nil {
			return what, nil
		}
		if err := c.pause(ctx, patience, backoff.Step(), err); err != nil {
			return found{}, err
		}
	}
}

// dropUnserved removes the rows of resources that the cluster does not have any more: no informer
// will ever report their objects as deleted. It does nothing where the user, or a broken API
// service, hides a part of the cluster.
func (c *cluster) dropUnserved(ctx context.Context, what found) error {
	if len(c.wanted) > 0 || !what.complete {
		return nil
	}
	stored, err := c.database.Resources(ctx, c.name)
	if err != nil {
		return err
	}
	var gone []change
	for _, resource := range stored {
		served := slices.ContainsFunc(what.resources, func(r schema.GroupVersionResource) bool { return r.GroupResource() == resource.GroupResource() })
		if !served {
			gone = append(gone, change{kind: dropResource, place: place{cluster: c.name, resource: resource}})
		}
	}
	if gone == nil {
		return nil
	}
	within, cancel := newPatience(c.feeds.timeout, time.Now()).Context(ctx)
	defer cancel()
	return c.feeds.writer.Insist(within, gone...)
}

// note keeps how far discovery is. nextTry is when it is tried again, and zero where it is not.
func (c *cluster) note(state discoveryState, problem error, nextTry time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state, c.problem, c.took, c.nextTry = state, problem, time.Since(c.began), nextTry
}

// Status shows discovery as if it were an informer: it is synced once all resources are known.
func (c *cluster) Status() informer.Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := informer.Status{Synced: c.state == discovered, LastError: c.problem}
	switch {
	case c.state == discovered:
		s.Condition = informer.Condition{Reason: informer.ReasonCurrent, Since: c.began.Add(c.took)}
	case c.problem != nil:
		s.Condition = informer.Condition{Reason: informer.ReasonFailing, Message: reason(c.problem), Since: c.began}
	default:
		s.Condition = informer.Condition{Reason: informer.ReasonNotStarted, Message: "looking for resources", Since: c.began}
	}
	return s
}

// Feeds returns the feeds so far.
func (c *cluster) Feeds() []*feed {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.followed)
}

// Rows returns a row for each feed, and one for the cluster itself as long as its discovery has
// something to tell.
func (c *cluster) Rows() []row {
	c.mu.Lock()
	state, problem, took, nextTry := c.state, c.problem, c.took, c.nextTry
	c.mu.Unlock()

	var rows []row
	if state != discovered || problem != nil {
		r := row{place: place{cluster: c.name}, phase: "discovering", failed: state == discoveryGaveUp, took: took}
		if state == discovered {
			// All that is there is followed; what is missing will not come in this run.
			r.phase, r.failed = "discovered", true
		}
		if problem != nil {
			r.problem = reason(problem)
		}
		if !nextTry.IsZero() {
			r.retry = fmt.Sprintf("asked again in %s", round(max(time.Until(nextTry), 0)))
		}
		rows = append(rows, r)
	}
	for _, f := range c.Feeds() {
		rows = append(rows, f.Row())
	}
	return rows
}
