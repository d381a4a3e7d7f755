package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/mirror/pgtest"
	"github.com/stretchr/testify/require"
)

// BenchmarkPostgres mirrors a cluster of 30,000 objects into an empty database, and then has psql
// COPY the same rows into an empty table of the same form. It reports the medians of the rows per
// second, and of the ratio of each run. The server keeps what it is told, fsync included.
func BenchmarkPostgres(b *testing.B) {
	const objects = 30_000
	server := pgtest.Start(b, "fsync=on", "full_page_writes=on", "shared_buffers=256MB", "max_wal_size=4GB")
	cluster := &demoCluster{name: "here", server: informertest.NewServer(informertest.Options{})}
	defer cluster.server.Close()
	require.NoError(b, cluster.fill(b.Context(), objects))

	var mirrored, copied, ratios []float64
	for b.Loop() {
		config, _, err := parseAddress(server.NewDatabase(b))
		require.NoError(b, err)
		db, err := openPostgres(b.Context(), config, 0)
		require.NoError(b, err)
		m := newMirror(mirrorConfig{endpoints: []endpoint{cluster.endpoint()}, database: db, store: db, prune: options{}.prune(), board: newBoard()}, newOutput().screen)
		began := time.Now()
		require.NoError(b, m.Run(b.Context(), m.Settled))
		mirroring := time.Since(began)
		require.NoError(b, db.Close())

		name := config.ConnConfig.Database
		server.Query(b, name, fmt.Sprintf(`\copy objects TO '%s'`, "rows"))
		server.Query(b, name, `CREATE TABLE copied (LIKE objects INCLUDING ALL); CHECKPOINT`)
		began = time.Now()
		server.Query(b, name, fmt.Sprintf(`\copy copied FROM '%s'`, "rows"))
		copying := time.Since(began)
		require.Equal(b, fmt.Sprint(objects), server.Query(b, name, `SELECT count(*) FROM copied`))
		require.Equal(b, fmt.Sprint(objects), server.Query(b, name, `SELECT count(*) FROM objects`))

		mirrored = append(mirrored, objects/mirroring.Seconds())
		copied = append(copied, objects/copying.Seconds())
		ratios = append(ratios, copying.Seconds()/mirroring.Seconds())
	}
	median := func(values []float64) float64 {
		slices.Sort(values)
		return values[len(values)/2]
	}
	b.ReportMetric(median(mirrored), "rows/s")
	b.ReportMetric(median(copied), "copied-rows/s")
	b.ReportMetric(median(ratios), "ratio")
	b.Logf("ratios: %.2f", ratios)
}
