package informer

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/internal/audit"
	"github.com/rvinformer/informer/internal/report"
	"github.com/rvinformer/informer/internal/rv"
)

var (
	// ErrNotRunning is the error of an audit of an informer that does not run, or that ends meanwhile.
	ErrNotRunning = report.ErrNotRunning
	// ErrNotSynced is the error of an audit of an informer whose first complete list was not delivered yet.
	ErrNotSynced = report.ErrNotSynced
	// ErrAuditRunning is the error of an audit beside another one of the same informer.
	ErrAuditRunning = errors.New("another audit is under way")
	// ErrNoMetadata is the error of an audit of an informer whose ListerWatcher cannot list metadata.
	ErrNoMetadata = errors.New("the ListerWatcher is not one of a DynamicListerWatcherFactory: it cannot list metadata")
)

// AuditOptions are options of an audit. The zero value only compares.
type AuditOptions struct {
	// Repair has the handler told what differs. The informer lists the newest state of the server, all of it, and delivers what is
	// different from what the handler has acknowledged: in order, through the queue, acknowledged as ever. Nothing is deleted that
	// this list shows. Default: nothing is repaired.
	Repair bool
	// BytesPerSecond is how fast the server's list is read, on average over its pages. If its pages expire before the last one is
	// read, the audit begins again, twice at most, and each time twice as fast. Default: 4 MiB. A negative number means no limit.
	BytesPerSecond int64
}

// defaultAuditRate is the default of AuditOptions.BytesPerSecond.
const defaultAuditRate = 4 << 20

func (o AuditOptions) rate() int64 {
	if o.BytesPerSecond == 0 {
		return defaultAuditRate
	}
	return max(o.BytesPerSecond, 0)
}

// AuditReport is what an audit has found. An informer that is right has no differences.
type AuditReport struct {
	// ResourceVersion is that of the server's list which the informer was compared with.
	ResourceVersion string
	// Began is when the audit began, and Took how long it took.
	Began time.Time
	Took  time.Duration
	// Objects is the number of objects of the list, and Bytes the size of their metadata.
	Objects int
	Bytes   int64
	// Unreadable is the number of objects of the list whose metadata could not be read. They were not compared.
	Unreadable int
	// Missing are objects that the server has and the informer does not, Stale are those that the informer has in another version
	// than the server, and Superfluous are those that the informer has and the server does not. Each has the first 100.
	Missing, Stale, Superfluous []AuditDifference
	// MissingCount, StaleCount and SuperfluousCount count all of them.
	MissingCount, StaleCount, SuperfluousCount int
	// Repaired counts those of Missing, Stale and Superfluous that are repaired.
	Repaired int
}

// Differences is the number of all differences.
func (r AuditReport) Differences() int { return r.MissingCount + r.StaleCount + r.SuperfluousCount }

// AuditDifference is one key of which an informer does not have what the server has.
type AuditDifference struct {
	// Key is "namespace/name", or "name".
	Key string
	// Server is what the server had, zero if nothing. Own is what the informer had, zero if nothing; its UID may be empty.
	Server, Own AuditVersion
	// Repaired tells that the informer has acknowledged something else since.
	Repaired bool
}

// AuditVersion is one state of one object.
type AuditVersion struct {
	ResourceVersion string
	UID             types.UID
}

// AuditResult is the result of an audit in a Status.
//
//   - Time is when the audit ended, and Took how long it took.
//   - ResourceVersion and Objects are those of the server's list.
//   - Missing, Stale and Superfluous count the differences, and Repaired those that an AuditReport says are repaired.
//   - Err is why the audit did not come to its end, nil if it did.
type AuditResult = report.Audit

func auditReport(found audit.Report) AuditReport {
	r := AuditReport{
		ResourceVersion: found.ResourceVersion, Began: found.Began, Took: found.Took,
		Objects: found.Objects, Bytes: found.Bytes, Unreadable: found.Unreadable,
	}
	r.Missing, r.MissingCount = r.differences(found.Found[audit.Missing])
	r.Stale, r.StaleCount = r.differences(found.Found[audit.Stale])
	r.Superfluous, r.SuperfluousCount = r.differences(found.Found[audit.Superfluous])
	return r
}

// differences converts differences, and counts those that are repaired.
func (r *AuditReport) differences(found audit.Differences) (differences []AuditDifference, count int) {
	for _, d := range found.First {
		differences = append(differences, AuditDifference{
			Key: d.Key, Server: AuditVersion(d.Server), Own: AuditVersion(d.Own), Repaired: d.Repaired,
		})
		if d.Repaired {
			r.Repaired++
		}
	}
	return differences, found.Count
}

// add adds the report of another handler.
func (r *AuditReport) add(other AuditReport) {
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
