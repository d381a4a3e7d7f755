package main

import (
	"bufio"
	"context"
	"io"
	"io/fs"

	"github.com/jackc/pgx/v5"
)

// ofCheckpoint is about the parts of the checkpoint of a place.
const ofCheckpoint = `cluster = $1 AND "group" = $2 AND resource = $3 AND shard = $4`

func checkpointArguments(of place) []any {
	return []any{of.cluster, of.resource.Group, of.resource.Resource, of.shard.String()}
}

// SaveCheckpoint replaces the checkpoint of a place.
func (p *postgres) SaveCheckpoint(ctx context.Context, of place, server string, write func(io.Writer) error) error {
	return p.transact(ctx, transaction{
		places: []place{of},
		stage: func(ctx context.Context, conn *pgx.Conn) error {
			part := 0
			parts := bufio.NewWriterSize(writerFunc(func(data []byte) error {
				_, err := conn.Exec(ctx, `INSERT INTO staged_parts (part, data) VALUES ($1, $2)`, part, data)
				part++
				return err
			}), checkpointPart)
			if err := write(parts); err != nil {
				return err
			}
			return parts.Flush()
		},
		merge: func(batch *pgx.Batch) {
			batch.Queue(`DELETE FROM checkpoints WHERE `+ofCheckpoint, checkpointArguments(of)...)
			batch.Queue(`INSERT INTO checkpoints (cluster, "group", resource, shard, version, server, part, data)
				SELECT $1, $2, $3, $4, $5, $6, part, data FROM staged_parts`,
				append(checkpointArguments(of), of.resource.Version, server)...)
			batch.Queue(`TRUNCATE staged_parts`)
		},
	})
}

// LoadCheckpoint claims the unit of a place and reads its checkpoint, if that goes with the rows.
func (p *postgres) LoadCheckpoint(ctx context.Context, of place) (io.ReadCloser, error) {
	if err := p.claim(ctx, of); err != nil {
		return nil, p.unread("checkpoint", of, err)
	}
	var own, others bool
	err := p.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM objects WHERE `+ofShard+` AND version = $8),
		EXISTS (SELECT FROM objects WHERE `+ofShard+` AND version <> $8)`, append(shardArguments(of), of.resource.Version)...).Scan(&own, &others)
	if err == nil && (others || !own) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, p.unread("checkpoint", of, err)
	}
	rows, err := p.pool.Query(ctx, `SELECT data FROM checkpoints WHERE `+ofCheckpoint+` AND version = $5 ORDER BY part`,
		append(checkpointArguments(of), of.resource.Version)...)
	if err != nil {
		return nil, p.unread("checkpoint", of, err)
	}
	parts, err := newParts(rows, func() error {
		rows.Close()
		return nil
	})
	if err != nil {
		return nil, p.unread("checkpoint", of, err)
	}
	return parts, nil
}
