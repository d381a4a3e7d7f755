package delivery_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// BenchmarkLagDuringRedeliver changes 500 objects a second, and measures how long a change takes to
// its handler: alone, and while all objects are delivered again. The handlers take as long as a
// database in the next rack does: for each call, and for each event.
//
//	go test -run - -bench LagDuringRedeliver -benchtime 1x ./tests/delivery
//
// INFORMER_REDELIVER has another number of objects than 100,000.
func BenchmarkLagDuringRedeliver(b *testing.B) {
	objects := 100_000
	if n, err := strconv.Atoi(os.Getenv("INFORMER_REDELIVER")); err == nil {
		objects = n
	}
	s := informertest.NewServer(informertest.Options{})
	defer s.Close()
	if err := s.Load(harness.Pods, func(yield func(runtime.Object) bool) {
		for i := range objects {
			if !yield(harness.Object(harness.Pods, lagKey(i), "0")) {
				return
			}
		}
	}); err != nil {
		b.Fatal(err)
	}
	factory, err := informer.NewDynamicListerWatcherFactory(s.Config())
	if err != nil {
		b.Fatal(err)
	}
	for _, bench := range []struct {
		name        string
		call, event time.Duration
		config      func(h *lagHandler) informer.InformerConfig
	}{
		{"batches", 2 * time.Millisecond, 5 * time.Microsecond, func(h *lagHandler) informer.InformerConfig {
			return informer.InformerConfig{BatchHandler: h}
		}},
		{"one by one", 200 * time.Microsecond, 0, func(h *lagHandler) informer.InformerConfig {
			return informer.InformerConfig{Handler: informer.ResourceEventHandlerFuncs{
				AddFunc: h.one, UpdateFunc: func(_, obj interface{}) { h.one(obj) },
			}}
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			h := &lagHandler{call: bench.call, event: bench.event, seen: map[string]string{}}
			config := bench.config(h)
			config.ListerWatcher = factory.ForResource("", harness.Pods)
			i := informer.NewResourceVersionInformer("pods", config)
			defer harness.Synced(i)()
			for b.Loop() {
				ctx, cancel := context.WithCancel(b.Context())
				var writing sync.WaitGroup
				writing.Go(func() { keepChanging(ctx, b, s, objects) })
				time.Sleep(time.Second)
				h.take()
				time.Sleep(10 * time.Second)
				alone := h.take()
				began := time.Now()
				if err := i.Redeliver(b.Context(), informer.RedeliverOptions{}); err != nil {
					b.Error(err)
				}
				took := time.Since(began)
				during := h.take()
				cancel()
				writing.Wait()
				for name, at := range map[string]int{"p50": 50, "p99": 99} {
					a, d := percentile(alone, at), percentile(during, at)
					b.ReportMetric(float64(a.Microseconds()), name+"-alone-µs")
					b.ReportMetric(float64(d.Microseconds()), name+"-during-µs")
					b.ReportMetric(float64(d)/float64(a), name+"-ratio")
				}
				b.ReportMetric(float64(objects)/took.Seconds(), "objects/s")
			}
		})
	}
}

func lagKey(i int) string { return fmt.Sprintf("namespace-%02d/pod-%07d", i%20, i) }

// keepChanging changes 500 objects a second, and writes down when.
func keepChanging(ctx context.Context, b *testing.B, s *informertest.Server, objects int) {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		stamp := strconv.FormatInt(time.Now().UnixNano(), 10)
		if _, err := s.Update(harness.Pods, harness.Object(harness.Pods, lagKey(n*7919%objects), stamp)); err != nil {
			b.Error(err)
			return
		}
	}
}

func percentile(of []time.Duration, at int) time.Duration {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return of[(len(of)-1)*at/100]
}

// lagHandler is a handler that takes its time, and measures how old changes are when it has them.
type lagHandler struct {
	call, event time.Duration

	mu   sync.Mutex
	seen map[string]string
	lags []time.Duration
}

// OnBatch implements informer.BatchHandler.
func (h *lagHandler) OnBatch(_ context.Context, events []informer.Event) error {
	time.Sleep(h.call + time.Duration(len(events))*h.event)
	for _, e := range events {
		h.note(e.Object)
	}
	return nil
}

func (h *lagHandler) one(obj interface{}) {
	time.Sleep(h.call)
	h.note(obj)
}

// note notes the lag of a change that was not seen before.
func (h *lagHandler) note(obj interface{}) {
	pod := obj.(*unstructured.Unstructured)
	stamp := harness.Data(pod)
	if stamp == "0" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	key := harness.Key(pod)
	if h.seen[key] == stamp {
		return
	}
	h.seen[key] = stamp
	at, err := strconv.ParseInt(stamp, 10, 64)
	if err == nil {
		h.lags = append(h.lags, time.Since(time.Unix(0, at)))
	}
}

// take returns the lags since it was called last.
func (h *lagHandler) take() []time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	lags := h.lags
	h.lags = nil
	return lags
}
