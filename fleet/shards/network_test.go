package shards_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// network is what lies between a process and all that it writes to. Without trouble it passes
// everything on at once.
type network struct {
	dice *rand.Rand    // guarded by mu; only for the troubles
	skew time.Duration // what the process adds to the times of its Leases
	die  func()        // kills the process
	// delivering are the writes that arrive after their sender has given them up.
	delivering sync.WaitGroup

	mu        sync.Mutex
	down      chan struct{} // nil: up; closed when it is up again
	gone      bool          // for good
	bodies    []io.Closer   // of the answers under way
	watchOnly bool          // a partition meets only answers of watches
	// reading has a partition meet only what the process writes to its database.
	reading bool
	// unitsOnly has a partition meet only writes of Leases of units.
	unitsOnly bool
	slow      time.Duration // at most, for each request
	steady    time.Duration // for each request
	late      float64       // odds that a write fails, and arrives later
	deadly    float64       // odds that the process dies right before or right after a write
}

var (
	errCut  = errors.New("the network is cut")
	errLate = errors.New("the network has lost the answer")
)

// partition has all requests, and all answers under way, hang until heal.
func (n *network) partition() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down == nil {
		n.down = make(chan struct{})
	}
}

func (n *network) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down != nil {
		close(n.down)
		n.down = nil
	}
}

// set changes the troubles.
func (n *network) set(change func(n *network)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(n)
}

// cut fails all requests, and breaks all answers off, for good.
func (n *network) cut() {
	n.mu.Lock()
	n.gone = true
	bodies := n.bodies
	n.bodies = nil
	n.mu.Unlock()
	n.heal()
	for _, b := range bodies {
		_ = b.Close()
	}
}

// pass waits while the network is down.
func (n *network) pass(ctx context.Context) error {
	for {
		n.mu.Lock()
		down, gone := n.down, n.gone
		n.mu.Unlock()
		switch {
		case gone:
			return errCut
		case down == nil:
			return nil
		}
		select {
		case <-down:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// passes reports whether a request passes in spite of a partition.
func (n *network) passes(req *http.Request) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.reading || n.watchOnly && !req.URL.Query().Has("watch") || n.unitsOnly && (req.Method == http.MethodGet || strings.Contains(req.URL.Path, "-member-"))
}

// happens throws dice.
func (n *network) happens(odds func(n *network) float64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := odds(n)
	return p > 0 && n.dice.Float64() < p
}

// delay waits as long as a slow network takes.
func (n *network) delay(ctx context.Context) {
	n.mu.Lock()
	var d time.Duration
	if n.slow > 0 {
		d = time.Duration(n.dice.Int64N(int64(n.slow)))
	}
	d += n.steady
	n.mu.Unlock()
	if d == 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// deadlyWrite does a write that the process may not survive: it dies before, and nothing is
// written, or after, and never learns of it.
func (n *network) deadlyWrite(write func() error) error {
	if !n.happens(func(n *network) float64 { return n.deadly }) {
		return write()
	}
	if n.happens(func(*network) float64 { return 0.5 }) {
		_ = write()
	}
	n.die()
	return errCut
}

// disk is the way to the database. A process that is frozen in the middle of a transaction commits
// it afterwards, whatever has become of its context by then.
func (n *network) disk(commit func() error) error {
	if err := n.pass(context.Background()); err != nil {
		return err
	}
	return n.deadlyWrite(commit)
}

// over is a transport over this network.
func (n *network) over(next http.RoundTripper) http.RoundTripper {
	return &transport{network: n, next: next}
}

type transport struct {
	*network
	next http.RoundTripper
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	pass := func(ctx context.Context) error { // asked anew for each part of an answer
		if t.passes(req) {
			return nil
		}
		return t.pass(ctx)
	}
	if err := pass(ctx); err != nil {
		return nil, err
	}
	t.delay(ctx)
	resp, err := t.send(req)
	if err != nil {
		return nil, err
	}
	if err := pass(ctx); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	t.set(func(n *network) { n.bodies = append(n.bodies, resp.Body) })
	resp.Body = &answer{ReadCloser: resp.Body, pass: func() error { return pass(ctx) }}
	return resp, nil
}

// send sends a request with the troubles of writes.
func (t *transport) send(req *http.Request) (resp *http.Response, err error) {
	if req.Method == http.MethodGet {
		return t.next.RoundTrip(req)
	}
	if req, err = t.skewed(req); err != nil {
		return nil, err
	}
	if t.happens(func(n *network) float64 { return n.late }) {
		return nil, t.deliverLate(req)
	}
	err = t.deadlyWrite(func() error {
		resp, err = t.next.RoundTrip(req)
		return err
	})
	if errors.Is(err, errCut) && resp != nil {
		_ = resp.Body.Close()
	}
	return resp, err
}

// deliverLate has a write arrive within 20 seconds, when its sender may have done other things.
func (t *transport) deliverLate(req *http.Request) error {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return err
	}
	var after time.Duration
	t.set(func(n *network) { after = time.Duration(n.dice.Int64N(int64(20 * time.Second))) })
	late := req.Clone(context.WithoutCancel(req.Context()))
	late.Body = io.NopCloser(bytes.NewReader(body))
	t.delivering.Go(func() {
		time.Sleep(after)
		if resp, err := t.next.RoundTrip(late); err == nil {
			_ = resp.Body.Close()
		}
	})
	return errLate
}

// skewed is a write of a process whose clock is wrong.
func (t *transport) skewed(req *http.Request) (*http.Request, error) {
	if t.skew == 0 || req.Method == http.MethodDelete {
		return req, nil
	}
	var lease coordinationv1.Lease
	if err := json.NewDecoder(req.Body).Decode(&lease); err != nil {
		return nil, err
	}
	if spec := &lease.Spec; spec.RenewTime != nil && spec.AcquireTime != nil {
		spec.RenewTime.Time = spec.RenewTime.Add(t.skew)
		spec.AcquireTime.Time = spec.AcquireTime.Add(t.skew)
	}
	body, err := json.Marshal(&lease)
	if err != nil {
		return nil, err
	}
	req = req.Clone(req.Context())
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return req, nil
}

// answer is the body of an answer.
type answer struct {
	io.ReadCloser
	pass func() error
}

func (a *answer) Read(p []byte) (int, error) {
	read, err := a.ReadCloser.Read(p)
	if err := a.pass(); err != nil {
		return 0, err
	}
	return read, err
}
