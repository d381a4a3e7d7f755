package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet/shards"
)

// staleEpochError says that a unit has another owner, and so that nothing was written. It wraps shards.ErrStaleEpoch.
type staleEpochError struct {
	unit   string
	epoch  int64 // of who wanted to write
	stored int64 // a higher one
	err    error // as the replica knows it
}

// stale tells the replica that it is not the owner of a unit any more.
func stale(ctx context.Context, unit string, epoch, stored int64) error {
	return &staleEpochError{unit, epoch, stored, shards.StaleEpoch(ctx, stored)}
}

func (e *staleEpochError) Unwrap() error { return e.err }

func (e *staleEpochError) Error() string {
	return fmt.Sprintf("%s has another owner: the database has its epoch %d, this one is %d", e.unit, e.stored, e.epoch)
}

// allUnits is the unit of the database as a whole. Its epoch is the reign.
const allUnits = ""

// reignOf begins a reign, or takes part in it. A mirror that is alone begins one, with an odd number, and mirrors that share the work
// are all of one that is even. So a mirror whose presence has been lost, unnoticed, cannot write beside one that it does not
// go with.
func (p *postgres) reignOf(ctx context.Context, alone bool) (reign int64, err error) {
	first, next := 0, `units.epoch + units.epoch % 2`
	if alone {
		first, next = 1, `units.epoch + 1 + units.epoch % 2`
	}
	err = p.pool.QueryRow(ctx, `INSERT INTO units (unit, epoch) VALUES ($1, $2)
		ON CONFLICT (unit) DO UPDATE SET epoch = `+next+` RETURNING epoch`, allUnits, first).Scan(&reign)
	return reign, err
}

// claim stores the epoch of the context for the unit of a place, if it has one. All transactions of older epochs have ended
// then: what is read afterwards, no other owner changes any more.
func (p *postgres) claim(ctx context.Context, of place) error {
	epoch, ok := informer.EpochOf(ctx)
	if !ok {
		return nil
	}
	return p.claimUnit(ctx, of.unit(), epoch)
}

func (p *postgres) claimUnit(ctx context.Context, unit string, epoch int64) error {
	var stored int64
	err := p.pool.QueryRow(ctx, `SELECT coalesce(max(epoch), -1) FROM units WHERE unit = $1`, unit).Scan(&stored)
	if err == nil && stored < epoch {
		err = p.pool.QueryRow(ctx, `INSERT INTO units (unit, epoch) VALUES ($1, $2)
			ON CONFLICT (unit) DO UPDATE SET epoch = greatest(units.epoch, excluded.epoch) RETURNING epoch`, unit, epoch).Scan(&stored)
	}
	if err == nil && stored > epoch {
		err = stale(ctx, unit, epoch, stored)
	}
	return err
}

// unclaimedError says that a unit's epoch is to be stored first.
type unclaimedError struct {
	unit  string
	epoch int64
}

func (e *unclaimedError) Error() string {
	return fmt.Sprintf("%s: epoch %d is not stored", e.unit, e.epoch)
}

// fence locks the epochs of the units until the transaction ends, against a claim only, and compares them. The error is a
// *staleEpochError, an *unclaimedError or errAnotherMirror.
func (p *postgres) fence(ctx context.Context, conn *pgx.Conn, units []string) error {
	epoch, ok := informer.EpochOf(ctx)
	if !ok {
		units = nil
	}
	rows, err := conn.Query(ctx, `SELECT unit, epoch FROM units WHERE unit = ANY ($1) ORDER BY unit FOR SHARE`, append([]string{allUnits}, units...))
	if err != nil {
		return err
	}
	stored := make(map[string]int64)
	var unit string
	var of int64
	if _, err := pgx.ForEachRow(rows, []any{&unit, &of}, func() error {
		stored[unit] = of
		return nil
	}); err != nil {
		return err
	}
	if stored[allUnits] != p.reign {
		return errAnotherMirror
	}
	for _, unit := range units {
		of, known := stored[unit]
		switch {
		case !known || of < epoch:
			return &unclaimedError{unit, epoch}
		case of > epoch:
			return stale(ctx, unit, epoch, of)
		}
	}
	return nil
}
