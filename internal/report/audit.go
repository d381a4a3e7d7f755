package report

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/internal/redact"
)

// Audit is the result of an audit: see informer.AuditResult. It does not change.
type Audit struct {
	Time                                  time.Time
	Took                                  time.Duration
	ResourceVersion                       string
	Objects                               int
	Missing, Stale, Superfluous, Repaired int
	Err                                   error
}

// Differs reports whether the audit has found a difference, or did not come to its end.
func (a *Audit) Differs() bool { return a.Missing+a.Stale+a.Superfluous > 0 || a.Err != nil }

// AuditOptions, AuditReport, AuditDifference and AuditVersion are those of package informer, which
// describes them.
type AuditOptions struct {
	Repair         bool
	BytesPerSecond int64
}

// AuditReport is what an audit has found.
type AuditReport struct {
	ResourceVersion                            string
	Began                                      time.Time
	Took                                       time.Duration
	Objects                                    int
	Bytes                                      int64
	Unreadable                                 int
	Missing, Stale, Superfluous                []AuditDifference
	MissingCount, StaleCount, SuperfluousCount int
	Repaired                                   int
}

// AuditDifference is one key that differs.
type AuditDifference struct {
	Key         string
	Server, Own AuditVersion
	Repaired    bool
}

// AuditVersion is one state of one object.
type AuditVersion struct {
	ResourceVersion string
	UID             types.UID
}

// Differences is the number of all differences.
func (r AuditReport) Differences() int { return r.MissingCount + r.StaleCount + r.SuperfluousCount }

// Err says what differs of an informer, nil if nothing does.
func (r AuditReport) Err(name string) error {
	if r.Differences() == 0 {
		return nil
	}
	first := append(append(append([]AuditDifference{}, r.Missing...), r.Stale...), r.Superfluous...)[0]
	return fmt.Errorf("audit of %s at version %s: %w: %d objects are missing, %d stale and %d superfluous, %q for instance; %d are repaired",
		name, r.ResourceVersion, ErrDiffered, r.MissingCount, r.StaleCount, r.SuperfluousCount, first.Key, r.Repaired)
}

// result returns what a Status has of the report.
func (r AuditReport) result(err error) *Audit {
	return &Audit{
		Time: time.Now(), Took: r.Took, ResourceVersion: r.ResourceVersion, Objects: r.Objects,
		Missing: r.MissingCount, Stale: r.StaleCount, Superfluous: r.SuperfluousCount, Repaired: r.Repaired, Err: err,
	}
}

// audits are those of AuditEvery.
type audits struct {
	every time.Duration
	// complete is when the newest audit came to its end, of those that were asked for by a call
	// too, or else when the run began.
	complete time.Time
}

// AuditEvery notes that the informer is audited about so often from now on.
func (p *Progress) AuditEvery(every time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.audits = &audits{every, time.Now()}
}

// BeginAudit notes that an audit begins, and reports whether none was under way.
func (p *Progress) BeginAudit() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	begun := !p.now.auditing
	p.now.auditing = true
	return begun
}

// EndAudit notes the result of the audit that is under way.
func (p *Progress) EndAudit(r AuditReport, err error) {
	err = redact.Error(err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.auditing, p.now.lastAudit = false, r.result(err)
	if p.now.audits != nil && err == nil {
		p.now.audits.complete = time.Now()
	}
}
