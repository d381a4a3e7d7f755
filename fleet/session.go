package fleet

import (
	"cmp"
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/leaf/backoff"
	"github.com/rvinformer/informer/internal/leaf/failure"
)

const (
	// settleFirst is how long a discovery waits after a sign of a change: one change has several
	// signs. It doubles up to settleLongest while signs go on.
	settleFirst, settleLongest = time.Second, 30 * time.Second
	// looksAgain is when a server is discovered once more after a sign: what it says lags behind
	// its objects.
	looksAgain = 5 * time.Second
	// brokenEvery is how often a cluster is discovered whose answer was not complete, and when one
	// is that was discovered for the first time.
	brokenEvery = time.Minute
)

// session discovers a cluster again and again, while a unit of it runs.
type session struct {
	cluster *cluster
	cancel  context.CancelFunc
	// running is the goroutine.
	running  sync.WaitGroup
	triggers *triggers

	// The rest is guarded by the fleet's lock.

	// catalog is what the newest discovery that was answered has shown; nil before it.
	catalog *catalog
	// news is closed and replaced when a discovery was answered.
	news chan struct{}
}

// newSession begins a session, which ends when end is called. It has the values of ctx.
func newSession(ctx context.Context, c *cluster) *session {
	s := &session{cluster: c, news: make(chan struct{})}
	s.triggers = newTriggers(c)
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	ctx = c.overseen(ctx, nil)
	s.running.Go(func() { s.run(ctx) })
	return s
}

func (s *session) end() {
	s.cancel()
	s.running.Wait()
}

func (s *session) run(ctx context.Context) {
	defer s.triggers.end()
	pauses, settle, by, answered := backoff.OrDefault(nil), settleFirst, itsTime, 0
	var outage outage
	defer func() { outage.end(ctx, s.cluster) }()
	for {
		begun := time.Now()
		found, retryAfter, err := s.cluster.discover(ctx)
		if ctx.Err() != nil {
			return
		}
		s.note(found, err)
		var pause time.Duration
		switch {
		case err != nil:
			// A wrong Retry-After may not stop discovery for good.
			pause = max(pauses.Step(), min(retryAfter, s.cluster.fleet.config.DiscoverEvery))
		default:
			s.cluster.learn(ctx)
			pauses = backoff.OrDefault(nil)
			watches := s.triggers.follow(ctx, found)
			if watches && answered == 0 && by == itsTime {
				by = theStart
			}
			pause = s.pause(found, by)
			answered++
		}
		outage.note(ctx, s.cluster, begun, pause, cmp.Or(err, found.firstMissing()))
		by = itsTime
		switch s.await(ctx, pause, err == nil) {
		case ended:
			return
		case due:
			settle = settleFirst
		case hurried:
			by = aSign
			if backoff.Sleep(ctx, settle) != nil {
				return
			}
			settle = min(2*settle, settleLongest)
		}
	}
}

// outage is a time in which a cluster is not discovered, or in part. The zero value is none.
type outage struct{ since time.Time }

// note notes how a discovery has ended that was begun at a moment, and after which pause another one
// follows. An outage is logged if it will have lasted for report.TellAfter before the next discovery.
func (o *outage) note(ctx context.Context, c *cluster, begun time.Time, pause time.Duration, err error) {
	if err == nil {
		o.end(ctx, c)
		return
	}
	if o.since.IsZero() {
		o.since = begun
	}
	if time.Since(o.since)+pause >= report.TellAfter {
		c.troubles.begin(ctx, c.discoveryLabels().Path(), string(failure.ReasonOf(err)), err.Error(), o.since)
	}
}

// end notes that the cluster is discovered, or not asked any more.
func (o *outage) end(ctx context.Context, c *cluster) {
	o.since = time.Time{}
	c.troubles.end(ctx, c.discoveryLabels().Path(), time.Now())
}

// begunBy is what a discovery was begun by.
type begunBy int

const (
	itsTime begunBy = iota
	// aSign: something has changed, and more may follow.
	aSign
	// theStart: signs are watched for since. An earlier change has none.
	theStart
)

// pause is how long to wait after a discovery that was answered.
func (s *session) pause(found *catalog, by begunBy) time.Duration {
	every := s.cluster.fleet.config.DiscoverEvery
	switch {
	case by == aSign:
		return min(looksAgain, every)
	case by == theStart, !found.complete():
		every = min(brokenEvery, every)
	}
	const fifth = 0.2
	return wait.Jitter(every*4/5, 2*fifth/(1-fifth))
}

// waited is what a wait has come to.
type waited int

const (
	due waited = iota
	hurried
	ended
)

// await waits for the pause to be over or, if it may be cut short, for a sign.
func (s *session) await(ctx context.Context, pause time.Duration, mayHurry bool) waited {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	var hurry <-chan struct{}
	if mayHurry {
		hurry = s.triggers.seen
	}
	select {
	case <-timer.C:
		return due
	case <-hurry:
		return hurried
	case <-ctx.Done():
		return ended
	}
}

// note keeps what a discovery has come to, and wakes the units.
func (s *session) note(found *catalog, err error) {
	f := s.cluster.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.cluster.session != s {
		return // it ends
	}
	s.cluster.log.discovered(found, err)
	if err == nil {
		s.catalog = found
		broadcast(&s.news)
	}
	broadcast(&f.moved)
}
