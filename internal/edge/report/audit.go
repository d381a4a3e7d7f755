package report

import (
	"time"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/redact"
)

// resultOf returns what a Status has of the report.
func resultOf(r api.AuditReport, err error) *api.AuditResult {
	return &api.AuditResult{
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

// News returns a number that grows with each event, list and failure, and whether the informer watches.
func (p *Progress) News() (news int64, watches bool) {
	c := &p.counters
	for i := range c.events {
		news += c.events[i].Load()
	}
	for i := range c.lists {
		news += int64(c.lists[i].Load())
	}
	news += int64(c.watches[0].Load()) // after a failure
	p.mu.Lock()
	defer p.mu.Unlock()
	return news, p.now.phase == api.PhaseWatching
}

// EndAudit notes the result of the audit that is under way.
func (p *Progress) EndAudit(r api.AuditReport, err error) {
	err = redact.Error(err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.auditing, p.now.lastAudit = false, resultOf(r, err)
	if p.now.audits != nil && err == nil {
		p.now.audits.complete = time.Now()
	}
}
