package sqlsink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rvinformer/informer/fleet/shards"
	sqlite3 "modernc.org/sqlite/lib"
)

// UnusableError says what is wrong with a database that cannot be used, and what to do about it.
// Trying again does not help.
type UnusableError struct{ Reason, Remedy string }

func (e *UnusableError) Error() string { return e.Reason + "; " + e.Remedy }

// isUnusable reports whether err says that the database cannot be used.
func isUnusable(err error) bool { return errors.As(err, new(*UnusableError)) }

// troubles are the classes and codes of PostgreSQL for what keeps it from writing a row now that the
// row is not at fault for: conflicts, resources such as a full disk, errors of the system and of the
// server itself, locks of others, and statements that were canceled.
var troubles = []string{"40", "53", "58", "XX", "55P03", "57014"}

// isTrouble reports whether err says that the database does not write a row now, and that the row is
// not at fault. It may write others.
func isTrouble(err error) bool {
	switch resultCode(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM:
		return true
	}
	state := stateOf(err)
	return slices.ContainsFunc(troubles, func(trouble string) bool { return strings.HasPrefix(state, trouble) })
}

// ErrAnotherWriter says that another program has the database, or another Sink of this one: it has one
// writer, or those that share it with the same Shards. errors.Is finds it in the error of Open, and in
// Sink.Err of the one that was replaced.
var ErrAnotherWriter error = errOther

var (
	errOther    = &UnusableError{"another writer has it", "end the one that has opened it before"}
	errWentBack = &UnusableError{"it has lost what it had acknowledged, as after a failover to a standby that lacked it",
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

// stale tells the replica that it is not the owner of a unit any more, because a higher epoch is
// stored, or has to begin again with it, because the database has lost what it had acknowledged.
// Nothing was written. The error wraps shards.ErrStaleEpoch.
func stale(ctx context.Context, unit string, epoch, stored int64) error {
	text := fmt.Sprintf("%s has another owner: the database has its epoch %d, this one is %d", unit, stored, epoch)
	if stored <= epoch {
		text = unit + " begins again: the database has lost what it had acknowledged"
	}
	return &staleError{text, shards.StaleEpoch(ctx, stored)}
}

type staleError struct {
	text string
	err  error // as the replica knows it
}

func (e *staleError) Error() string { return e.text }
func (e *staleError) Unwrap() error { return e.err }
