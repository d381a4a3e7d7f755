package sqlsink

import (
	"context"
)

// shardsRow is the row of units that says into how many parts the writers divide each cluster. It
// is the name of no unit: those have a slash.
const shardsRow = "shards"

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
	changed, err := p.presence.conn.Exec(ctx, `WITH lock AS MATERIALIZED (SELECT pg_try_advisory_xact_lock($4, $5) AS alone)
		UPDATE units SET epoch = CASE unit WHEN $1 THEN $2 ELSE epoch + 2 END FROM lock WHERE alone AND unit IN ($1, $3)`,
		shardsRow, shards, allUnits, advisoryLocks, int32(p.tables))
	if err == nil && changed.RowsAffected() == 0 {
		err = &OtherShardsError{theirs, shards}
	}
	return err
}
