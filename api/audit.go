package api

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

var (
	// ErrNotRunning is the error of Audit and Redeliver while the informer does not run.
	ErrNotRunning = errors.New("not running")
	// ErrNotSynced is the error of Audit and Redeliver while the first complete list was not
	// delivered.
	ErrNotSynced = errors.New("not synced")
	// ErrAuditRunning is the error of an audit beside another one of the same informer.
	ErrAuditRunning = errors.New("another audit is under way")
	// ErrNoMetadata is the error of an audit of an informer whose ListerWatcher cannot list
	// metadata.
	ErrNoMetadata = errors.New("the ListerWatcher is not one of a DynamicListerWatcherFactory: it cannot list metadata")
	// ErrDiffered is what the ErrorHandler gets when an audit of AuditEvery has found a difference.
	ErrDiffered = errors.New("the informer differed from its server")
)

// AuditOptions are options of an audit. The zero value only compares.
type AuditOptions struct {
	// Repair has the handler told what differs. The informer lists the newest state of the server,
	// all of it, and delivers what is different from what the handler has acknowledged: in order,
	// through the queue, acknowledged as ever. Nothing is deleted that this list shows.
	Repair bool
	// BytesPerSecond is how fast the server's list is read, on average over its pages. If its pages
	// expire before the last one is read, the audit begins again, twice at most, and each time
	// twice as fast. Default: 4 MiB. A negative number means no limit.
	BytesPerSecond int64
}

// AuditReport is what an audit has found.
type AuditReport struct {
	// ResourceVersion is that of the server's list which the informer was compared with.
	ResourceVersion string
	// Began is when the audit began, and Took how long it took.
	Began time.Time
	Took  time.Duration
	// Objects is the number of objects of the list, and Bytes the size of their metadata.
	Objects int
	Bytes   int64
	// Unreadable is the number of objects of the list whose metadata could not be read. They were
	// not compared.
	Unreadable int
	// Missing are objects that the server has and the informer does not, Stale are those that the
	// informer has in another version than the server, and Superfluous are those that the informer
	// has and the server does not: the first 100 of each.
	Missing, Stale, Superfluous []AuditDifference
	// MissingCount, StaleCount and SuperfluousCount count all of them.
	MissingCount, StaleCount, SuperfluousCount int
	// Repaired counts all of them for which the informer has acknowledged something else since.
	Repaired int
}

// AuditDifference is one key for which informer and server differ.
type AuditDifference struct {
	// Key is "namespace/name", or "name".
	Key string
	// Server is what the server had, zero if nothing. Own is what the informer had, zero if
	// nothing; its UID may be empty.
	Server, Own AuditVersion
	// Repaired tells that the informer has acknowledged something else since.
	Repaired bool
}

// AuditVersion is one state of one object.
type AuditVersion struct {
	ResourceVersion string
	UID             types.UID
}

// Differences is the number of all differences. It is zero for an informer that is right.
func (r AuditReport) Differences() int { return r.MissingCount + r.StaleCount + r.SuperfluousCount }

// Err says what differs of an informer with a name, nil if nothing does.
func (r AuditReport) Err(name string) error {
	if r.Differences() == 0 {
		return nil
	}
	first := append(append(append([]AuditDifference{}, r.Missing...), r.Stale...), r.Superfluous...)[0]
	return fmt.Errorf("audit of %s at version %s: %w: %d objects are missing, %d stale and %d superfluous, %q for instance; %d are repaired",
		name, r.ResourceVersion, ErrDiffered, r.MissingCount, r.StaleCount, r.SuperfluousCount, first.Key, r.Repaired)
}

// AuditResult is the result of an audit in a Status. It does not change.
type AuditResult struct {
	// Time is when the audit ended, and Took how long it took.
	Time time.Time
	Took time.Duration
	// ResourceVersion and Objects are those of the server's list.
	ResourceVersion string
	Objects         int
	// Missing, Stale and Superfluous count the differences, and Repaired those of them that are
	// repaired.
	Missing, Stale, Superfluous, Repaired int
	// Err is why the audit did not come to its end, nil if it did.
	Err error
}

// Differs reports whether the audit has found a difference, or did not come to its end.
func (r *AuditResult) Differs() bool { return r.Missing+r.Stale+r.Superfluous > 0 || r.Err != nil }
