package sqlsink

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// How often a transaction is tried again at once that the server has ended for the sake of another
// one.
const maxConflicts = 5

// rollbackPatience is for how long a transaction that has failed may take to end. Then its
// connection is closed.
const rollbackPatience = time.Second

// transaction is what is written all or nothing.
//
// Copy and stage bring its data to the temporary tables of the connection. Copy is for many, takes
// time, and locks nothing; stage queues a few. Merge queues the statements that bring them to the
// tables. They and the commit are one message: a process that is stopped in the middle of a
// transaction keeps no one waiting for long. Part, if it is set, merges before.
type transaction struct {
	of    place
	once  bool // it cannot be tried again
	copy  func(ctx context.Context, conn *pgx.Conn) error
	stage func(batch *pgx.Batch)
	part  func(ctx context.Context, conn *pgx.Conn) error
	merge func(conn *pgx.Conn, batch *pgx.Batch)
}

// transact commits a transaction, or undoes it if it fails or panics.
func (p *postgres) transact(ctx context.Context, t transaction) (err error) {
	if p.shaken.Load() {
		if err := p.presence.Renew(ctx); err != nil {
			return err
		}
		p.shaken.Store(false)
	}
	for range maxConflicts {
		err = p.try(ctx, t)
		if state := stateOf(err); t.once || state != "40001" && state != "40P01" { // serialization_failure, deadlock_detected
			break
		}
	}
	if isLost(err) {
		p.shaken.Store(true)
	}
	return err
}

// isLost reports whether err may mean that a connection is gone.
func isLost(err error) bool {
	if err == nil || isUnusable(err) {
		return false
	}
	state := stateOf(err)
	return state == "" || state[:2] == "57" || state[:2] == "08" || state == "25P03"
}

// refusedBy is err as a *refusedError, if the server says that it refuses what a row has.
func refusedBy(err error, classes ...string) error {
	if state := stateOf(err); state != "" && slices.Contains(classes, state[:2]) {
		return &refusedError{err: err}
	}
	return err
}

func (p *postgres) try(ctx context.Context, t transaction) (err error) {
	acquired, err := p.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer acquired.Release()
	conn := acquired.Conn()
	complete := false
	defer func() {
		if !complete && !conn.IsClosed() {
			within, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackPatience)
			defer cancel()
			// ROLLBACK removes what was staged, and TRUNCATE gives its space back. The pool closes a
			// connection whose transaction has not ended.
			_, _ = conn.Exec(within, `ROLLBACK; TRUNCATE staged_rows, staged_parts`)
		}
	}()
	if err := p.begin(ctx, conn, t); err != nil {
		return err
	}
	if t.part != nil {
		if err := t.part(ctx, conn); err != nil {
			return err
		}
	}
	var batch pgx.Batch
	t.merge(conn, &batch)
	var written int64
	countWrite(&batch, t.of, &written)
	committed := false
	batch.Queue(`COMMIT`).Exec(func(tag pgconn.CommandTag) error {
		committed = tag.String() == "COMMIT"
		return nil
	})
	if err := conn.SendBatch(ctx, &batch).Close(); err != nil {
		return refusedBy(err, mergeRefusals...)
	}
	if !committed {
		return errors.New("the server has undone the transaction")
	}
	complete = true
	p.counts.Set(t.of, written, p.counts.Of(t.of).claimed)
	return nil
}

// What the server says of data that it refuses, as classes of its codes: when it reads them, as
// what jsonb cannot have, or as beyond a limit of jsonb, such as its depth; and when it merges them,
// for constraints, checks of views, and triggers of users too.
var (
	stageRefusals = []string{"22", "54"}
	mergeRefusals = []string{"22", "54", "23", "44", "P0"}
)

// begin begins a transaction, brings the data to the temporary tables, locks the place, and fences.
func (p *postgres) begin(ctx context.Context, conn *pgx.Conn, t transaction) error {
	var batch pgx.Batch
	batch.Queue(`BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE`)
	if t.copy != nil {
		if err := conn.SendBatch(ctx, &batch).Close(); err != nil {
			return err
		}
		batch = pgx.Batch{}
		if err := t.copy(ctx, conn); err != nil {
			return stagingError(err)
		}
	}
	if t.stage != nil {
		t.stage(&batch)
	}
	p.queueLock(&batch, t.of)
	fence := p.queueFence(ctx, &batch, t.of)
	if err := conn.SendBatch(ctx, &batch).Close(); err != nil {
		return stagingError(err)
	}
	return fence.Check(ctx, p)
}

// stagingError is the error of data that do not come to the temporary tables.
func stagingError(err error) error {
	err = refusedBy(err, stageRefusals...)
	if refused := (*refusedError)(nil); errors.As(err, &refused) {
		refused.staging = true
	}
	return err
}

// queueLock has the transactions of a place come one after the other. An informer makes one at a
// time, but where the answer to a commit is lost, the server may still be at it while the informer
// tries again, with newer changes.
func (p *postgres) queueLock(batch *pgx.Batch, of place) {
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%d\x00%s\x00%s\x00%s\x00%s", p.tables, of.unit.Cluster, of.resource.Group, of.resource.Resource, of.unit.Shard)
	batch.Queue(`SELECT pg_advisory_xact_lock($1)`, int64(hash.Sum64()))
}

// hashRange is a range of hashes, with both its ends, in the order of bigint.
type hashRange struct{ first, last int64 }

// ordered is a hash in the order of bigint.
func ordered(hash uint64) int64 { return int64(hash ^ 1<<63) }

// hashOf is the hash that shards are ranges of.
func hashOf(text string) int64 {
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, text) // it cannot fail
	return ordered(hash.Sum64())
}
