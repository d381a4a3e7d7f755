package informer

import (
	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/edge/audit"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// The errors of an audit, and of others that need an informer that runs.
var (
	// ErrNotRunning: the informer does not run.
	ErrNotRunning = api.ErrNotRunning
	// ErrNotSynced: the first complete list was not delivered yet.
	ErrNotSynced = api.ErrNotSynced
	// ErrAuditRunning: another audit of the same informer is under way.
	ErrAuditRunning = api.ErrAuditRunning
	// ErrNoMetadata: the ListerWatcher cannot list metadata.
	ErrNoMetadata = api.ErrNoMetadata
	// ErrDiffered is what the ErrorHandler gets when an audit of AuditEvery has found a difference.
	ErrDiffered = api.ErrDiffered
)

// The options and the results of an audit. Package api has their fields.
type (
	// AuditOptions are options of an audit. The zero value only compares.
	AuditOptions = api.AuditOptions
	// AuditReport is what an audit has found.
	AuditReport = api.AuditReport
	// AuditDifference is one key for which informer and server differ.
	AuditDifference = api.AuditDifference
	// AuditVersion is one state of one object.
	AuditVersion = api.AuditVersion
	// AuditResult is the result of an audit in a Status.
	AuditResult = api.AuditResult
)

// addAudit adds the report of another handler.
func addAudit(r *AuditReport, other AuditReport) {
	r.ResourceVersion = rv.Oldest(r.ResourceVersion, other.ResourceVersion)
	r.Took += other.Took
	r.Objects = max(r.Objects, other.Objects)
	r.Bytes += other.Bytes
	r.Unreadable = max(r.Unreadable, other.Unreadable)
	r.Missing = atMost(append(r.Missing, other.Missing...))
	r.Stale = atMost(append(r.Stale, other.Stale...))
	r.Superfluous = atMost(append(r.Superfluous, other.Superfluous...))
	r.MissingCount += other.MissingCount
	r.StaleCount += other.StaleCount
	r.SuperfluousCount += other.SuperfluousCount
	r.Repaired += other.Repaired
}

func atMost(differences []AuditDifference) []AuditDifference {
	return differences[:min(len(differences), audit.MaxDifferences)]
}
