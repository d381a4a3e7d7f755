package sqlsink

import (
	"context"
	"database/sql"
	"errors"
	"io"

	"github.com/rvinformer/informer"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	ofResource = `cluster = $1 AND "group" = $2 AND resource = $3`

	// otherVersions asks for < and > because an index answers that; for <> it would look at every row.
	otherVersions = `EXISTS (SELECT 1 FROM objects WHERE ` + ofResource + ` AND version < $8) OR
	EXISTS (SELECT 1 FROM objects WHERE ` + ofResource + ` AND version > $8)`

	putStatement = `
INSERT INTO objects (cluster, "group", version, resource, namespace, name, uid, resource_version, object)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (cluster, "group", resource, namespace, name) DO UPDATE SET
	version = excluded.version, uid = excluded.uid, resource_version = excluded.resource_version, object = excluded.object`

	removeStatement = `DELETE FROM objects WHERE ` + ofResource + ` AND namespace = $4 AND name = $5`

	insertPart = `INSERT INTO checkpoints (cluster, "group", resource, part, version, server, data) VALUES (?, ?, ?, ?, ?, '', ?)`
)

// resourceArguments are the arguments of ofResource.
func resourceArguments(of place) []any {
	return []any{of.unit.Cluster, of.resource.Group, of.resource.Resource}
}

// errSharded says that a SQLite file does not have the parts of a resource apart.
var errSharded = errors.New("a SQLite file has no shards of a resource")

// Claim stores the epoch of the context for the unit of a place, if it has one.
func (d *sqliteFile) Claim(ctx context.Context, of place) error {
	if !of.unit.Shard.IsAll() {
		return errSharded
	}
	epoch, ok := informer.EpochOf(ctx)
	if !ok {
		return nil
	}
	return d.transact(ctx, func(tx *sql.Tx) error { return fenceSQLite(ctx, tx, of, epoch) })
}

// fenceSQLite stores an epoch for the unit of a place. The error is a *staleError if there is a newer
// one.
func fenceSQLite(ctx context.Context, tx *sql.Tx, of place, epoch int64) error {
	unit := of.unit.String()
	var stored int64
	err := tx.QueryRowContext(ctx, `INSERT INTO units (unit, epoch) VALUES (?, ?)
		ON CONFLICT (unit) DO UPDATE SET epoch = max(epoch, excluded.epoch) RETURNING epoch`, unit, epoch).Scan(&stored)
	if err == nil && stored > epoch {
		err = stale(ctx, unit, epoch, stored)
	}
	return err
}

// write makes a transaction, if no newer epoch than that of the context is known.
func (d *sqliteFile) write(ctx context.Context, of place, f func(*sql.Tx) error) error {
	if !of.unit.Shard.IsAll() {
		return errSharded
	}
	return d.transact(ctx, func(tx *sql.Tx) error {
		if epoch, ok := informer.EpochOf(ctx); ok {
			if err := fenceSQLite(ctx, tx, of, epoch); err != nil {
				return err
			}
		}
		return f(tx)
	})
}

// Apply writes the rows. SQLite undoes a statement that it refuses, and nothing else.
func (d *sqliteFile) Apply(ctx context.Context, of place, rows []row) (refused informer.FailedEvents, err error) {
	err = d.write(ctx, of, func(tx *sql.Tx) error {
		put, remove := tx.StmtContext(ctx, d.put), tx.StmtContext(ctx, d.remove)
		for _, r := range rows {
			err := applyRow(ctx, put, remove, of, r)
			switch resultCode(err) {
			case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG:
				refused = append(refused, informer.FailedEvent{Index: r.event, Err: err})
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

func applyRow(ctx context.Context, put, remove *sql.Stmt, of place, r row) (err error) {
	key := append(resourceArguments(of), r.namespace, r.name)
	if r.gone {
		_, err = remove.ExecContext(ctx, key...)
		return err
	}
	_, err = put.ExecContext(ctx, of.unit.Cluster, of.resource.Group, of.resource.Version, of.resource.Resource,
		r.namespace, r.name, r.uid, r.resourceVersion, string(r.object))
	return err
}

// SaveCheckpoint keeps what write writes as the checkpoint of a place.
func (d *sqliteFile) SaveCheckpoint(ctx context.Context, of place, write func(io.Writer) error) error {
	return d.write(ctx, of, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM checkpoints WHERE `+ofResource, resourceArguments(of)...); err != nil {
			return err
		}
		return writeParts(write, func(part int, data []byte) error {
			_, err := tx.ExecContext(ctx, insertPart, append(resourceArguments(of), part, of.resource.Version, data)...)
			return err
		})
	})
}
