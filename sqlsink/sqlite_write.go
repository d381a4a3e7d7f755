package sqlsink

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/rvinformer/informer"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	ofResource = `cluster = $1 AND "group" = $2 AND resource = $3`

	// otherVersions asks for < and > because an index answers that; for <> it would look at every row.
	otherVersions = `EXISTS (SELECT 1 FROM objects WHERE ` + ofResource + ` AND version < $8) OR
	EXISTS (SELECT 1 FROM objects WHERE ` + ofResource + ` AND version > $8)`

	putStatement = `
INSERT INTO objects (cluster, "group", resource, namespace, name, version, uid, resource_version, object)
VALUES ($1, $2, $3, $5, $6, $7, $8, $9, $10)
ON CONFLICT (cluster, "group", resource, namespace, name) DO UPDATE SET
	version = excluded.version, uid = excluded.uid, resource_version = excluded.resource_version, object = excluded.object`

	removeStatement = `DELETE FROM objects WHERE ` + ofResource + ` AND namespace = $5 AND name = $6`
)

func (d *sqliteFile) Claim(ctx context.Context, of place) error {
	if _, ok := informer.EpochOf(ctx); !ok && of.unit.Shard.IsAll() {
		return nil // it waits for no other program
	}
	return d.write(ctx, of, func(*sql.Tx) error { return nil })
}

// write makes a transaction that stores the epoch of the context, if it has one. The error wraps
// shards.ErrStaleEpoch if there is a newer one.
func (d *sqliteFile) write(ctx context.Context, of place, f func(*sql.Tx) error) error {
	if !of.unit.Shard.IsAll() {
		return errors.New("a SQLite file has no shards of a resource")
	}
	return transact(ctx, d.writing, func(tx *sql.Tx) error {
		if err := d.check(ctx, tx); err != nil {
			return err
		}
		if epoch, ok := informer.EpochOf(ctx); ok {
			unit, stored := of.unit.String(), int64(0)
			if err := tx.QueryRowContext(ctx, `INSERT INTO units (unit, epoch) VALUES ($1, $2)
				ON CONFLICT (unit) DO UPDATE SET epoch = max(epoch, excluded.epoch) RETURNING epoch`, unit, epoch).Scan(&stored); err != nil {
				return err
			}
			if stored > epoch {
				return stale(ctx, unit, epoch, stored)
			}
		}
		return f(tx)
	})
}

// check compares the reign with the one that is stored. The error is ErrAnotherWriter if another writer
// has begun since, because the file of the lock was removed, or its file system has no locks.
func (d *sqliteFile) check(ctx context.Context, tx *sql.Tx) error {
	var reign int64
	err := tx.QueryRowContext(ctx, `SELECT epoch FROM units WHERE unit = $1`, allUnits).Scan(&reign)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return ErrAnotherWriter
	case err == nil && reign != d.reign:
		return ErrAnotherWriter
	}
	return err
}

// Apply writes the rows. SQLite undoes a statement that it refuses, and nothing else.
func (d *sqliteFile) Apply(ctx context.Context, of place, rows []row) (refused informer.FailedEvents, err error) {
	err = d.write(ctx, of, func(tx *sql.Tx) error {
		put, remove := tx.StmtContext(ctx, d.put), tx.StmtContext(ctx, d.remove)
		for _, r := range rows {
			arguments := append(checkpointArguments(of), r.namespace, r.name)
			statement := remove
			if !r.gone {
				statement, arguments = put, append(arguments, of.resource.Version, r.uid, r.resourceVersion, string(r.object))
			}
			_, err := statement.ExecContext(ctx, arguments...)
			if isRefusedBySQLite(err) {
				refused = append(refused, informer.FailedEvent{Index: r.event, Err: d.ofColumn(ctx, tx, of, r, err)})
				continue
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return refused, err
}

// ofColumn returns err with the name of the column before it that a row is refused for, if it is for a
// word for the time of the write. SQLite says the names of other columns itself.
func (d *sqliteFile) ofColumn(ctx context.Context, tx *sql.Tx, of place, r row, err error) error {
	if resultCode(err) != sqlite3.SQLITE_ERROR {
		return err
	}
	for _, c := range d.columns {
		var is bool
		asked := tx.QueryRowContext(ctx, `SELECT `+c.sqliteMisfit()+` FROM (SELECT $1 AS "group", $2 AS resource, $3 AS object)`,
			of.resource.Group, of.resource.Resource, string(r.object)).Scan(&is)
		if asked == nil && is {
			return fmt.Errorf("column %s: %w", c.Name, err)
		}
	}
	return err
}

// isRefusedBySQLite reports whether SQLite refuses a row. It has no code of its own for a word such as
// "now" in a column with times, whose time is not in the row.
func isRefusedBySQLite(err error) bool {
	switch resultCode(err) {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG:
		return true
	case sqlite3.SQLITE_ERROR:
		return strings.Contains(err.Error(), "non-deterministic use of")
	}
	return false
}

func (d *sqliteFile) SaveCheckpoint(ctx context.Context, of place, write func(io.Writer) error) error {
	return d.write(ctx, of, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM checkpoints WHERE `+ofResource, checkpointArguments(of)...); err != nil {
			return err
		}
		return writeParts(write, func(part int, data []byte) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO checkpoints (cluster, "group", resource, part, version, server, data)
				VALUES ($1, $2, $3, $5, $6, '', $7)`, append(checkpointArguments(of), part, of.resource.Version, data)...)
			return err
		})
	})
}
