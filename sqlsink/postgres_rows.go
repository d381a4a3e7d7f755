package sqlsink

import (
	"bytes"
	"context"
	"encoding/json"
	"hash/fnv"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/rvinformer/informer"
)

// ofShard is about the rows of a resource that are in a shard. See placeArguments.
const ofShard = `objects.cluster = $1 AND objects."group" = $2 AND objects.resource = $3
	AND objects.namespace_hash BETWEEN $4 AND $5 AND objects.uid_hash BETWEEN $6 AND $7`

// namedRows looks the index up for each name, as replaced does. A plan that joins the names with all
// rows of the resource, as is made before the table is analyzed, takes as long as the square of them.
const namedRows = `ctid = ANY (ARRAY(SELECT found.at
	FROM json_to_recordset($8) AS wanted ("Namespace" text, "Name" text), LATERAL (
		SELECT objects.ctid AS at FROM objects
		WHERE ` + ofShard + ` AND objects.namespace = wanted."Namespace" AND objects.name = wanted."Name"
		OFFSET 0) AS found))`

const (
	// replaced finds the rows that are to be removed, and those of other objects that had the name
	// of one that is to be put. Only rows of the shard: the others belong to another writer. OFFSET
	// 0 has the index looked up for each staged row: a plan that reads all rows of the resource
	// instead, which looks good while there are few, is kept while they become many.
	replaced = `SELECT old.at FROM staged_rows AS staged, LATERAL (
			SELECT objects.ctid AS at FROM objects
			WHERE ` + ofShard + ` AND objects.namespace = staged.namespace AND objects.name = staged.name
				AND (staged.object IS NULL OR objects.uid <> staged.uid)
			OFFSET 0) AS old
		WHERE staged.n BETWEEN $8 AND $9`

	// lockReplaced waits for users who update such rows: each update moves a row to another ctid,
	// and a removal that has looked up the former one would miss it. The rows stay where they are
	// then, and removeReplaced, a statement of its own, sees where that is.
	lockReplaced   = replaced + ` FOR UPDATE OF old`
	removeReplaced = `DELETE FROM objects WHERE ctid = ANY (ARRAY(` + replaced + `))`

	putStaged = `INSERT INTO objects (cluster, "group", version, resource, namespace, name, uid, resource_version, namespace_hash, uid_hash, object, exact)
		SELECT $1, $2, $3, $4, namespace, name, uid, resource_version, namespace_hash, uid_hash, object, exact
			FROM staged_rows WHERE n BETWEEN $5 AND $6 AND object IS NOT NULL
		ON CONFLICT (cluster, "group", resource, namespace, name, uid) DO UPDATE SET
			version = excluded.version, resource_version = excluded.resource_version, object = excluded.object, exact = excluded.exact`

	stageRow = `INSERT INTO staged_rows VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
)

// stagedColumns are those of staged_rows.
var stagedColumns = []string{"n", "namespace", "name", "uid", "resource_version", "namespace_hash", "uid_hash", "object", "exact"}

// copiedRows is from how many rows on COPY is faster than a statement for each, which shares the
// message that begins the transaction.
const copiedRows = 16

// Apply writes the rows: all at once, or, if any are refused or the server is in trouble, in parts
// that find out which rows that is about.
func (p *postgres) Apply(ctx context.Context, of place, rows []row) (refused informer.FailedEvents, err error) {
	err = p.transact(ctx, transaction{
		of: of,
		stage: func(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch) error {
			return stage(ctx, conn, batch, rows)
		},
		merge: func(_ context.Context, _ *pgx.Conn, batch *pgx.Batch) error {
			batch.Queue(`SET LOCAL lock_timeout = '1s'`) // all rows wait for the one that is locked
			merge(batch, of, rows)
			return nil
		},
	})
	if !isRefused(err) && (!isTrouble(err) || len(rows) == 1) {
		return nil, err
	}
	err = p.transact(ctx, transaction{
		of: of,
		stage: func(_ context.Context, _ *pgx.Conn, batch *pgx.Batch) error {
			// Constraints that wait for the commit are checked at once, or it would fail for one row.
			batch.Queue(`SET CONSTRAINTS ALL IMMEDIATE`)
			return nil
		},
		merge: func(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch) error {
			batch.Queue(`SET LOCAL lock_timeout = '100ms'`)
			if err := send(ctx, conn, batch); err != nil {
				return err
			}
			b := bisection{of: of, conn: conn, columns: p.columns}
			err := b.Part(ctx, rows, false)
			refused = b.refused
			if err == nil && len(rows) > 1 && b.delayed == len(rows) {
				return b.trouble.last // it is the server's, and no row's
			}
			return err
		},
	})
	return refused, err
}

// stage brings rows to the temporary table.
func stage(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch, rows []row) error {
	if len(rows) < copiedRows {
		for _, r := range rows {
			batch.Queue(stageRow, r.staged()...)
		}
		return nil
	}
	if err := send(ctx, conn, batch); err != nil {
		return err
	}
	_, err := conn.CopyFrom(ctx, pgx.Identifier{"staged_rows"}, stagedColumns,
		pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) { return rows[i].staged(), nil }))
	return err
}

// merge queues the statements that bring staged rows to the table.
func merge(batch *pgx.Batch, of place, rows []row) {
	r, first, last := of.resource, rows[0].event, rows[len(rows)-1].event
	batch.Queue(lockReplaced, append(placeArguments(of), first, last)...)
	batch.Queue(removeReplaced, append(placeArguments(of), first, last)...)
	batch.Queue(putStaged, of.unit.Cluster, r.Group, r.Version, r.Resource, first, last)
}

// staged is a row as staged_rows has it.
func (r *row) staged() []any {
	values := []any{r.event, r.namespace, r.name, r.uid, r.resourceVersion, hashOf(r.namespace), hashOf(r.uid), nil, nil}
	if !r.gone {
		values[7] = json.RawMessage(r.object)
		if r.standIn != nil {
			values[7], values[8] = json.RawMessage(r.standIn), string(r.object)
		} else if bytes.Contains(r.object, []byte(`\u0000`)) {
			values[7], values[8] = withoutNUL.Replace(string(r.object)), string(r.object)
		}
	}
	return values
}

// ordered is a hash in the order of bigint.
func ordered(hash uint64) int64 { return int64(hash ^ 1<<63) }

// hashOf is the hash that shards are ranges of.
func hashOf(text string) int64 {
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, text) // it cannot fail
	return ordered(hash.Sum64())
}
