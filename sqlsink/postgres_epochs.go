package sqlsink

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/rvinformer/informer"
)

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
	return p.try(ctx, transaction{
		of: of,
		stage: func(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch) error {
			if stored < epoch {
				batch.Queue(`INSERT INTO units (unit, epoch) VALUES ($1, $2)
					ON CONFLICT (unit) DO UPDATE SET epoch = greatest(units.epoch, excluded.epoch)`, unit, epoch)
			}
			return nil
		},
		merge:  func(context.Context, *pgx.Conn, *pgx.Batch) error { return nil },
		claims: true,
	})
}

// fence locks the epoch of the unit of a place until the transaction ends, against a claim only, and
// reads it. Then it counts the transaction, which locks the count, so that those of a place come one
// after the other. An informer makes one at a time, but where the answer to a commit is lost, the
// server may still be at it while the informer tries again, with newer changes.
const fence = `WITH epochs AS (SELECT
		coalesce((SELECT epoch FROM units WHERE unit = $5 FOR SHARE), -1) AS reign,
		coalesce((SELECT epoch FROM units WHERE unit = $6 FOR SHARE), -1) AS stored)
	INSERT INTO mirror_writes (cluster, "group", resource, shard, written) SELECT $1, $2, $3, $4, 1 FROM epochs
	ON CONFLICT (cluster, "group", resource, shard) DO UPDATE SET written = mirror_writes.written + 1
	RETURNING (SELECT reign FROM epochs), (SELECT stored FROM epochs), written, pg_total_relation_size('staged_rows')`

// fenced is what the fence has found.
type fenced struct {
	reign, stored int64
	written       int64 // this transaction included
	staged        int64 // the bytes of the temporary table, from former transactions too
}

// check compares what the fence has found with what the writer is, and knows. The error wraps
// shards.ErrStaleEpoch, or is ErrAnotherWriter or errWentBack.
func (p *postgres) check(ctx context.Context, of place, f fenced) error {
	epoch, shared := informer.EpochOf(ctx)
	known := p.known(of)
	lost := known.claimed >= epoch && f.written <= known.written
	switch {
	case f.reign != p.reign:
		return ErrAnotherWriter
	case shared && (f.stored != epoch || lost):
		return stale(ctx, of.unit.String(), epoch, f.stored)
	case lost:
		return errWentBack
	}
	return nil
}

// count is how often a place was written when the server acknowledged a transaction last, and the
// newest epoch of such ones, 0 if none had one.
type count struct{ written, claimed int64 }

// known is what this process knows of a place.
func (p *postgres) known(of place) count {
	known, _ := p.counts.Load([4]any(checkpointArguments(of)))
	c, _ := known.(count)
	return c
}
