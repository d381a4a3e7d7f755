package informer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rvinformer/informer/internal/audit"
	"github.com/rvinformer/informer/internal/backoff"
	"github.com/rvinformer/informer/internal/follower"
	"github.com/rvinformer/informer/internal/report"
	"github.com/rvinformer/informer/internal/source"
)

// ErrDiffered is what the ErrorHandler gets when an audit of AuditEvery has found a difference.
var ErrDiffered = errors.New("the informer differed from its server")

// auditor audits one informer.
type auditor struct {
	setup *follower.Setup
	// pageSize and patience are those of lists.
	pageSize int64
	patience time.Duration
	// compare compares with the server, and repairs.
	compare func(ctx context.Context, server audit.Server, bytesPerSecond int64, repair bool) (audit.Report, error)
}

// audit runs one audit, if none is under way, and notes its result.
func (a auditor) audit(ctx context.Context, opts AuditOptions) (AuditReport, error) {
	if a.setup.Resource == nil {
		return AuditReport{}, fmt.Errorf("audit of %s: %w", a.setup.Name, ErrNoMetadata)
	}
	if !a.setup.Report.BeginAudit() {
		return AuditReport{}, fmt.Errorf("audit of %s: %w", a.setup.Name, ErrAuditRunning)
	}
	metadata := source.NewMetadata(a.setup.Resource, &a.setup.Memory, a.pageSize, source.Patience(a.patience), a.setup.Report.Handler)
	found, err := a.compare(ctx, metadata, opts.rate(), opts.Repair)
	r := auditReport(found)
	if err != nil {
		err = fmt.Errorf("audit of %s: %w", a.setup.Name, err)
	}
	a.setup.Report.EndAudit(report.Audit{
		Time: time.Now(), Took: r.Took, ResourceVersion: r.ResourceVersion, Objects: r.Objects,
		Missing: r.MissingCount, Stale: r.StaleCount, Superfluous: r.SuperfluousCount, Repaired: r.Repaired, Err: err,
	})
	return r, err
}

// auditTurns has audits that are not asked for by a call take turns: many informers of one server must not list at a time.
var auditTurns audit.Turns

// repeat audits again and again until ctx ends, each time after about so long.
func (a auditor) repeat(ctx context.Context, every time.Duration, opts AuditOptions) {
	for {
		pause := every - every/4 + rand.N(every/2+1)
		if backoff.Sleep(ctx, pause) != nil {
			return
		}
		end, err := auditTurns.Begin(ctx, a.setup.Resource.Turns())
		if err != nil {
			return
		}
		found, _ := a.audit(ctx, opts) // the error is in the Status
		end()
		if found.Differences() > 0 {
			a.setup.Report.Handler(found.err(a.setup.Name))
		}
	}
}

// err says what differs.
func (r AuditReport) err(name string) error {
	first := append(append(append([]AuditDifference{}, r.Missing...), r.Stale...), r.Superfluous...)[0]
	return fmt.Errorf("audit of %s at version %s: %w: %d objects are missing, %d stale and %d superfluous, %q for instance; %d are repaired",
		name, r.ResourceVersion, ErrDiffered, r.MissingCount, r.StaleCount, r.SuperfluousCount, first.Key, r.Repaired)
}
