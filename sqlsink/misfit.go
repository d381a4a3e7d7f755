package sqlsink

import (
	"bytes"
	"context"
	"database/sql"

	saved "github.com/rvinformer/informer/internal/leaf/checkpoint"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// misfit is a row that was there before a column that it does not fit.
type misfit struct {
	cluster  string
	resource schema.GroupResource
	name     cache.ObjectName
	problem  string // with the name of the column
}

// maxLogged is how many misfits are logged one by one.
const maxLogged = 10

func logMisfits(ctx context.Context, removed []misfit) {
	logger := klog.FromContext(ctx)
	for _, m := range removed[:min(len(removed), maxLogged)] {
		logger.Info("Removed a row that does not fit a new column", "cluster", m.cluster, "resource", m.resource.String(), "object", m.name.String(), "problem", m.problem)
	}
	if len(removed) > maxLogged {
		logger.Info("Removed rows that do not fit new columns", "rows", len(removed))
	}
}

// listAnew leaves of the checkpoints of these rows' resources only which cluster they are of, so that a
// list offers the objects again.
func listAnew(ctx context.Context, tx *sql.Tx, removed []misfit) error {
	type place struct {
		cluster  string
		resource schema.GroupResource
	}
	done := map[place]bool{}
	for _, m := range removed {
		at := place{m.cluster, m.resource}
		if done[at] {
			continue
		}
		done[at] = true
		if err := shorten(ctx, tx, at.cluster, at.resource); err != nil {
			return err
		}
	}
	return nil
}

// ofAllShards is about the parts of the checkpoints of a resource.
const ofAllShards = `cluster = $1 AND "group" = $2 AND resource = $3`

func shorten(ctx context.Context, tx *sql.Tx, cluster string, of schema.GroupResource) error {
	arguments := []any{cluster, of.Group, of.Resource}
	if _, err := tx.ExecContext(ctx, `DELETE FROM checkpoints WHERE part > 0 AND `+ofAllShards, arguments...); err != nil {
		return err
	}
	heads, err := headsOf(ctx, tx, arguments)
	if err != nil {
		return err
	}
	for _, head := range heads {
		source := saved.SourceOfHead(head)
		var content bytes.Buffer
		if err := saved.WriteOf(source.OfCluster(), &content); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE checkpoints SET data = $4 WHERE `+ofAllShards+` AND substr(data, 1, $5) = $6`,
			append(arguments, content.Bytes(), saved.MaxHead, head)...); err != nil {
			return err
		}
	}
	return nil
}

// headsOf returns the beginnings of the checkpoints of a resource.
func headsOf(ctx context.Context, tx *sql.Tx, arguments []any) (heads [][]byte, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT substr(data, 1, $4) FROM checkpoints WHERE `+ofAllShards, append(arguments, saved.MaxHead)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var head []byte
		if err := rows.Scan(&head); err != nil {
			return nil, err
		}
		heads = append(heads, head)
	}
	return heads, rows.Err()
}

// readMisfits reads rows of a query: cluster, group, resource, namespace, name and problem.
func readMisfits(ctx context.Context, tx *sql.Tx, query string) (found []misfit, err error) {
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var m misfit
		if err := rows.Scan(&m.cluster, &m.resource.Group, &m.resource.Resource, &m.name.Namespace, &m.name.Name, &m.problem); err != nil {
			return nil, err
		}
		found = append(found, m)
	}
	return found, rows.Err()
}
