package sqlsink_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/stretchr/testify/require"
)

// A start reads an index, and no page that has objects: those may be a thousand times as many.
func TestSeedReadsTheIndexOnly(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	config := sqlsink.Config{Address: "sqlite:" + path}
	sink := open(t, config)
	here := sink.Place("here", pods)
	require.NoError(t, write(t.Context(), here, many(500)...))
	require.NoError(t, here.Checkpoint().Save(t.Context(), text("checkpoint")))
	known := stored(t, here)
	require.NoError(t, sink.Close())

	pages := pagesOfObjects(t, path)
	require.Greater(t, len(pages), 100)
	for _, n := range pages {
		overwrite(t, path, (n-1)*page, n*page)
	}
	here = opened(t, config).Place("here", pods)
	require.Equal(t, known, stored(t, here))
	require.Equal(t, "checkpoint", saved(t, here))
}

// pagesOfObjects are the numbers of the pages of the table objects, from 1.
func pagesOfObjects(t *testing.T, path string) (numbers []int64) {
	pool, err := sql.Open("sqlite", "file:"+path)
	require.NoError(t, err)
	defer func() { require.NoError(t, pool.Close()) }()
	rows, err := pool.Query(`SELECT pageno FROM dbstat WHERE name = 'objects'`)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var number int64
		require.NoError(t, rows.Scan(&number))
		numbers = append(numbers, number)
	}
	require.NoError(t, rows.Err())
	return numbers
}

// reads are what a PostgreSQL server has counted: how often the whole table objects was read, and how
// many entries of its index and how many of its rows were read by the index.
type reads struct{ scans, entries, rows int64 }

// readsOf waits until all who used the database are gone, because a session counts at its end.
func readsOf(t *testing.T, address string) reads {
	t.Helper()
	require.Eventually(t, func() bool {
		return query(t, address, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'`)[0] == "1"
	}, soon, soon/1000)
	var numbers [3]int64
	for i, what := range []string{"t.seq_scan", "i.idx_tup_read", "t.idx_tup_fetch"} {
		text := query(t, address, `SELECT `+what+` FROM pg_stat_user_tables AS t, pg_stat_user_indexes AS i
			WHERE t.relname = 'objects' AND i.indexrelname = 'objects_pkey'`)[0]
		var err error
		numbers[i], err = strconv.ParseInt(text, 10, 64)
		require.NoError(t, err)
	}
	return reads{numbers[0], numbers[1], numbers[2]}
}

// A server reads what is asked for and no more, whether it has counted its rows or not: also for a
// connection whose plans are of a time when there were none.
func TestPostgresPlans(t *testing.T) {
	for _, counted := range []bool{false, true} {
		t.Run(fmt.Sprint("counted=", counted), func(t *testing.T) {
			t.Parallel()
			address := postgresAddress(t)
			config := sqlsink.Config{Address: address + "&pool_max_conns=1"}
			require.NoError(t, open(t, config).Close())
			made := readsOf(t, address)
			query(t, address, `ALTER TABLE objects SET (autovacuum_enabled = off)`)
			if counted {
				query(t, address, `ANALYZE objects`)
			}

			const rows, few, batches = 3000, 20, 10
			const changes = rows + 2*batches*(few+few/4+2)
			sink := open(t, config)
			here := sink.Place("here", pods)
			round := func() {
				for range batches { // those of few events and of many have statements of their own
					require.NoError(t, write(t.Context(), here, many(few)...))
					require.NoError(t, write(t.Context(), here, many(few/4)...))
					require.NoError(t, write(t.Context(), here, gone("0"), gone("1")))
				}
			}
			round()
			require.NoError(t, write(t.Context(), here, many(rows)...))
			round()
			require.NoError(t, here.Checkpoint().Save(t.Context(), text("checkpoint")))
			require.NoError(t, sink.Close())
			written := readsOf(t, address)
			require.Equal(t, made.scans, written.scans)
			// Entries of dead rows count too, while other sessions may see them. To look through the
			// whole index for each batch would take 90,000.
			require.Less(t, written.entries-made.entries, int64(10*changes))
			require.Less(t, written.rows-made.rows, int64(2*changes))

			query(t, address, `VACUUM objects`) // says which pages need not be looked at
			if counted {
				query(t, address, `ANALYZE objects`)
			}
			sink = open(t, config)
			here = sink.Place("here", pods)
			require.Len(t, stored(t, here), rows-2)
			require.Equal(t, "checkpoint", saved(t, here))
			_, err := sink.Known(t.Context(), fleet.Unit{Cluster: "here"})
			require.NoError(t, err)
			require.NoError(t, sink.Close())
			started := readsOf(t, address)
			require.Equal(t, written.scans, started.scans)
			require.Equal(t, written.rows, started.rows, "a start reads the index only")
			require.Less(t, started.entries-written.entries, int64(3*rows))
		})
	}
}
