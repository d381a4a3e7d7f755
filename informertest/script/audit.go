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

// audits are those of a script, and its redeliveries, which run beside what follows them.
type audits struct {
	running sync.WaitGroup
	// ctx is that of all since the last end, nil before the first; cancel ends it.
	ctx    context.Context
	cancel context.CancelFunc

	mu    sync.Mutex
	found []error
}

// parseAudit begins an audit. An informer that is right has no differences, whatever happens
// meanwhile. But what was lost differs, and so does everything when the server has gone back, or the
// informer watches a replica that stands still.
func parseAudit(a *args) action {
	opts := informer.AuditOptions{BytesPerSecond: int64(a.namedCount("speed", 0))}
	opts.Repair = a.word("") == "repair"
	return func(_ context.Context, p *player) error {
		if p.run == nil || p.subject.Audit == nil || p.lost.Load() || p.travelled.Load() || p.behind.Load() || p.script.judging.Overtaken || !tellsAll(p.script.server.Dialect) {
			return nil
		}
		subject, lost, travels, lags := p.subject, p.losses.Load(), p.travels.Load(), p.lags.Load()
		p.audits.begin(func(ctx context.Context) error {
			r, err := subject.Audit(ctx, opts)
			if r.Differences() > 0 && p.losses.Load() == lost && p.travels.Load() == travels && p.lags.Load() == lags {
				return fmt.Errorf("an audit of an informer that has lost nothing finds %+v, %v", r, err)
			}
			return nil
		})
		return nil
	}
}

// begin runs an audit, which returns what it has found.
func (a *audits) begin(audit func(context.Context) error) {
	if a.ctx == nil {
		a.ctx, a.cancel = context.WithCancel(context.Background())
	}
	ctx, cancel := context.WithTimeout(a.ctx, longestAudit)
	a.running.Go(func() {
		defer cancel()
		if err := audit(ctx); err != nil {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.found = append(a.found, err)
		}
	})
}

// end ends all audits, and returns what they have found since the last call.
func (a *audits) end() error {
	if a.ctx == nil {
		return nil
	}
	a.cancel()
	a.running.Wait()
	err := errors.Join(a.found...)
	a.ctx, a.found = nil, nil
	return err
}
