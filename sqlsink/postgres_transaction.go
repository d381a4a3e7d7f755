package sqlsink

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rvinformer/informer"
)

// maxConflicts is how often a transaction is tried at once that the server ends for the sake of
// another one.
const maxConflicts = 5

// rollbackPatience is for how long a transaction that has failed may take to end. Then its
// connection is closed.
const rollbackPatience = time.Second

// maxStaged is for how many bytes the temporary tables of a connection are only emptied. TRUNCATE
// gives the space back, and takes as long as to write a hundred rows.
const maxStaged = 4 << 20

// transaction is what is written to a place, all or nothing.
//
// Stage brings its data to the temporary tables of the connection, and locks nothing. Merge brings
// the data from there to the tables. Statements that the two leave in the batch are sent afterwards,
// so that merge and the commit are one message. A process that is stopped in the middle of a
// transaction then holds its locks for a short time only.
type transaction struct {
	of           place
	claims       bool // it ends the sessions that it waits for
	once         bool // it cannot be tried again
	stage, merge func(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch) error
}

// send sends what is queued in a batch, and empties it.
func send(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch) error {
	err := conn.SendBatch(ctx, batch).Close()
	*batch = pgx.Batch{}
	return err
}

// transact commits a transaction, or undoes it if it fails or panics.
func (p *postgres) transact(ctx context.Context, t transaction) (err error) {
	epoch, ok := informer.EpochOf(ctx)
	switch {
	case !ok && !p.alone:
		return errors.New("with Shards, a write needs a context with an epoch")
	case ok && p.known(t.of).claimed < epoch: // its informer reads neither Storage nor Checkpoint
		if err := p.Claim(ctx, t.of); err != nil {
			return err
		}
	}
	if p.shaken.Load() {
		if err := p.renewPresence(ctx); err != nil {
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

func (p *postgres) try(ctx context.Context, t transaction) error {
	return p.pool.AcquireFunc(ctx, func(acquired *pgxpool.Conn) error {
		conn := acquired.Conn()
		if t.claims {
			defer p.endBlockers(ctx, conn.PgConn().PID())()
		}
		committed := false
		defer func() {
			if committed || conn.IsClosed() {
				return
			}
			within, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackPatience)
			defer cancel()
			// ROLLBACK removes what was staged, and TRUNCATE gives its space back. The pool closes a
			// connection whose transaction has not ended.
			_, _ = conn.Exec(within, `ROLLBACK; TRUNCATE staged_rows, staged_parts`)
		}()
		var batch pgx.Batch
		batch.Queue(`BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE`)
		if err := t.stage(ctx, conn, &batch); err != nil {
			return err
		}
		var f fenced
		batch.Queue(fence, append(checkpointArguments(t.of), allUnits, t.of.unit.String())...).
			QueryRow(func(row pgx.Row) error { return row.Scan(&f.reign, &f.stored, &f.written, &f.staged) })
		if err := send(ctx, conn, &batch); err != nil {
			return err
		}
		if err := p.check(ctx, t.of, f); err != nil {
			return err
		}
		if err := t.merge(ctx, conn, &batch); err != nil {
			return err
		}
		if f.staged < maxStaged {
			batch.Queue(`DELETE FROM staged_rows`)
		} else {
			batch.Queue(`TRUNCATE staged_rows`)
		}
		batch.Queue(`COMMIT`).Exec(func(tag pgconn.CommandTag) error {
			if committed = tag.String() == "COMMIT"; !committed {
				return errors.New("the server has undone the transaction")
			}
			return nil
		})
		if err := send(ctx, conn, &batch); err != nil {
			return err
		}
		epoch, _ := informer.EpochOf(ctx)
		p.counts.Store([4]any(checkpointArguments(t.of)), count{f.written, max(epoch, p.known(t.of).claimed)})
		return nil
	})
}
