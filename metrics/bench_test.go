//go:build unix

package metrics_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/metrics"
	"github.com/rvinformer/informer/tests/harness"
)

// BenchmarkScrape scrapes 25,000 informers of 500 clusters: 100 of them run and are each asked 250
// times. Each has listed, watches and has called its handler with a batch.
//
//	go test -run - -bench Scrape -benchtime 10x ./metrics
func BenchmarkScrape(b *testing.B) {
	const informers, running = 25000, 100
	var all []informer.ResourceVersionInformer
	for range running {
		i, stop := fed(b, make(chan watch.Event))
		defer stop()
		all = append(all, i)
	}
	c := metrics.NewCollector()
	for i := range informers {
		c.Add(metrics.Labels{Cluster: fmt.Sprintf("cluster-%03d", i%500), Group: "example.com", Version: "v1", Resource: fmt.Sprint("resource-", i/500), Informer: "resource-version"}, all[i%running])
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	b.Run("Gather", func(b *testing.B) {
		series := 0
		defer measure(b)()
		for b.Loop() {
			families, err := registry.Gather()
			if err != nil {
				b.Fatal(err)
			}
			series = 0
			for _, f := range families {
				series += len(f.Metric)
			}
			runtime.KeepAlive(families)
		}
		b.ReportMetric(float64(series)/informers, "series/informer")
	})
	b.Run("WriteText", func(b *testing.B) {
		defer measure(b)()
		for b.Loop() {
			if err := c.WriteText(io.Discard); err != nil {
				b.Fatal(err)
			}
		}
	})
	serve := func(b *testing.B, of prometheus.Gatherer) {
		handler := promhttp.HandlerFor(of, promhttp.HandlerOpts{DisableCompression: true})
		defer measure(b)()
		for b.Loop() {
			handler.ServeHTTP(discarded{}, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		}
	}
	b.Run("promhttp", func(b *testing.B) { serve(b, registry) })
	b.Run("promhttp's text alone", func(b *testing.B) {
		families, err := registry.Gather()
		if err != nil {
			b.Fatal(err)
		}
		serve(b, prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return families, nil }))
	})
}

// discarded is an answer that nothing is kept of.
type discarded struct{}

func (discarded) Header() http.Header         { return http.Header{} }
func (discarded) Write(p []byte) (int, error) { return len(p), nil }
func (discarded) WriteHeader(int)             {}

// BenchmarkEvents has two informers take in the same events in turn, one of which is scraped for
// each 10,000 events: as often as each second if there are 10,000 a second. It compares the
// medians.
//
//	go test -run - -bench Events -benchtime 1000000x -count 3 ./metrics
func BenchmarkEvents(b *testing.B) {
	const round = 10000
	c := metrics.NewCollector()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	events := make([]watch.Event, round)
	version := 10
	take := func(to chan<- watch.Event, i informer.ResourceVersionInformer) time.Duration {
		for n := range events {
			version++
			events[n] = watch.Event{Type: watch.Modified, Object: pod(n%1000, version)}
		}
		before := cpu(b)
		for n := range events {
			to <- events[n]
		}
		for want := fmt.Sprint(version); i.Status().ResourceVersion != want; {
			runtime.Gosched()
		}
		return cpu(b) - before
	}
	feeds := [2]chan watch.Event{make(chan watch.Event, 100), make(chan watch.Event, 100)}
	var informers [2]informer.ResourceVersionInformer
	for n, feed := range feeds {
		i, stop := fed(b, feed)
		defer stop()
		informers[n] = i
	}
	c.Add(metrics.Labels{Version: "v1", Resource: "pods"}, informers[1])
	var spent [2][]time.Duration
	b.ResetTimer()
	for n := 0; n < b.N; n += round {
		for _, k := range [][2]int{{0, 1}, {1, 0}}[n/round%2] {
			took := take(feeds[k], informers[k])
			if k == 1 {
				before := cpu(b)
				if _, err := registry.Gather(); err != nil {
					b.Fatal(err)
				}
				took += cpu(b) - before
			}
			spent[k] = append(spent[k], took)
		}
	}
	median := func(all []time.Duration) float64 {
		slices.Sort(all)
		return float64(all[len(all)/2])
	}
	b.ReportMetric(median(spent[0])/round, "CPU-ns/event")
	b.ReportMetric(median(spent[1])/median(spent[0]), "ratio")
}

// fed returns an informer that runs, of a watch that tells what feed has.
func fed(b *testing.B, feed chan watch.Event) (i informer.ResourceVersionInformer, stop func()) {
	i = informer.NewResourceVersionInformer("pods", informer.InformerConfig{
		ListerWatcher: &cache.ListWatch{
			ListFunc: func(metav1.ListOptions) (kruntime.Object, error) {
				return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []corev1.Pod{*pod(0, 5)}}, nil
			},
			WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return watch.NewProxyWatcher(feed), nil },
		},
		BatchHandler: informer.BatchHandlerFunc(func(context.Context, []informer.Event) error { return nil }),
	})
	end := harness.Synced(i)
	return i, func() {
		end()
		close(feed)
	}
}

func pod(n, version int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("pod-", n), UID: "a", ResourceVersion: fmt.Sprint(version)}}
}

// measure reports the CPU that the process takes for each scrape, garbage collection included, and
// the memory that it takes from the system beyond what it had after a collection.
func measure(b *testing.B) (done func()) {
	b.ReportAllocs()
	held := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	runtime.GC()
	idle, peak := held(), uint64(0)
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() {
		for ctx.Err() == nil {
			peak = max(peak, held())
			time.Sleep(5 * time.Millisecond)
		}
	})
	before := cpu(b)
	return func() {
		b.ReportMetric(float64((cpu(b)-before).Milliseconds())/float64(b.N), "CPU-ms/scrape")
		cancel()
		watching.Wait()
		b.ReportMetric(float64(peak-min(peak, idle))/(1<<20), "MiB-beyond-idle")
	}
}

func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
