package script

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rvinformer/informer/informertest/oracle"
)

// sampling is how often a running informer is asked what it says of itself.
const sampling = 30 * time.Second

// run is an informer that runs.
type run struct {
	*process
	subject *Subject
	end     context.CancelFunc
	ended   chan struct{} // closed when Run and the sampling have returned

	mu     sync.Mutex
	synced bool // it has said so, or did in an earlier run: then it means nothing in this one
}

// begin runs an informer.
func begin(p *process, subject *Subject) (*run, error) {
	var origin oracle.Run
	if subject.Origin != nil {
		var err error
		if origin, err = subject.Origin(); err != nil {
			return nil, fmt.Errorf("what the informer goes on from: %w", err)
		}
	}
	origin.Followers = subject.Followers
	again := p.subjectRan
	p.subjectRan, p.hasRun = true, true
	if !again && subject.HasSynced() {
		p.oracle.Synced() // before anything has begun
	}
	p.oracle.Started(origin)
	ctx, cancel := context.WithCancel(context.Background())
	r := &run{process: p, subject: subject, end: cancel, ended: make(chan struct{}), synced: again}
	var both sync.WaitGroup
	both.Go(func() {
		subject.Run(ctx)
		cancel()
	})
	both.Go(func() { every(ctx, sampling, r.sample) })
	go func() {
		defer close(r.ended)
		both.Wait()
	}()
	return r, nil
}

// stop ends the run and waits for it, or until ctx ends: then the run is not over.
func (r *run) stop(ctx context.Context) error {
	r.end()
	select {
	case <-r.ended:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	r.stopped()
	if !r.isDead() {
		r.sampleMemory()
	}
	return nil
}

// every does something again and again, until ctx ends.
func every(ctx context.Context, pause time.Duration, do func()) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			do()
		}
	}
}

// sample tells the oracle what the informer says of itself.
func (r *run) sample() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isDead() {
		return
	}
	if !r.synced && r.subject.HasSynced() {
		r.synced = true
		r.oracle.Synced()
	}
	// Until what a restored server has is told, a status speaks of the versions of before.
	if r.subject.ResourceVersion != nil && !r.travelled.Load() {
		if rv := r.subject.ResourceVersion(); rv != "" {
			r.oracle.Claimed(oracle.FromStatus, rv)
		}
	}
	r.sampleMemory()
	r.sampleWaiting()
}

func (r *run) sampleMemory() {
	if r.subject.Memory != nil {
		inUse, limit := r.subject.Memory()
		r.oracle.Queued(inUse, limit, largest)
	}
}

func (r *run) sampleWaiting() {
	if r.subject.Waiting != nil {
		r.oracle.Waiting(r.subject.Waiting)
	}
}
