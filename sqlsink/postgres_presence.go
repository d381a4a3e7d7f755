package sqlsink

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// allUnits is the unit of the database as a whole. Its epoch is the reign.
	allUnits = ""
	// shardsRow is the row of units that says into how many parts the writers divide each cluster. It
	// is the name of no unit: those have a slash.
	shardsRow = "shards"
	// advisoryLocks is the first number of the advisory locks: the letters "mirr".
	advisoryLocks = 0x6d697272
)

// openPresence makes the pool that shows other writers that this one writes. Its one connection has an
// advisory lock, which ends with it: a lock of its own where no other writer may write, or one that
// is shared by those that share the work. The reign makes sure of it.
func (p *postgres) openPresence(ctx context.Context, config *pgxpool.Config) (err error) {
	config = config.Copy()
	config.MaxConns, config.MinConns, config.MinIdleConns = 1, 0, 0
	config.MaxConnLifetime, config.MaxConnIdleTime = 0, math.MaxInt64
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return true }
	shared := "_shared"
	if p.alone {
		shared = ""
	}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		// A server notices the end of a process a little later.
		_, err := conn.Exec(ctx, fmt.Sprintf("SET lock_timeout = '5s'; SELECT pg_advisory_lock%s(%d, %d)", shared, advisoryLocks, int32(p.tables)))
		if stateOf(err) == "55P03" { // lock_not_available
			return ErrAnotherWriter
		}
		return err
	}
	p.presence, err = pgxpool.NewWithConfig(ctx, config)
	return err
}

// renewPresence sees to it that the connection stands, and makes one if not. The error is
// ErrAnotherWriter where another writer has the lock.
func (p *postgres) renewPresence(ctx context.Context) error {
	return p.presence.AcquireFunc(ctx, func(*pgxpool.Conn) error { return nil })
}

// claimShards makes sure that all writers that are present divide the clusters in the same way. The
// number is changed only while no other writer is present: then the lock of a presence can be had
// beside the one that this writer shares. A new reign begins with it, so that one whose presence was
// lost unnoticed cannot write any more.
func (p *postgres) claimShards(ctx context.Context, shards int) error {
	var theirs int
	err := p.pool.QueryRow(ctx, `INSERT INTO units (unit, epoch) VALUES ($1, $2)
		ON CONFLICT (unit) DO UPDATE SET epoch = units.epoch RETURNING epoch`, shardsRow, shards).Scan(&theirs)
	if err != nil || theirs == shards {
		return err
	}
	changed, err := p.presence.Exec(ctx, `WITH lock AS MATERIALIZED (SELECT pg_try_advisory_xact_lock($4, $5) AS alone)
		UPDATE units SET epoch = CASE unit WHEN $1 THEN $2 ELSE epoch + 2 END FROM lock WHERE alone AND unit IN ($1, $3)`,
		shardsRow, shards, allUnits, advisoryLocks, int32(p.tables))
	if err == nil && changed.RowsAffected() == 0 {
		err = &OtherShardsError{theirs, shards}
	}
	return err
}

// reignOf begins a reign, or takes part in it. A writer that is alone begins one, with an odd
// number, and writers that share the work are all of one that is even. So a writer whose presence
// has been lost, unnoticed, cannot write beside one that it does not go with. One that takes part
// changes nothing, and so waits for no transaction.
func (p *postgres) reignOf(ctx context.Context, shards int) (reign int64, err error) {
	first, next := 0, `units.epoch + units.epoch % 2`
	if p.alone {
		first, next = 1, `units.epoch + 1 + units.epoch % 2`
	} else {
		if err := p.claimShards(ctx, shards); err != nil {
			return 0, err
		}
		err := p.pool.QueryRow(ctx, `SELECT epoch FROM units WHERE unit = $1 AND epoch % 2 = 0`, allUnits).Scan(&reign)
		if !errors.Is(err, pgx.ErrNoRows) {
			return reign, err
		}
	}
	err = p.pool.QueryRow(ctx, `INSERT INTO units (unit, epoch) VALUES ($1, $2)
		ON CONFLICT (unit) DO UPDATE SET epoch = `+next+` RETURNING epoch`, allUnits, first).Scan(&reign)
	return reign, err
}
