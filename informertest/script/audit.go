package script

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rvinformer/informer"
)

// longestAudit is for how long an audit may wait for its informer.
const longestAudit = 30 * time.Minute

// audits are those of a script, which run beside what follows them.
type audits struct {
	running sync.WaitGroup
	// cancel ends them, nil before the first.
	cancel context.CancelFunc

	mu    sync.Mutex
	found []error
}

// parseAudit begins an audit. An informer that is right has no differences, whatever happens
// meanwhile. But what was lost differs, and so does everything when the server has gone back.
func parseAudit(a *args) action {
	opts := informer.AuditOptions{BytesPerSecond: int64(a.namedCount("speed", 0))}
	opts.Repair = a.word("") == "repair"
	return func(_ context.Context, p *player) error {
		if p.run == nil || p.subject.Audit == nil || p.lost.Load() || p.travelled.Load() || p.script.judging.Overtaken {
			return nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), longestAudit)
		p.audits.add(cancel)
		subject, lost, travels := p.subject, p.losses.Load(), p.travels.Load()
		p.audits.running.Go(func() {
			defer cancel()
			r, err := subject.Audit(ctx, opts)
			if r.Differences() > 0 && p.losses.Load() == lost && p.travels.Load() == travels {
				p.audits.add(nil, fmt.Errorf("an audit of an informer that has lost nothing finds %+v, %v", r, err))
			}
		})
		return nil
	}
}

// add notes how to end an audit, and what one has found.
func (a *audits) add(cancel context.CancelFunc, found ...error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.found = append(a.found, found...)
	if before := a.cancel; cancel != nil {
		a.cancel = func() {
			if before != nil {
				before()
			}
			cancel()
		}
	}
}

// end ends all audits, and returns what they have found since the last call.
func (a *audits) end() error {
	a.mu.Lock()
	cancel := a.cancel
	a.cancel = nil
	a.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	a.running.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	found := a.found
	a.found = nil
	return errors.Join(found...)
}
