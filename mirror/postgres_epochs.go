package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet/shards"
)

// staleEpochError says that a unit has another owner, or that the database has lost what it had
// acknowledged, and so that nothing was written. It wraps shards.ErrStaleEpoch.
type staleEpochError struct {
	unit   string
	epoch  int64 // of the writer
	stored int64 // a higher one, if the unit has another owner
	err    error // as the replica knows it
}

// stale tells the replica that it is not the owner of a unit any more, or has to begin again with
// it.
func stale(ctx context.Context, unit string, epoch, stored int64) error {
	return &staleEpochError{unit, epoch, stored, shards.StaleEpoch(ctx, stored)}
}

func (e *staleEpochError) Unwrap() error { return e.err }

func (e *staleEpochError) Error() string {
	if e.stored <= e.epoch {
		return fmt.Sprintf("%s begins again: the database has lost what it had acknowledged", e.unit)
	}
	return fmt.Sprintf("%s has another owner: the database has its epoch %d, this one is %d", e.unit, e.stored, e.epoch)
}

// allUnits is the unit of the database as a whole. Its epoch is the reign.
const allUnits = ""

// reignOf begins a reign, or takes part in it. A mirror that is alone begins one, with an odd
// number, and mirrors that share the work are all of one that is even. So a mirror whose presence
// has been lost, unnoticed, cannot write beside one that it does not go with. One that takes part
// changes nothing, and so waits for no transaction.
func (p *postgres) reignOf(ctx context.Context, alone bool) (reign int64, err error) {
	first, next := 0, `units.epoch + units.epoch % 2`
	if alone {
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

// claim stores the epoch of the context for the unit of a place, if it has one. All transactions of
// older epochs that write to the place have ended then: what is read afterwards, no other owner
// changes any more. A session that keeps it waiting is ended. The count of the place's transactions
// begins from what is stored.
func (p *postgres) claim(ctx context.Context, of place) error {
	epoch, ok := informer.EpochOf(ctx)
	if !ok {
		return nil
	}
	unit := of.unit()
	var stored int64
	err := p.pool.QueryRow(ctx, `SELECT coalesce(max(epoch), -1) FROM units WHERE unit = $1`, unit).Scan(&stored)
	if err == nil && stored > epoch {
		return stale(ctx, unit, epoch, stored) // it ends no session
	}
	if err != nil {
		return err
	}
	var written int64
	err = p.pool.AcquireFunc(ctx, func(acquired *pgxpool.Conn) error {
		conn := acquired.Conn()
		defer p.endBlockers(ctx, conn.PgConn().PID())()
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if err := p.lock(ctx, conn, []place{of}); err != nil {
				return err
			}
			if stored < epoch {
				if err := tx.QueryRow(ctx, `INSERT INTO units (unit, epoch) VALUES ($1, $2)
					ON CONFLICT (unit) DO UPDATE SET epoch = greatest(units.epoch, excluded.epoch) RETURNING epoch`, unit, epoch).Scan(&stored); err != nil {
					return err
				}
			}
			return tx.QueryRow(ctx, `SELECT coalesce(max(written), 0) FROM mirror_writes WHERE `+ofCheckpoint, checkpointArguments(of)...).Scan(&written)
		})
	})
	if err == nil && stored > epoch {
		err = stale(ctx, unit, epoch, stored)
	}
	if err == nil {
		p.acknowledged.Set(of, written)
	}
	return err
}

// fence locks the epochs of the units of places until the transaction ends, against a claim only,
// and compares them. It also compares how often the places were written with what was acknowledged.
// The error is a *staleEpochError, errAnotherMirror or errWentBack.
func (p *postgres) fence(ctx context.Context, conn *pgx.Conn, places []place) error {
	epoch, shared := informer.EpochOf(ctx)
	var units []string
	if shared {
		units = unitsOf(places)
	}
	stored, written := make(map[string]int64), make([]int64, len(places))
	var batch pgx.Batch
	batch.Queue(`SELECT unit, epoch FROM units WHERE unit = ANY ($1) ORDER BY unit FOR SHARE`, append([]string{allUnits}, units...)).Query(func(rows pgx.Rows) error {
		var unit string
		var of int64
		_, err := pgx.ForEachRow(rows, []any{&unit, &of}, func() error {
			stored[unit] = of
			return nil
		})
		return err
	})
	for i, of := range places {
		batch.Queue(`SELECT coalesce(max(written), 0) FROM mirror_writes WHERE `+ofCheckpoint, checkpointArguments(of)...).QueryRow(func(row pgx.Row) error {
			return row.Scan(&written[i])
		})
	}
	if err := conn.SendBatch(ctx, &batch).Close(); err != nil {
		return err
	}
	if stored[allUnits] != p.reign {
		return errAnotherMirror
	}
	for _, unit := range units {
		of, known := stored[unit]
		if !known {
			of = -1
		}
		if of != epoch {
			return stale(ctx, unit, epoch, of)
		}
	}
	for i, of := range places {
		switch {
		case written[i] >= p.acknowledged.Of(of):
		case shared:
			return stale(ctx, of.unit(), epoch, epoch)
		default:
			return errWentBack
		}
	}
	return nil
}

// errWentBack says that a server has lost transactions that it had acknowledged.
var errWentBack = &unusableError{"it has lost what it had acknowledged, as after a failover to a standby that lacked it", "start mirror again: it goes on from what is there"}

// countWrite queues the statement that counts a transaction of a place, and takes note of the
// count.
func countWrite(batch *pgx.Batch, of place, written *int64) {
	batch.Queue(`INSERT INTO mirror_writes (cluster, "group", resource, shard, written) VALUES ($1, $2, $3, $4, 1)
		ON CONFLICT (cluster, "group", resource, shard) DO UPDATE SET written = mirror_writes.written + 1 RETURNING written`,
		checkpointArguments(of)...).QueryRow(func(row pgx.Row) error { return row.Scan(written) })
}

// acknowledgments are how often each place was written when the server acknowledged a transaction
// last. The zero value is ready.
type acknowledgments struct {
	mu     sync.Mutex
	counts map[written]int64
}

// written is a place as the table mirror_writes has it.
type written struct{ cluster, group, resource, shard string }

func writtenOf(of place) written {
	return written{of.cluster, of.resource.Group, of.resource.Resource, of.shard.String()}
}

func (a *acknowledgments) Of(of place) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.counts[writtenOf(of)]
}

func (a *acknowledgments) Set(of place, count int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.counts == nil {
		a.counts = make(map[written]int64)
	}
	a.counts[writtenOf(of)] = count
}
