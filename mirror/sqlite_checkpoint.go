package main

import (
	"bufio"
	"context"
	"database/sql"
	"io"
	"io/fs"
)

// createCheckpoints makes the table of checkpoints: one of each resource, in parts.
const createCheckpoints = `
CREATE TABLE IF NOT EXISTS checkpoints (
	cluster    TEXT NOT NULL,
	"group"    TEXT NOT NULL,
	resource   TEXT NOT NULL,
	part       INTEGER NOT NULL,
	version    TEXT NOT NULL,
	server     TEXT NOT NULL,
	data       BLOB NOT NULL,
	PRIMARY KEY (cluster, "group", resource, part)
) STRICT;`

const insertPart = `INSERT INTO checkpoints (cluster, "group", resource, part, version, server, data) VALUES (?, ?, ?, ?, ?, ?, ?)`

const loadParts = `SELECT data FROM checkpoints ` + ofResource + ` AND version = ? ORDER BY part`

// ofVersions tells whether there are rows of a version, and of others. It asks for < and > because
// an index answers that; for <> it would look at every row.
const ofVersions = `SELECT EXISTS (SELECT 1 FROM objects WHERE cluster = ?1 AND "group" = ?2 AND resource = ?3 AND version = ?4),
	EXISTS (SELECT 1 FROM objects WHERE cluster = ?1 AND "group" = ?2 AND resource = ?3 AND version < ?4) OR
	EXISTS (SELECT 1 FROM objects WHERE cluster = ?1 AND "group" = ?2 AND resource = ?3 AND version > ?4)`

// SaveCheckpoint keeps what write writes as the checkpoint of a place, instead of the one before,
// all or nothing.
func (d *sqliteFile) SaveCheckpoint(ctx context.Context, of place, server string, write func(io.Writer) error) error {
	return d.transact(ctx, func(tx *sql.Tx) error {
		r := of.resource
		if _, err := tx.ExecContext(ctx, `DELETE FROM checkpoints `+ofResource, of.cluster, r.Group, r.Resource); err != nil {
			return err
		}
		part := 0
		parts := bufio.NewWriterSize(writerFunc(func(data []byte) error {
			_, err := tx.ExecContext(ctx, insertPart, of.cluster, r.Group, r.Resource, part, r.Version, server, data)
			part++
			return err
		}), checkpointPart)
		if err := write(parts); err != nil {
			return err
		}
		return parts.Flush()
	})
}

// LoadCheckpoint reads the checkpoint of a place. It is fs.ErrNotExist where there is none, or none
// that goes with the rows:
//   - if there are rows of another API version, which a run that was cut off has left, the
//     checkpoint may be older than they are;
//   - if there are no rows, a user may have deleted them so that they are fetched again, and a list
//     of a set that is presumably empty costs no more than a watch.
func (d *sqliteFile) LoadCheckpoint(ctx context.Context, of place) (io.ReadCloser, error) {
	r := of.resource
	var own, others bool
	err := d.reading.QueryRowContext(ctx, ofVersions, of.cluster, r.Group, r.Resource, r.Version).Scan(&own, &others)
	if err == nil && (others || !own) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, d.unread("checkpoint", of, err)
	}
	rows, err := d.reading.QueryContext(ctx, loadParts, of.cluster, r.Group, r.Resource, r.Version)
	if err != nil {
		return nil, d.unread("checkpoint", of, err)
	}
	parts, err := newParts(rows, rows.Close)
	if err != nil {
		return nil, d.unread("checkpoint", of, err)
	}
	return parts, nil
}
