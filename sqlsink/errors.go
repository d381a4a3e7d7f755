package sqlsink

import (
	"context"
	"errors"
	"fmt"

	"github.com/rvinformer/informer/fleet/shards"
)

// UnusableError says why a database cannot be used, and what to do about it. Trying again does not
// help.
type UnusableError struct {
	// Reason is what is wrong.
	Reason string
	// Remedy is what to do about it.
	Remedy string
}

func (e *UnusableError) Error() string { return e.Reason + "; " + e.Remedy }

// isUnusable reports whether err says that the database cannot be used.
func isUnusable(err error) bool {
	unusable := (*UnusableError)(nil)
	return errors.As(err, &unusable)
}

var (
	errAnotherWriter = &UnusableError{"another mirror writes to it", "end that one first"}
	errWentBack      = &UnusableError{"it has lost what it had acknowledged, as after a failover to a standby that lacked it",
		"start again: the next start goes on from what is there"}
)

// OtherShardsError says that there are writers that divide the clusters in another way. Their units
// overlap with those of this one, and no epoch fences the owners of two units from each other. Open
// succeeds when they have ended.
type OtherShardsError struct {
	// Theirs and Own are the numbers of shards.
	Theirs, Own int
}

func (e *OtherShardsError) Error() string {
	return fmt.Sprintf("writers with %d shards use it, and this one has %d: it goes on when they have ended", e.Theirs, e.Own)
}

// staleError says that a unit has another owner, or that the database has lost what it had
// acknowledged, and so that nothing was written. It wraps shards.ErrStaleEpoch.
type staleError struct {
	unit   string
	epoch  int64 // of the writer
	stored int64 // a higher one, if the unit has another owner
	err    error // as the replica knows it
}

// stale tells the replica that it is not the owner of a unit any more, or has to begin again with
// it.
func stale(ctx context.Context, unit string, epoch, stored int64) error {
	return &staleError{unit, epoch, stored, shards.StaleEpoch(ctx, stored)}
}

func (e *staleError) Unwrap() error { return e.err }

func (e *staleError) Error() string {
	if e.stored <= e.epoch {
		return fmt.Sprintf("%s begins again: the database has lost what it had acknowledged", e.unit)
	}
	return fmt.Sprintf("%s has another owner: the database has its epoch %d, this one is %d", e.unit, e.stored, e.epoch)
}

// refusedError is the error of a database that refuses rows: what they have, not their number or
// their moment.
type refusedError struct {
	staging bool // the rows were not even brought to the database
	err     error
}

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }
