package sqlsink

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rvinformer/informer"
)

// allUnits is the unit of the database as a whole. Its epoch is the reign.
const allUnits = ""

// reignOf begins a reign, or takes part in it. A writer that is alone begins one, with an odd
// number, and writers that share the work are all of one that is even. So a writer whose presence
// has been lost, unnoticed, cannot write beside one that it does not go with. One that takes part
// changes nothing, and so waits for no transaction.
func (p *postgres) reignOf(ctx context.Context) (reign int64, err error) {
	first, next := 0, `units.epoch + units.epoch % 2`
	if p.alone {
		first, next = 1, `units.epoch + 1 + units.epoch % 2`
	} else {
		err := p.pool.QueryRow(ctx, `SELECT epoch FROM units WHERE unit = $1 AND epoch % 2 = 0`, allUnits).Scan(&reign)
		if !errors.Is(err, pgx.ErrNoRows) {
			return reign, err
		}
	}
	err = p.pool.QueryRow(ctx, `INSERT INTO units (unit, epoch) VALUES ($1, $2)
		ON CONFLICT (unit) DO UPDATE SET epoch = `+next+` RETURNING epoch`, allUnits, first).Scan(&reign)
	return reign, err
}

// Claim stores the epoch of the context for the unit of a place, if it has one. A session that keeps
// it waiting is ended. It counts as a transaction of the place, and begins from the count that is
// stored. Under an epoch that this process has claimed already that must not be less than it was: an
// informer claims before it reads its Storage and again before its Checkpoint, and a server that went
// back between them has a checkpoint that does not go with the Storage.
func (p *postgres) Claim(ctx context.Context, of place) error {
	epoch, ok := informer.EpochOf(ctx)
	if !ok {
		return nil
	}
	unit := of.unit.String()
	var stored int64
	err := p.pool.QueryRow(ctx, `SELECT coalesce(max(epoch), -1) FROM units WHERE unit = $1`, unit).Scan(&stored)
	if err == nil && stored > epoch {
		return stale(ctx, unit, epoch, stored) // it ends no session
	}
	if err != nil {
		return err
	}
	known := p.known(of)
	return p.pool.AcquireFunc(ctx, func(acquired *pgxpool.Conn) error {
		conn := acquired.Conn()
		defer p.endBlockers(ctx, conn.PgConn().PID())()
		var written int64
		err := pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
			var batch pgx.Batch
			if stored < epoch {
				batch.Queue(`INSERT INTO units (unit, epoch) VALUES ($1, $2)
					ON CONFLICT (unit) DO UPDATE SET epoch = greatest(units.epoch, excluded.epoch) RETURNING epoch`, unit, epoch).
					QueryRow(func(row pgx.Row) error { return row.Scan(&stored) })
			}
			queueCount(&batch, of, &written)
			err := tx.SendBatch(ctx, &batch).Close()
			if err == nil && (stored > epoch || known.claimed == epoch && written <= known.written) {
				err = stale(ctx, unit, epoch, stored)
			}
			return err
		})
		if err == nil {
			p.counts.Store(of.key(), count{written, epoch})
		}
		return err
	})
}

// errNoEpoch says that a write could not be told from one of another owner.
var errNoEpoch = errors.New("with Shards, a write needs a context with an epoch")

// claimOnce claims a place if this process has not, because its informer reads neither Storage nor
// Checkpoint.
func (p *postgres) claimOnce(ctx context.Context, of place) error {
	epoch, ok := informer.EpochOf(ctx)
	switch {
	case !ok && !p.alone:
		return errNoEpoch
	case ok && p.known(of).claimed < epoch:
		return p.Claim(ctx, of)
	}
	return nil
}

// fence is what a transaction has found of its place.
type fence struct {
	of            place
	reign, stored int64
	written       int64 // this transaction included
}

// queueFence locks the epoch of the unit of a place until the transaction ends, against a claim
// only, and reads it. It also counts the transaction.
func queueFence(batch *pgx.Batch, of place) *fence {
	f := &fence{of: of}
	batch.Queue(`SELECT coalesce((SELECT epoch FROM units WHERE unit = $1 FOR SHARE), -1),
		coalesce((SELECT epoch FROM units WHERE unit = $2 FOR SHARE), -1)`, allUnits, of.unit.String()).
		QueryRow(func(row pgx.Row) error { return row.Scan(&f.reign, &f.stored) })
	queueCount(batch, of, &f.written)
	return f
}

// check compares a fence with what the writer is, and knows. The error wraps shards.ErrStaleEpoch,
// or is errAnotherWriter or errWentBack.
func (p *postgres) check(ctx context.Context, f *fence) error {
	epoch, shared := informer.EpochOf(ctx)
	lost := f.written <= p.known(f.of).written
	switch {
	case f.reign != p.reign:
		return errAnotherWriter
	case shared && (f.stored != epoch || lost):
		return stale(ctx, f.of.unit.String(), epoch, f.stored)
	case lost:
		return errWentBack
	}
	return nil
}

// queueCount counts a transaction of a place, which locks the count until it ends. So those of a
// place come one after the other. An informer makes one at a time, but where the answer to a commit
// is lost, the server may still be at it while the informer tries again, with newer changes.
func queueCount(batch *pgx.Batch, of place, written *int64) {
	batch.Queue(`INSERT INTO mirror_writes (cluster, "group", resource, shard, written) VALUES ($1, $2, $3, $4, 1)
		ON CONFLICT (cluster, "group", resource, shard) DO UPDATE SET written = mirror_writes.written + 1 RETURNING written`,
		checkpointArguments(of)...).QueryRow(func(row pgx.Row) error { return row.Scan(written) })
}

// count is how often a place was written when the server acknowledged a transaction last, and the
// epoch that this process has claimed it with, 0 if it has not.
type count struct{ written, claimed int64 }

// known is what this process knows of a place.
func (p *postgres) known(of place) count {
	known, _ := p.counts.Load(of.key())
	c, _ := known.(count)
	return c
}
