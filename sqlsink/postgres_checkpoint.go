package sqlsink

import (
	"context"
	"io"

	"github.com/jackc/pgx/v5"
)

// ofCheckpoint is about the parts of the checkpoint of a place.
const ofCheckpoint = `cluster = $1 AND "group" = $2 AND resource = $3 AND shard = $4`

func (p *postgres) SaveCheckpoint(ctx context.Context, of place, write func(io.Writer) error) error {
	return p.transact(ctx, transaction{
		of:   of,
		once: true,
		stage: func(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch) error {
			if err := send(ctx, conn, batch); err != nil {
				return err
			}
			return writeParts(write, func(part int, data []byte) error {
				_, err := conn.Exec(ctx, `INSERT INTO staged_parts (part, data) VALUES ($1, $2)`, part, data)
				return err
			})
		},
		merge: func(_ context.Context, _ *pgx.Conn, batch *pgx.Batch) error {
			batch.Queue(`DELETE FROM checkpoints WHERE `+ofCheckpoint, checkpointArguments(of)...)
			batch.Queue(`INSERT INTO checkpoints (cluster, "group", resource, shard, version, server, part, data)
				SELECT $1, $2, $3, $4, $5, '', part, data FROM staged_parts`,
				append(checkpointArguments(of), of.resource.Version)...)
			batch.Queue(`TRUNCATE staged_parts`)
			return nil
		},
	})
}
