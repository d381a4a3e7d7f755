package sqlsink

import (
	"bytes"
	"context"
	"hash/fnv"
	"io"
	"slices"

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

// stagedColumns are those of staged_rows.
var stagedColumns = []string{"n", "namespace", "name", "uid", "resource_version", "namespace_hash", "uid_hash", "object", "exact"}

// copiedRows is from how many rows on COPY is faster than a statement for each, which shares the
// message that begins the transaction.
const copiedRows = 16

// writing is a batch of rows on its way to a place.
type writing struct {
	of     place
	rows   []row
	failed informer.FailedEvents // what the database refuses
}

// Apply writes the rows: all at once, or, if any are refused, in parts that find out which.
func (p *postgres) Apply(ctx context.Context, of place, rows []row) (refused informer.FailedEvents, err error) {
	w := &writing{of: of, rows: rows}
	err = p.transact(ctx, transaction{of: of, stage: w.stageAll, merge: w.mergeAll})
	if isRefused(err) {
		err = p.transact(ctx, transaction{of: of, stage: w.stageParts, merge: w.mergeParts})
	}
	return w.failed, err
}

// refuse notes why a row is refused, once: one that was not staged may be refused again when nothing
// is merged for it.
func (w *writing) refuse(_ context.Context, i int, err error) error {
	event := w.rows[i].event
	if !slices.ContainsFunc(w.failed, func(f informer.FailedEvent) bool { return f.Index == event }) {
		w.failed = append(w.failed, informer.FailedEvent{Index: event, Err: err})
	}
	return nil
}

func (w *writing) stageAll(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch) error {
	return w.stage(ctx, conn, batch, 0, len(w.rows))
}

func (w *writing) mergeAll(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch) error {
	err := w.merge(ctx, conn, batch, 0, len(w.rows))
	batch.Queue(clearStaged(conn, w.rows))
	return err
}

// stage brings rows to the temporary table.
func (w *writing) stage(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch, first, end int) error {
	if end-first < copiedRows {
		for i := first; i < end; i++ {
			batch.Queue(stageRow, w.rows[i].staged(i)...)
		}
		return nil
	}
	if err := send(ctx, conn, batch); err != nil {
		return err
	}
	_, err := conn.CopyFrom(ctx, pgx.Identifier{"staged_rows"}, stagedColumns,
		pgx.CopyFromSlice(end-first, func(i int) ([]any, error) { return w.rows[first+i].staged(first + i), nil }))
	return err
}

// merge queues the statements that bring staged rows to the table.
func (w *writing) merge(_ context.Context, _ *pgx.Conn, batch *pgx.Batch, first, end int) error {
	r := w.of.resource
	batch.Queue(lockReplaced, append(placeArguments(w.of), first, end)...)
	batch.Queue(removeReplaced, append(placeArguments(w.of), first, end)...)
	batch.Queue(putStaged, w.of.unit.Cluster, r.Group, r.Version, r.Resource, first, end)
	return nil
}

// staged is a row as staged_rows has it.
func (r *row) staged(n int) []any {
	values := []any{n, r.namespace, r.name, r.uid, r.resourceVersion, hashOf(r.namespace), hashOf(r.uid), nil, nil}
	if !r.gone {
		values[7] = r.object
		if r.standIn != nil {
			values[7], values[8] = r.standIn, string(r.object)
		} else if bytes.Contains(r.object, []byte(`\u0000`)) {
			text := string(r.object)
			values[7], values[8] = withoutNUL.Replace(text), text
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
