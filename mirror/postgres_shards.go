package main

import (
	"context"
	"fmt"
)

// shardsRow is the row of units that says into how many parts the mirrors divide each cluster. It
// is the name of no unit: those have a slash.
const shardsRow = "shards"

// otherShardsError says that there are mirrors that divide the clusters in another way. Their units
// overlap with those of this one, and no epoch fences the owners of two units from each other.
type otherShardsError struct{ theirs, own int }

func (e *otherShardsError) Error() string {
	return fmt.Sprintf("mirrors with --shards %d write to it, and this one has --shards %d: it goes on when they have ended", e.theirs, e.own)
}

// claimShards makes sure that all mirrors that are present divide the clusters in the same way. The
// number is changed only while no other mirror is present. A new reign begins with it, so that one
// whose presence was lost unnoticed cannot write any more.
func (p *postgres) claimShards(ctx context.Context, shards int) error {
	var theirs int
	err := p.pool.QueryRow(ctx, `INSERT INTO units (unit, epoch) VALUES ($1, $2)
		ON CONFLICT (unit) DO UPDATE SET epoch = units.epoch RETURNING epoch`, shardsRow, shards).Scan(&theirs)
	if err != nil || theirs == shards {
		return err
	}
	alone, err := p.presence.Alone(ctx, func() error {
		_, err := p.pool.Exec(ctx, `UPDATE units SET epoch = CASE unit WHEN $1 THEN $2 ELSE epoch + 2 END WHERE unit IN ($1, $3)`,
			shardsRow, shards, allUnits)
		return err
	})
	if err == nil && !alone {
		err = &otherShardsError{theirs, shards}
	}
	return err
}
