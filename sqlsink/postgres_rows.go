package sqlsink

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"
	"github.com/rvinformer/informer"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// ofShard is about the rows of a resource that are in a shard: $1 to $3 and two ranges.
const ofShard = `objects.cluster = $1 AND objects."group" = $2 AND objects.resource = $3
	AND objects.namespace_hash BETWEEN $4 AND $5 AND objects.uid_hash BETWEEN $6 AND $7`

// shardArguments are the arguments of ofShard.
func shardArguments(of place) []any {
	all := hashRange{math.MinInt64, math.MaxInt64}
	namespaces, uids := all, all
	if in := of.unit.Shard; !in.IsAll() {
		shard := hashRange{ordered(in.Start), ordered(in.End - 1)} // an end of 0 is behind the last one
		if in.Key == informer.ShardByNamespace {
			namespaces = shard
		} else {
			uids = shard
		}
	}
	r := of.resource
	return []any{of.unit.Cluster, r.Group, r.Resource, namespaces.first, namespaces.last, uids.first, uids.last}
}

// Versions reads what the rows of a place say that was seen.
func (p *postgres) Versions(ctx context.Context, of place, visit func(row) error) error {
	rows, err := p.pool.Query(ctx, `SELECT namespace, name, uid, version, resource_version FROM objects WHERE `+ofShard, shardArguments(of)...)
	if err != nil {
		return err
	}
	var r row
	_, err = pgx.ForEachRow(rows, []any{&r.namespace, &r.name, &r.uid, &r.version, &r.resourceVersion}, func() error { return visit(r) })
	return err
}

// Objects reads the rows of a place, in the form that encode gives them.
func (p *postgres) Objects(ctx context.Context, of place, names []cache.ObjectName, visit func(row) error) error {
	query, arguments := `SELECT namespace, name, uid, version, resource_version, coalesce(exact, object::text) FROM objects WHERE `+ofShard, shardArguments(of)
	if names != nil {
		namespaces, ofObjects := make([]string, len(names)), make([]string, len(names))
		for i, n := range names {
			namespaces[i], ofObjects[i] = n.Namespace, n.Name
		}
		query += ` AND (namespace, name) IN (SELECT * FROM unnest($8::text[], $9::text[]))`
		arguments = append(arguments, namespaces, ofObjects)
	}
	rows, err := p.pool.Query(ctx, query, arguments...)
	if err != nil {
		return err
	}
	var r row
	_, err = pgx.ForEachRow(rows, []any{&r.namespace, &r.name, &r.uid, &r.version, &r.resourceVersion, &r.object}, func() error {
		object, err := r.decode()
		if err != nil {
			return err
		}
		if r.object, err = encode(object); err != nil {
			return err
		}
		return visit(r)
	})
	return err
}

// Resources finds the resources that have rows, each in the version of its first row: one after the
// other, for there are few of them and many rows.
func (p *postgres) Resources(ctx context.Context, cluster string) ([]schema.GroupVersionResource, error) {
	rows, err := p.pool.Query(ctx, `
WITH RECURSIVE found AS (
	(SELECT "group", version, resource FROM objects WHERE cluster = $1 ORDER BY "group", resource LIMIT 1)
	UNION ALL
	SELECT next.* FROM found, LATERAL (SELECT objects."group", objects.version, objects.resource FROM objects
		WHERE cluster = $1 AND (objects."group", objects.resource) > (found."group", found.resource)
		ORDER BY objects."group", objects.resource LIMIT 1) AS next
)
SELECT * FROM found`, cluster)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r schema.GroupVersionResource, err error) {
		err = row.Scan(&r.Group, &r.Version, &r.Resource)
		return r, err
	})
}

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
	batch.Queue(lockReplaced, append(shardArguments(of), first, end)...)
	batch.Queue(removeReplaced, append(shardArguments(of), first, end)...)
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
