package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/rvinformer/informer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

const (
	// ofShard is about the rows of a resource that are in a shard: $1 to $3 and two ranges.
	ofShard = `objects.cluster = $1 AND objects."group" = $2 AND objects.resource = $3
		AND objects.namespace_hash BETWEEN $4 AND $5 AND objects.uid_hash BETWEEN $6 AND $7`

	// removeStaged removes the rows that are to be removed, and those of other objects that had the
	// name of one that is to be put. Only rows of the shard: the others belong to another writer.
	// OFFSET 0 has the index looked up for each staged row: a plan that reads all rows of the
	// resource instead, which looks good while there are few, is kept while they become many. The
	// rows that are found stay where they are, because the place is locked.
	removeStaged = `DELETE FROM objects WHERE ctid = ANY (ARRAY(
		SELECT old.at FROM staged_rows AS staged, LATERAL (
			SELECT objects.ctid AS at FROM objects
			WHERE ` + ofShard + ` AND objects.namespace = staged.namespace AND objects.name = staged.name
				AND (staged.object IS NULL OR objects.uid <> staged.uid)
			OFFSET 0) AS old
		WHERE staged.step = $8))`

	putStaged = `INSERT INTO objects (cluster, "group", version, resource, namespace, name, uid, resource_version, namespace_hash, uid_hash, object, exact)
		SELECT $1, $2, $3, $4, namespace, name, uid, resource_version, namespace_hash, uid_hash, object, exact
			FROM staged_rows WHERE step = $5 AND object IS NOT NULL
		ON CONFLICT (cluster, "group", resource, namespace, name, uid) DO UPDATE SET
			version = excluded.version, resource_version = excluded.resource_version, object = excluded.object, exact = excluded.exact`
)

// shardArguments are the arguments of ofShard.
func shardArguments(of place) []any {
	all := hashRange{math.MinInt64, math.MaxInt64}
	namespaces, uids := all, all
	if !of.shard.IsAll() {
		shard := hashRange{ordered(of.shard.Start), ordered(of.shard.End - 1)} // an end of 0 is behind the last one
		if of.shard.Key == informer.ShardByNamespace {
			namespaces = shard
		} else {
			uids = shard
		}
	}
	r := of.resource
	return []any{of.cluster, r.Group, r.Resource, namespaces.first, namespaces.last, uids.first, uids.last}
}

// step is a part of a batch that can be done at once: the rows of a place, of which each name has
// one, or a change of the place as a whole.
type step struct {
	of   place
	rows []change
	all  *change
}

// stepsOf divides changes, and keeps their order. The last change of a name is the one that counts:
// it replaces or removes whatever the others would have put.
func stepsOf(changes []change) (steps []step) {
	var last map[target]int // of the rows of the last step
	for _, c := range changes {
		if c.kind != putRow && c.kind != removeRow {
			steps = append(steps, step{of: c.place, all: &c})
			continue
		}
		if n := len(steps); n == 0 || steps[n-1].all != nil || steps[n-1].of != c.place {
			steps = append(steps, step{of: c.place, rows: make([]change, 0, len(changes))})
			last = make(map[target]int, len(changes))
		}
		now := &steps[len(steps)-1]
		if i, known := last[c.target()]; known {
			now.rows[i] = c
			continue
		}
		last[c.target()] = len(now.rows)
		now.rows = append(now.rows, c)
	}
	return steps
}

// Apply writes the changes.
func (p *postgres) Apply(ctx context.Context, changes []change) error {
	steps := stepsOf(changes)
	var clear string
	t := transaction{
		stage: func(ctx context.Context, conn *pgx.Conn) error {
			rows := &stagedRows{steps: steps}
			defer func() { clear = clearStaged(conn, rows.bytes) }()
			_, err := conn.CopyFrom(ctx, pgx.Identifier{"staged_rows"},
				[]string{"step", "namespace", "name", "uid", "resource_version", "namespace_hash", "uid_hash", "object", "exact"}, rows)
			return err
		},
		merge: func(batch *pgx.Batch) {
			for i, s := range steps {
				s.merge(batch, i)
			}
			batch.Queue(clear)
		},
	}
	for _, s := range steps {
		if s.all != nil && s.all.kind > dropResource {
			return fmt.Errorf("unknown kind of change %d", s.all.kind)
		}
		t.places = append(t.places, s.of)
	}
	err := p.transact(ctx, t)
	if !isRefusedData(err) {
		return err
	}
	if err := p.soften(ctx, steps); err != nil {
		return err
	}
	return p.transact(ctx, t)
}

// maxStaged is for how many bytes of objects a connection only deletes what it has staged. TRUNCATE
// gives the space back, and takes as long as to write a hundred rows.
const maxStaged = 8 << 20

// clearStaged returns the statement that empties the staged rows of a connection, after so many
// bytes more.
func clearStaged(conn *pgx.Conn, bytes int) string {
	const key = "staged bytes"
	of := conn.PgConn().CustomData()
	before, _ := of[key].(int)
	if of[key] = before + bytes; before+bytes < maxStaged {
		return `DELETE FROM staged_rows`
	}
	of[key] = 0
	return `TRUNCATE staged_rows`
}

// merge queues the statements of a step, whose number is that of its staged rows.
func (s step) merge(batch *pgx.Batch, number int) {
	r := s.of.resource
	within := shardArguments(s.of)
	if s.all == nil {
		batch.Queue(removeStaged, append(within, number)...)
		batch.Queue(putStaged, s.of.cluster, r.Group, r.Version, r.Resource, number)
		return
	}
	switch s.all.kind {
	case dropOldVersions:
		batch.Queue(`DELETE FROM objects WHERE `+ofShard+` AND version <> $8`, append(within, r.Version)...)
	case dropResource:
		batch.Queue(`DELETE FROM objects WHERE `+ofShard, within...)
		batch.Queue(`DELETE FROM checkpoints WHERE `+ofCheckpoint, checkpointArguments(s.of)...)
	}
}

// stagedRows are the rows of steps, for COPY.
type stagedRows struct {
	steps     []step
	step, row int // the next
	bytes     int // of the objects so far
	values    [9]any
}

func (s *stagedRows) Next() bool {
	for s.step < len(s.steps) && s.row == len(s.steps[s.step].rows) {
		s.step, s.row = s.step+1, 0
	}
	if s.step == len(s.steps) {
		return false
	}
	c := &s.steps[s.step].rows[s.row]
	s.row++
	s.bytes += len(c.object)
	s.values = [9]any{s.step, c.namespace, c.name, c.uid, c.resourceVersion, hashOf(c.namespace), hashOf(c.uid), nil, nil}
	if c.kind == putRow {
		s.values[7] = c.object
		if c.standIn != "" {
			s.values[7], s.values[8] = c.standIn, c.object
		} else if hasNUL(c.object) {
			s.values[7], s.values[8] = withoutNUL(c.object), c.object
		}
	}
	return true
}

func (s *stagedRows) Values() ([]any, error) { return s.values[:], nil }
func (s *stagedRows) Err() error             { return nil }

// escapedNUL is the one character of JSON that jsonb cannot have.
const escapedNUL = `\u0000`

// hasNUL reports whether a JSON text may have an escaped NUL.
func hasNUL(text string) bool { return strings.Contains(text, escapedNUL) }

// withoutNUL replaces each NUL by U+FFFD. A backslash that is itself escaped begins no escape.
func withoutNUL(text string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(text, '\\')
		if i < 0 || i+1 == len(text) {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:i])
		if strings.HasPrefix(text[i:], escapedNUL) {
			b.WriteString(`\ufffd`)
			text = text[i+len(escapedNUL):]
			continue
		}
		b.WriteString(text[i : i+2])
		text = text[i+2:]
	}
}

// isRefusedData reports whether the server refuses the data themselves: as what jsonb cannot have,
// or as beyond a limit of jsonb, such as its depth.
func isRefusedData(err error) bool {
	state := stateOf(err)
	return state != "" && (state[:2] == "22" || state[:2] == "54")
}

// soften finds the objects that jsonb refuses. It takes the objects in the form of encode, which
// has no half of a character and nothing that is not UTF-8, and gives those that jsonb refuses even
// so a stand-in: their metadata alone.
func (p *postgres) soften(ctx context.Context, steps []step) error {
	for _, s := range steps {
		for i := range s.rows {
			c := &s.rows[i]
			if c.kind != putRow {
				continue
			}
			var object unstructured.Unstructured
			err := utiljson.Unmarshal([]byte(c.object), &object.Object)
			if err == nil {
				c.object, err = encode(&object)
			}
			if err != nil { // Go does not take it either
				c.object = strings.ToValidUTF8(c.object, "\ufffd")
			}
			var null bool
			err = p.pool.QueryRow(ctx, `SELECT $1::text::jsonb IS NULL`, withoutNUL(c.object)).Scan(&null)
			if !isRefusedData(err) {
				if err != nil {
					return err
				}
				continue
			}
			text, err := json.Marshal(map[string]any{
				"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(), "metadata": map[string]string{
					"namespace": c.namespace, "name": c.name, "uid": c.uid, "resourceVersion": c.resourceVersion,
				}})
			if err != nil {
				return err
			}
			c.standIn = string(text)
		}
	}
	return nil
}

// Seed claims the unit of a place and reads what its rows say that was seen. It holds one row at a
// time.
func (p *postgres) Seed(ctx context.Context, storage *informer.ResourceVersionStorage, of place) error {
	if err := p.claim(ctx, of); err != nil {
		return p.unread("resource versions", of, err)
	}
	rows, err := p.pool.Query(ctx, `SELECT namespace, name, uid, resource_version FROM objects WHERE `+ofShard+` AND version = $8`,
		append(shardArguments(of), of.resource.Version)...)
	if err != nil {
		return p.unread("resource versions", of, err)
	}
	var known metav1.ObjectMeta
	_, err = pgx.ForEachRow(rows, []any{&known.Namespace, &known.Name, (*string)(&known.UID), &known.ResourceVersion}, func() error {
		return storage.Add(&metav1.PartialObjectMetadata{ObjectMeta: known})
	})
	return p.unread("resource versions", of, err)
}

// Objects reads the rows of a place, in the form that encode gives them.
func (p *postgres) Objects(ctx context.Context, of place, visit func(change) error) error {
	rows, err := p.pool.Query(ctx, `SELECT namespace, name, uid, resource_version, coalesce(exact, object::text) FROM objects WHERE `+ofShard, shardArguments(of)...)
	if err != nil {
		return p.unread("objects", of, err)
	}
	row := change{kind: putRow, place: of}
	var failed error
	_, err = pgx.ForEachRow(rows, []any{&row.namespace, &row.name, &row.uid, &row.resourceVersion, &row.object}, func() error {
		var object unstructured.Unstructured
		if err := utiljson.Unmarshal([]byte(row.object), &object.Object); err != nil { // with int64, as on its way in
			return err
		}
		if row.object, err = encode(&object); err != nil {
			return err
		}
		failed = visit(row)
		return failed
	})
	if failed != nil {
		return failed
	}
	return p.unread("objects", of, err)
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
		return nil, p.unread("resources", place{cluster: cluster}, err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r schema.GroupVersionResource, err error) {
		err = row.Scan(&r.Group, &r.Version, &r.Resource)
		return r, err
	})
	return slices.Clip(found), p.unread("resources", place{cluster: cluster}, err)
}

// unread is the error for what could not be read, and nil for none.
func (p *postgres) unread(what string, of place, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("database %s: reading the %s of %s: %w", p.name, what, of, p.checked(err))
}
