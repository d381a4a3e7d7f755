package sqlsink

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/rvinformer/informer"
)

// ofShard is about the rows of a resource that are in a shard. See placeArguments.
const ofShard = `objects.cluster = $1 AND objects."group" = $2 AND objects.resource = $3
	AND objects.namespace_hash BETWEEN $4 AND $5 AND objects.uid_hash BETWEEN $6 AND $7`

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
		WHERE staged.n >= $8 AND staged.n < $9`

	// lockReplaced waits for users who update such rows: each update moves a row to another ctid,
	// and a removal that has looked up the former one would miss it. The rows stay where they are
	// then, and removeReplaced, a statement of its own, sees where that is.
	lockReplaced   = replaced + ` FOR UPDATE OF old`
	removeReplaced = `DELETE FROM objects WHERE ctid = ANY (ARRAY(` + replaced + `))`

	putStaged = `INSERT INTO objects (cluster, "group", version, resource, namespace, name, uid, resource_version, namespace_hash, uid_hash, object, exact)
		SELECT $1, $2, $3, $4, namespace, name, uid, resource_version, namespace_hash, uid_hash, object, exact
			FROM staged_rows WHERE n >= $5 AND n < $6 AND object IS NOT NULL
		ON CONFLICT (cluster, "group", resource, namespace, name, uid) DO UPDATE SET
			version = excluded.version, resource_version = excluded.resource_version, object = excluded.object, exact = excluded.exact`

	stageRow = `INSERT INTO staged_rows (n, namespace, name, uid, resource_version, namespace_hash, uid_hash, object, exact)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
)

// mergeStaged queues the statements that bring staged rows to the table.
func mergeStaged(batch *pgx.Batch, of place, first, end int) {
	r := of.resource
	batch.Queue(lockReplaced, append(placeArguments(of), first, end)...)
	batch.Queue(removeReplaced, append(placeArguments(of), first, end)...)
	batch.Queue(putStaged, of.unit.Cluster, r.Group, r.Version, r.Resource, first, end)
}

// copiedRows is from how many rows on COPY is faster than a statement for each, which shares the
// message that begins the transaction.
const copiedRows = 16

// Apply writes the rows. Those that jsonb cannot have are softened; the database refuses some for
// other reasons, and the rest of the batch is merged without them.
func (p *postgres) Apply(ctx context.Context, of place, rows []row) (refused informer.FailedEvents, err error) {
	if err := p.claimOnce(ctx, of); err != nil {
		return nil, err
	}
	for softened := false; ; softened = true {
		err = p.transact(ctx, p.merging(of, rows, nil))
		failed := (*refusedError)(nil)
		switch {
		case !errors.As(err, &failed):
			return refused, err
		case failed.staging && !softened:
			if rows, refused, err = p.soften(ctx, rows); err != nil || len(rows) == 0 {
				return refused, err
			}
		case failed.staging:
			return nil, fmt.Errorf("rows that it takes one by one: %w", failed.err)
		case len(rows) == 1:
			return append(refused, failedEvent(rows[0], failed.err)), nil
		default:
			b := bisection{of: of, rows: rows}
			err = p.transact(ctx, p.merging(of, rows, &b))
			return append(refused, b.failed...), err
		}
	}
}

func failedEvent(r row, err error) informer.FailedEvent {
	return informer.FailedEvent{Index: r.event, Err: err}
}

// merging is the transaction of rows: at once, or in parts that find those that are refused.
func (p *postgres) merging(of place, rows []row, parts *bisection) transaction {
	t := transaction{of: of, merge: func(conn *pgx.Conn, batch *pgx.Batch) {
		if parts == nil {
			mergeStaged(batch, of, 0, len(rows))
		}
		batch.Queue(clearStaged(conn, rows))
	}}
	if parts != nil {
		t.part = parts.Merge
	}
	if len(rows) < copiedRows {
		t.stage = func(batch *pgx.Batch) {
			for i := range rows {
				values := rows[i].staged(i)
				batch.Queue(stageRow, values[:]...)
			}
		}
		return t
	}
	t.copy = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.CopyFrom(ctx, pgx.Identifier{"staged_rows"},
			[]string{"n", "namespace", "name", "uid", "resource_version", "namespace_hash", "uid_hash", "object", "exact"}, &stagedRows{rows: rows})
		return err
	}
	return t
}

// stagedRows are rows for COPY.
type stagedRows struct {
	rows   []row
	next   int
	values [9]any
}

func (s *stagedRows) Next() bool {
	if s.next == len(s.rows) {
		return false
	}
	s.values = s.rows[s.next].staged(s.next)
	s.next++
	return true
}

func (s *stagedRows) Values() ([]any, error) { return s.values[:], nil }
func (s *stagedRows) Err() error             { return nil }

// staged is a row as staged_rows has it.
func (r *row) staged(n int) [9]any {
	values := [9]any{n, r.namespace, r.name, r.uid, r.resourceVersion, hashOf(r.namespace), hashOf(r.uid), nil, nil}
	if !r.gone {
		values[7] = r.object
		if r.standIn != nil {
			values[7], values[8] = r.standIn, string(r.object)
		} else if hasNUL(r.object) {
			values[7], values[8] = withoutNUL(r.object), string(r.object)
		}
	}
	return values
}

const (
	// maxStaged is for how many bytes of rows a connection only deletes what it has staged.
	// TRUNCATE gives the space back, and takes as long as to write a hundred rows.
	maxStaged = 8 << 20
	// stagedOverhead is about what a staged row takes beside its object, in bytes. It is all that a
	// removal takes.
	stagedOverhead = 128
)

// clearStaged returns the statement that empties the staged rows of a connection.
func clearStaged(conn *pgx.Conn, rows []row) string {
	const key = "staged bytes"
	of := conn.PgConn().CustomData()
	staged, _ := of[key].(int)
	for _, r := range rows {
		staged += len(r.object) + stagedOverhead
	}
	if of[key] = staged; staged < maxStaged {
		return `DELETE FROM staged_rows`
	}
	of[key] = 0
	return `TRUNCATE staged_rows`
}
