// Package auditor audits one informer: it lists the metadata, has it compared, and notes the
// result.
package auditor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/edge/audit"
	"github.com/rvinformer/informer/internal/engine/follower"
	"github.com/rvinformer/informer/internal/engine/source"
	"github.com/rvinformer/informer/internal/leaf/backoff"
)

// Auditor audits one informer.
type Auditor struct {
	Setup *follower.Setup
	// PageSize and Patience are those of lists; zero is the default of each.
	PageSize int64
	Patience source.Patience
	// Informer returns the informer, or why it cannot be audited.
	Informer func() (audit.Informer, error)
}

// defaultRate is the default of api.AuditOptions.BytesPerSecond.
const defaultRate = 4 << 20

func rate(o api.AuditOptions) int64 {
	if o.BytesPerSecond == 0 {
		return defaultRate
	}
	return max(o.BytesPerSecond, 0)
}

// Audit runs one audit, if none is under way, and notes its result.
func (a Auditor) Audit(ctx context.Context, opts api.AuditOptions) (api.AuditReport, error) {
	return a.audit(ctx, opts, func(s audit.Server) audit.Server { return s })
}

// audit is Audit with a server that over returns.
func (a Auditor) audit(ctx context.Context, opts api.AuditOptions, over func(audit.Server) audit.Server) (r api.AuditReport, err error) {
	switch {
	case a.Setup.Resource == nil:
		return r, a.wrap(api.ErrNoMetadata)
	case !a.Setup.Report.BeginAudit():
		return r, a.wrap(api.ErrAuditRunning)
	}
	server := metadata{source.NewMetadata(a.Setup.Resource, a.Setup.Shard, a.Setup.Memory, a.PageSize, a.Patience, a.Setup.Report.Handler)}
	informer, err := a.Informer()
	if err == nil {
		r, err = audit.Run(ctx, audit.Options{Informer: informer, Server: over(server), BytesPerSecond: rate(opts), Repair: opts.Repair})
	}
	err = a.wrap(err)
	a.Setup.Report.EndAudit(r, err)
	return r, err
}

func (a Auditor) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("audit of %s: %w", a.Setup.Name, err)
}

// turns are those of audits that are not asked for by a call: many informers of one server must not
// list at a time.
var turns audit.Turns

// Repeat audits again and again until ctx ends, each time after about so long. What differs is
// reported.
func (a Auditor) Repeat(ctx context.Context, every time.Duration, opts api.AuditOptions) {
	a.Setup.Report.AuditEvery(every)
	for {
		if backoff.Sleep(ctx, every-every/4+rand.N(every/2+1)) != nil {
			return
		}
		end, err := turns.Begin(ctx, a.Setup.Resource.Turns())
		if err != nil {
			return
		}
		end = sync.OnceFunc(end)
		t := newTurn(end)
		found, _ := a.audit(ctx, opts, t.over) // the Status has the error
		t.Stop()
		end()
		if err := found.Err(a.Setup.Name); err != nil {
			a.Setup.Report.Handler(err)
		}
	}
}

// turnPatience is how long an audit may ask its server nothing and keep its turn.
const turnPatience = time.Minute

// turn is the turn of an audit. It is over when the audit asks its server nothing for a while: the
// audit may wait for a handler that does not return, and the others of the server have to go on.
type turn struct {
	audit.Server
	*time.Timer
}

func newTurn(end func()) *turn { return &turn{Timer: time.AfterFunc(turnPatience, end)} }

func (t *turn) over(server audit.Server) audit.Server {
	t.Server = server
	return t
}

func (t *turn) Page(ctx context.Context, token string, each func(audit.Item)) (audit.Page, error) {
	t.Stop()
	defer t.Reset(turnPatience)
	return t.Server.Page(ctx, token, each)
}

func (t *turn) Ask(ctx context.Context, key string, each func(audit.Item)) (audit.Page, error) {
	t.Stop()
	defer t.Reset(turnPatience)
	return t.Server.Ask(ctx, key, each)
}
