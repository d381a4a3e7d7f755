package informer

import (
	"github.com/rvinformer/informer/internal/audit"
	"github.com/rvinformer/informer/internal/report"
	"github.com/rvinformer/informer/internal/rv"
)

var (
	// ErrNotRunning is the error of an audit of an informer that does not run.
	ErrNotRunning = report.ErrNotRunning
	// ErrNotSynced is the error of an audit of an informer whose first complete list was not
	// delivered yet.
	ErrNotSynced = report.ErrNotSynced
	// ErrAuditRunning is the error of an audit beside another one of the same informer.
	ErrAuditRunning = report.ErrAuditRunning
	// ErrNoMetadata is the error of an audit of an informer whose ListerWatcher cannot list
	// metadata.
	ErrNoMetadata = report.ErrNoMetadata
	// ErrDiffered is what the ErrorHandler gets when an audit of AuditEvery has found a difference.
	ErrDiffered = report.ErrDiffered
)

// AuditOptions are options of an audit. The zero value only compares.
//
//   - Repair has the handler told what differs. The informer lists the newest state of the server,
//     all of it, and delivers what is different from what the handler has acknowledged: in order,
//     through the queue, acknowledged as ever. Nothing is deleted that this list shows.
//   - BytesPerSecond is how fast the server's list is read, on average over its pages. If its pages
//     expire before the last one is read, the audit begins again, twice at most, and each time
//     twice as fast. Default: 4 MiB. A negative number means no limit.
type AuditOptions = report.AuditOptions

// AuditReport is what an audit has found. Its method Differences is the number of differences,
// which is zero for an informer that is right.
//
//   - ResourceVersion is that of the server's list which the informer was compared with.
//   - Began is when the audit began, and Took how long it took.
//   - Objects is the number of objects of the list, and Bytes the size of their metadata.
//   - Unreadable is the number of objects of the list whose metadata could not be read. They were
//     not compared.
//   - Missing are objects that the server has and the informer does not, Stale are those that the
//     informer has in another version than the server, and Superfluous are those that the informer
//     has and the server does not: the first 100 of each.
//   - MissingCount, StaleCount and SuperfluousCount count all of them.
//   - Repaired counts all of them for which the informer has acknowledged something else since.
type AuditReport = report.AuditReport

// AuditDifference is one key for which informer and server differ.
//
//   - Key is "namespace/name", or "name".
//   - Server is what the server had, zero if nothing. Own is what the informer had, zero if
//     nothing; its UID may be empty.
//   - Repaired tells that the informer has acknowledged something else since.
type AuditDifference = report.AuditDifference

// AuditVersion is one state of one object.
type AuditVersion = report.AuditVersion

// AuditResult is the result of an audit in a Status.
//
//   - Time is when the audit ended, and Took how long it took.
//   - ResourceVersion and Objects are those of the server's list.
//   - Missing, Stale and Superfluous count the differences, and Repaired those of them that are
//     repaired.
//   - Err is why the audit did not come to its end, nil if it did.
type AuditResult = report.Audit

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
