package server

import (
	"context"
	"crypto/tls"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rvinformer/informer/internal/leaf/rv"
)

const (
	// answerLasts is how long an answer about the namespace kube-system counts for others.
	answerLasts = 30 * time.Second
	// sharePatience is how long an informer waits for an answer to another one. Then it asks on its
	// own.
	sharePatience = 2 * time.Second
	// maxFindings is how many periods are remembered.
	maxFindings = 16
)

// acquaintance is what a Server has learnt about its cluster from answers to Inquiries. After an
// outage, all informers have the same questions, and one of them asks.
//
// A period is the time between two losses. Nothing was lost in it, so all that was listed in it is
// of one cluster.
type acquaintance struct {
	// losses counts the watches and requests that have failed or ended, from 1: a connection may
	// have been lost with them. It is the number of the period.
	losses atomic.Uint64

	mu sync.Mutex
	// newest is the newest question about the namespace kube-system, nil before the first one.
	newest *clusterQuestion
	// findings are by the number of the period.
	findings map[uint64]*finding
}

// clusterQuestion is a question about the namespace kube-system.
type clusterQuestion struct {
	// version is the resource version that the data must not be older than; empty for any.
	version string
	period  uint64
	began   time.Time
	// answered is closed when the fields below are set. Err is what namespaceUID returns.
	answered   chan struct{}
	connection *tls.ConnectionState
	uid        string
	err        error
}

// finding is which cluster it is that objects were listed of.
type finding struct {
	// over is closed when the cluster is set, which is empty if it could not be found.
	over    chan struct{}
	cluster string
}

func newAcquaintance() *acquaintance {
	k := &acquaintance{findings: map[uint64]*finding{}}
	k.losses.Store(1)
	return k
}

func (k *acquaintance) lost() { k.losses.Add(1) }

// askCluster returns the UID of the namespace kube-system, in data not older than version, which
// may be empty. Ask asks the server.
//
// The answer to another informer counts too if it came over the connection of this one's watch. It
// says as much as one that is asked for now: a server that is replaced or restored loses its
// connections.
func (k *acquaintance) askCluster(ctx context.Context, version string, over *tls.ConnectionState, ask func(*exchange) (string, error)) (uid string, err error) {
	q, mine := k.join(version, over != nil)
	if !mine && isClosedSoon(ctx, q.answered) && k.counts(q, over) {
		return q.uid, q.err
	}
	if !mine {
		return ask(newExchange())
	}
	e := newExchange()
	q.err = errUnanswered // if a transport of the caller's ends the goroutine
	defer close(q.answered)
	q.uid, q.err = ask(e)
	q.connection = e.over
	return q.uid, q.err
}

// join returns the newest question if its answer may count, or else a new one.
func (k *acquaintance) join(version string, shares bool) (q *clusterQuestion, mine bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	period, now := k.losses.Load(), time.Now()
	if q = k.newest; q != nil && shares && q.period == period && now.Sub(q.began) < answerLasts && (version == "" || rv.NotNewer(version, q.version)) {
		return q, false
	}
	q = &clusterQuestion{version: version, period: period, began: now, answered: make(chan struct{})}
	if shares {
		k.newest = q
	}
	return q, true
}

// counts reports whether an answer counts for a watch over a connection.
func (k *acquaintance) counts(q *clusterQuestion, over *tls.ConnectionState) bool {
	return q.connection == over && (q.err == nil || isRefusal(q.err)) && q.period == k.losses.Load()
}

// clusterOf returns the cluster that was listed in a period, empty if it is not known. If mine
// is set, the caller is to find it, and to call found then. It is not set unless the caller has
// objects to find it by.
func (k *acquaintance) clusterOf(ctx context.Context, period uint64, hasObjects func() bool) (cluster string, mine *finding) {
	f := k.findingOf(period, nil)
	if f == nil && hasObjects() {
		mine = &finding{over: make(chan struct{})}
		if f = k.findingOf(period, mine); f == mine {
			return "", mine
		}
	}
	if f == nil || !isClosedSoon(ctx, f.over) {
		return "", nil
	}
	return f.cluster, nil
}

// findingOf returns the finding of a period. If there is none, other is, unless it is nil. The
// oldest one is forgotten if there are too many.
func (k *acquaintance) findingOf(period uint64, other *finding) *finding {
	k.mu.Lock()
	defer k.mu.Unlock()
	if f := k.findings[period]; f != nil || other == nil {
		return f
	}
	if len(k.findings) >= maxFindings {
		delete(k.findings, slices.Min(slices.Collect(maps.Keys(k.findings))))
	}
	k.findings[period] = other
	return other
}

// found ends a finding. If it has failed, another informer tries.
func (k *acquaintance) found(period uint64, f *finding, cluster string, err error) {
	f.cluster = cluster
	close(f.over)
	if err == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.findings[period] == f {
		delete(k.findings, period)
	}
}

// newExchange is for a request whose answer is read at once.
func newExchange() *exchange {
	return &exchange{Request: Request{Sent: func() {}, Answered: func() {}}}
}

// isClosedSoon waits until a channel is closed, and reports whether it was, or else that ctx or
// sharePatience has ended.
func isClosedSoon(ctx context.Context, closed <-chan struct{}) bool {
	select {
	case <-closed:
		return true
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, sharePatience)
	defer cancel()
	select {
	case <-closed:
		return true
	case <-ctx.Done():
		return false
	}
}
