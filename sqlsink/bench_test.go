package sqlsink_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/rvinformer/informer/sqlsink/pgtest"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer/internal/testkit/samples"
)

// BenchmarkPostgres brings a cluster of 30,000 pods into an empty database, and then has psql COPY
// the same rows into an empty table of the same form. It reports the medians of the rows per second,
// and of the ratio of each run. The server keeps what it is told, fsync included.
func BenchmarkPostgres(b *testing.B) {
	const objects = 30_000
	server := benchmarkServer(b)
	cluster := benchmarkCluster(b, objects)
	for _, columns := range [][]sqlsink.Column{nil, columns[:3]} {
		b.Run(fmt.Sprintf("columns=%d", len(columns)), func(b *testing.B) { benchmarkPostgres(b, server, cluster, objects, columns) })
	}
}

// benchmarkServer is a server that keeps what it is told.
func benchmarkServer(b *testing.B) *pgtest.Server {
	return pgtest.Start(b, "fsync=on", "full_page_writes=on", "shared_buffers=256MB", "max_wal_size=4GB")
}

// benchmarkCluster is a server with so many pods.
func benchmarkCluster(b *testing.B, objects int) *informertest.Server {
	cluster := informertest.NewServer(informertest.Options{})
	b.Cleanup(cluster.Close)
	require.NoError(b, cluster.Load(pods, func(yield func(runtime.Object) bool) {
		for _, pod := range (samples.Cluster{}).Pods(0, objects, 0) {
			if !yield(pod) {
				return
			}
		}
	}))
	return cluster
}

func benchmarkPostgres(b *testing.B, server *pgtest.Server, cluster *informertest.Server, objects int, columns []sqlsink.Column) {
	var written, copied, ratios []float64
	for b.Loop() {
		address := server.NewDatabase(b)
		name, err := sqlsink.Name(address)
		require.NoError(b, err)
		name = strings.TrimPrefix(strings.Split(name, "?")[0], "postgres://postgres@/")
		writing := fill(b, cluster, sqlsink.Config{Address: address, Columns: columns}, objects)

		server.Query(b, name, `\copy (SELECT cluster, "group", version, resource, namespace, name, uid, resource_version, namespace_hash, uid_hash, object, exact FROM objects) TO 'rows'`)
		server.Query(b, name, `CREATE TABLE copied (LIKE objects INCLUDING ALL); CHECKPOINT`)
		began := time.Now()
		server.Query(b, name, `\copy copied (cluster, "group", version, resource, namespace, name, uid, resource_version, namespace_hash, uid_hash, object, exact) FROM 'rows'`)
		copying := time.Since(began)
		require.Equal(b, fmt.Sprint(objects), server.Query(b, name, `SELECT count(*) FROM copied`))
		require.Equal(b, fmt.Sprint(objects), server.Query(b, name, `SELECT count(*) FROM objects`))

		written = append(written, float64(objects)/writing.Seconds())
		copied = append(copied, float64(objects)/copying.Seconds())
		ratios = append(ratios, copying.Seconds()/writing.Seconds())
	}
	b.ReportMetric(median(written), "rows/s")
	b.ReportMetric(median(copied), "copied-rows/s")
	b.ReportMetric(median(ratios), "ratio")
	b.Logf("ratios: %.2f", ratios)
}

// BenchmarkPoison brings a cluster into a database that refuses some of its pods, and then into one
// that takes all of them. It reports how many times as long the others take.
func BenchmarkPoison(b *testing.B) {
	server := benchmarkServer(b)
	for poison, objects := range map[int]int{1: 100_000, 400: 20_000} {
		b.Run(fmt.Sprintf("refused=%d", poison), func(b *testing.B) {
			cluster := benchmarkCluster(b, objects)
			var ratios []float64
			for b.Loop() {
				address := server.NewDatabase(b)
				require.NoError(b, open(b, sqlsink.Config{Address: address}).Close())
				names := make([]string, 0, poison)
				for i, pod := range (samples.Cluster{}).Pods(0, objects, 0) {
					if i%(objects/poison) == objects/poison/2 {
						names = append(names, "'"+pod.Name+"'")
					}
				}
				query(b, address, `ALTER TABLE objects ADD CONSTRAINT poison CHECK (name NOT IN (`+strings.Join(names, ",")+`))`)
				with := fill(b, cluster, sqlsink.Config{Address: address}, objects-poison)
				without := fill(b, cluster, sqlsink.Config{Address: server.NewDatabase(b)}, objects)
				ratios = append(ratios, with.Seconds()/without.Seconds())
			}
			b.ReportMetric(median(ratios), "ratio")
			b.Logf("ratios: %.2f", ratios)
		})
	}
}

// fill follows a cluster until there are so many rows, and returns how long that took.
func fill(b *testing.B, cluster *informertest.Server, config sqlsink.Config, rows int) time.Duration {
	sink := open(b, config)
	defer func() { require.NoError(b, sink.Close()) }()
	factory, err := informer.NewDynamicListerWatcherFactory(cluster.Config())
	require.NoError(b, err)
	here := sink.Place("here", pods)
	var written atomic.Int64
	complete := make(chan struct{})
	i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
		ListerWatcher: factory.ForResource("", pods),
		ExampleObject: &informer.RawObject{},
		BatchHandler: informer.BatchHandlerFunc(func(ctx context.Context, events []informer.Event) error {
			err := here.Handler().OnBatch(ctx, events)
			n, refused := len(events), informer.FailedEvents(nil)
			if errors.As(err, &refused) {
				n -= len(refused)
			} else if err != nil {
				return err
			}
			if n > 0 && written.Add(int64(n)) == int64(rows) {
				close(complete)
			}
			return err
		}),
		Checkpoint: here.Checkpoint(),
		Workers:    2,
	})
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan struct{})
	began := time.Now()
	go func() {
		defer close(ended)
		i.RunWithContext(ctx)
	}()
	<-complete
	took := time.Since(began)
	cancel()
	<-ended
	return took
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
