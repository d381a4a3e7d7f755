package sqlsink

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io/fs"
	"math"

	"github.com/rvinformer/informer"
	saved "github.com/rvinformer/informer/internal/leaf/checkpoint"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// reader reads what is stored. PostgreSQL and SQLite have its statements in common: SQLite's driver
// leaves out the arguments that only conditions of PostgreSQL have.
type reader struct {
	db           *sql.DB
	ofPlace      string // the condition for rows of a place, with placeArguments
	ofCheckpoint string // the condition for parts of its checkpoint, with checkpointArguments
	others       string // whether there are rows of another version than $8
	named        string // the condition for rows of a place that have one of the names that $8 has as JSON
	object       string // the JSON of a row
}

// placeArguments are $1 to $7: the resource, and the ranges of the hashes of a shard.
func placeArguments(of place) []any {
	in := of.unit.Shard
	first, last := ordered(in.Start), ordered(in.End-1) // an end of 0 is behind the last one
	arguments := []any{of.unit.Cluster, of.resource.Group, of.resource.Resource}
	if in.Key == informer.ShardByNamespace {
		return append(arguments, first, last, int64(math.MinInt64), int64(math.MaxInt64))
	}
	return append(arguments, int64(math.MinInt64), int64(math.MaxInt64), first, last)
}

// checkpointArguments are $1 to $4: the resource and the shard, which is the place in any version.
func checkpointArguments(of place) []any {
	return []any{of.unit.Cluster, of.resource.Group, of.resource.Resource, of.unit.Shard.String()}
}

// Versions calls visit with every row of a place, in no order, without its object.
func (r *reader) Versions(ctx context.Context, of place, visit func(row) error) error {
	return r.rows(ctx, of, "''", nil, visit)
}

// Objects calls visit with the rows of a place that have one of the names, or with all if names is
// nil, in no order.
func (r *reader) Objects(ctx context.Context, of place, names []cache.ObjectName, visit func(row) error) error {
	return r.rows(ctx, of, r.object, names, visit)
}

func (r *reader) rows(ctx context.Context, of place, object string, names []cache.ObjectName, visit func(row) error) error {
	condition, arguments := r.ofPlace, placeArguments(of)
	if names != nil {
		text, err := json.Marshal(names)
		if err != nil {
			return err
		}
		condition, arguments = r.named, append(arguments, string(text))
	}
	rows, err := r.db.QueryContext(ctx, `SELECT namespace, name, uid, version, resource_version, `+object+` FROM objects WHERE `+condition, arguments...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var found row
		if err := rows.Scan(&found.namespace, &found.name, &found.uid, &found.version, &found.resourceVersion, &found.object); err != nil {
			return err
		}
		if err := visit(found); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Resources returns the resources of the cluster that have rows, each in a version that a row of it
// is in. It asks for one after the other, for there are few of them and many rows.
func (r *reader) Resources(ctx context.Context, cluster string) (resources []schema.GroupVersionResource, err error) {
	var next schema.GroupVersionResource
	for {
		err := r.db.QueryRowContext(ctx, `SELECT "group", version, resource FROM objects
			WHERE cluster = $1 AND ("group", resource) > ($2, $3) ORDER BY "group", resource LIMIT 1`,
			cluster, next.Group, next.Resource).Scan(&next.Group, &next.Version, &next.Resource)
		if errors.Is(err, sql.ErrNoRows) {
			return resources, nil
		}
		if err != nil {
			return nil, err
		}
		resources = append(resources, next)
	}
}

// Checkpoint reads a part of the checkpoint of a place, from 0. The error is fs.ErrNotExist where
// there is none, or none that goes with the rows:
//   - if there are rows of another API version, which a run that was cut off has left, the checkpoint
//     may be older than they are;
//   - if there are no rows, a user may have deleted them so that they are fetched again, and a list
//     of a set that is presumably empty costs no more than a watch.
func (r *reader) Checkpoint(ctx context.Context, of place, part int) (data []byte, err error) {
	own, others := true, false
	if part == 0 {
		err = r.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM objects WHERE `+r.ofPlace+` AND version = $8), `+r.others,
			append(placeArguments(of), of.resource.Version)...).Scan(&own, &others)
	}
	if err == nil && (others || !own) {
		return nil, fs.ErrNotExist
	}
	if err == nil {
		err = r.db.QueryRowContext(ctx, `SELECT data FROM checkpoints WHERE `+r.ofCheckpoint+` AND version = $5 AND part = $6`,
			append(checkpointArguments(of), of.resource.Version, part)...).Scan(&data)
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = fs.ErrNotExist
	}
	return data, err
}

// maxHeads is of how many checkpoints the cluster of the rows is read.
const maxHeads = 16

// Heads calls visit with the beginnings of some checkpoints of the cluster of a place: of its own resource,
// which come first, and of resources that have rows. HasRows tells which have.
func (r *reader) Heads(ctx context.Context, of place, visit func(head []byte, hasRows bool)) error {
	rows, err := r.db.QueryContext(ctx, `SELECT head, has_rows FROM (
			SELECT substr(data, 1, $4) AS head, "group" <> $2 OR resource <> $3 AS other,
				EXISTS (SELECT 1 FROM objects WHERE objects.cluster = $1
					AND objects."group" = checkpoints."group" AND objects.resource = checkpoints.resource) AS has_rows
			FROM checkpoints WHERE cluster = $1 AND part = 0) AS heads
		WHERE has_rows OR NOT other ORDER BY other LIMIT $5`,
		of.unit.Cluster, of.resource.Group, of.resource.Resource, saved.MaxHead, maxHeads)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var head []byte
		var hasRows bool
		if err := rows.Scan(&head, &hasRows); err != nil {
			return err
		}
		visit(head, hasRows)
	}
	return rows.Err()
}
