package sqlsink

import (
	"context"
	"errors"
	"sync"

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

// Claim stores the epoch of the context for the unit of a place, if it has one. All transactions of
// older epochs that write to the place have ended then: what is read afterwards, no other owner
// changes any more. A session that keeps it waiting is ended. The count of the place's transactions
// begins from what is stored. Under an epoch that this process has claimed already it must not be
// less than it was: an informer claims before it reads its Storage and again before its Checkpoint,
// and a server that went back between them has a checkpoint that does not go with the Storage.
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
	known := p.counts.Of(of)
	var written int64
	err = p.pool.AcquireFunc(ctx, func(acquired *pgxpool.Conn) error {
		conn := acquired.Conn()
		defer p.endBlockers(ctx, conn.PgConn().PID())()
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			var batch pgx.Batch
			p.queueLock(&batch, of)
			if stored < epoch {
				batch.Queue(`INSERT INTO units (unit, epoch) VALUES ($1, $2)
					ON CONFLICT (unit) DO UPDATE SET epoch = greatest(units.epoch, excluded.epoch) RETURNING epoch`, unit, epoch).
					QueryRow(func(row pgx.Row) error { return row.Scan(&stored) })
			}
			queueCount(&batch, of, &written)
			return tx.SendBatch(ctx, &batch).Close()
		})
	})
	if err == nil && (stored > epoch || known.claimed == epoch && written < known.written) {
		err = stale(ctx, unit, epoch, stored)
	}
	if err == nil {
		p.counts.Set(of, written, epoch)
	}
	return err
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
	case ok && p.counts.Of(of).claimed < epoch:
		return p.Claim(ctx, of)
	}
	return nil
}

// fence is what a transaction has found of its place.
type fence struct {
	of            place
	reign, stored int64
	written       int64
}

// queueFence locks the epoch of the unit of a place until the transaction ends, against a claim
// only, and reads it. It also reads how often the place was written.
func (p *postgres) queueFence(ctx context.Context, batch *pgx.Batch, of place) *fence {
	f := &fence{of: of, reign: -1, stored: -1}
	units := []string{allUnits}
	if _, shared := informer.EpochOf(ctx); shared {
		units = append(units, of.unit.String())
	}
	batch.Queue(`SELECT unit, epoch FROM units WHERE unit = ANY ($1) ORDER BY unit FOR SHARE`, units).Query(func(rows pgx.Rows) error {
		var unit string
		var epoch int64
		_, err := pgx.ForEachRow(rows, []any{&unit, &epoch}, func() error {
			if unit == allUnits {
				f.reign = epoch
			} else {
				f.stored = epoch
			}
			return nil
		})
		return err
	})
	queueCount(batch, of, &f.written)
	return f
}

// Check compares the fence with what the writer is. The error is a *staleError, errAnotherWriter or
// errWentBack.
func (f *fence) Check(ctx context.Context, p *postgres) error {
	epoch, shared := informer.EpochOf(ctx)
	lost := f.written < p.counts.Of(f.of).written
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

// queueCount reads how often a place was written.
func queueCount(batch *pgx.Batch, of place, written *int64) {
	batch.Queue(`SELECT coalesce(max(written), 0) FROM mirror_writes WHERE `+ofCheckpoint, checkpointArguments(of)...).QueryRow(func(row pgx.Row) error {
		return row.Scan(written)
	})
}

// countWrite queues the statement that counts a transaction of a place, and takes note of the
// count.
func countWrite(batch *pgx.Batch, of place, written *int64) {
	batch.Queue(`INSERT INTO mirror_writes (cluster, "group", resource, shard, written) VALUES ($1, $2, $3, $4, 1)
		ON CONFLICT (cluster, "group", resource, shard) DO UPDATE SET written = mirror_writes.written + 1 RETURNING written`,
		checkpointArguments(of)...).QueryRow(func(row pgx.Row) error { return row.Scan(written) })
}

// counts are what this process knows of each place. The zero value is ready.
type counts struct {
	mu sync.Mutex
	of map[countedPlace]count
}

// countedPlace is a place as the table mirror_writes has it: in any version.
type countedPlace struct{ cluster, group, resource, shard string }

// count is how often a place was written when the server acknowledged a transaction last, and the
// epoch that this process has claimed it with, 0 if it has not.
type count struct{ written, claimed int64 }

func countedOf(of place) countedPlace {
	return countedPlace{of.unit.Cluster, of.resource.Group, of.resource.Resource, of.unit.Shard.String()}
}

func (c *counts) Of(of place) count {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[countedOf(of)]
}

func (c *counts) Set(of place, written, claimed int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = make(map[countedPlace]count)
	}
	c.of[countedOf(of)] = count{written, claimed}
}
