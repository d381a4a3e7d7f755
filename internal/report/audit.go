package report

import (
	"time"

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

// BeginAudit notes that an audit begins, and reports whether none was under way.
func (p *Progress) BeginAudit() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	begun := !p.auditing
	p.auditing = true
	return begun
}

// EndAudit notes the result of the audit that is under way.
func (p *Progress) EndAudit(a Audit) {
	a.Err = redact.Error(a.Err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.auditing, p.now.LastAudit = false, &a
}
