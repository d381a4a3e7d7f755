package main

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// A start reads the index alone, and a batch looks its rows up, whatever the planner believes of
// the size of the tables.
func TestPostgresPlans(t *testing.T) {
	db := openTestPostgres(t, newPostgresAddress(t), true)
	here := place{cluster: "here", resource: pods}
	plan := func(statement string, arguments ...any) string {
		t.Helper()
		rows, err := db.pool.Query(t.Context(), "EXPLAIN "+statement, append([]any{pgx.QueryExecModeSimpleProtocol}, arguments...)...)
		require.NoError(t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		return strings.Join(lines, "\n")
	}
	for _, analyzed := range []bool{false, true} {
		if analyzed {
			require.NoError(t, db.Apply(t.Context(), []change{put(here, "ns", "a", "1", "10")}))
			_, err := db.pool.Exec(t.Context(), "ANALYZE objects")
			require.NoError(t, err)
		}
		seed := plan(`SELECT namespace, name, uid, resource_version FROM objects WHERE `+ofShard+` AND version = $8`,
			append(shardArguments(here), "v1")...)
		require.Contains(t, seed, "Index Only Scan using objects_pkey on objects")
		remove := plan(removeStaged, append(shardArguments(here), 0)...)
		require.Regexp(t, `using objects_pkey on objects[^\n]*\n +Index Cond: [^\n]*\(namespace = staged.namespace\) AND \(name = staged.name\)`, remove)
		require.NotContains(t, remove, "Seq Scan on objects")
	}
}
