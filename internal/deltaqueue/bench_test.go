package deltaqueue_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/deltaqueue"
	"github.com/rvinformer/informer/internal/keytable"
)

// BenchmarkQueue follows 1,000 known keys, one of them at a time: as a watch changes it, as a list
// shows it in the version that is known, and as a handler fails for it.
//
//	go test -run - -bench . -benchmem -count 5 ./internal/deltaqueue
func BenchmarkQueue(b *testing.B) {
	ctx := context.Background()
	var deltas []deltaqueue.Delta
	for i := range 1000 {
		deltas = append(deltas, delta(cache.Updated, "ns/"+strconv.Itoa(i), strconv.Itoa(1000+i)))
	}
	for _, bench := range []struct {
		name string
		opts deltaqueue.Options
		each func(q *deltaqueue.Queue, d deltaqueue.Delta)
	}{
		{"change", deltaqueue.Options{}, func(q *deltaqueue.Queue, d deltaqueue.Delta) {
			q.Stale(d)
			_ = q.Put(ctx, d)
			e, _ := q.Take(ctx)
			q.Done(e)
			deltaqueue.Recycle(e)
			q.Observed(d.Version.ResourceVersion, 0)
		}},
		{"replaced", deltaqueue.Options{}, func(q *deltaqueue.Queue, d deltaqueue.Delta) {
			_ = q.Put(ctx, d)
			_ = q.Put(ctx, d)
			e, _ := q.Take(ctx)
			_ = q.Put(ctx, d)
			q.Done(e)
			e, _ = q.Take(ctx)
			q.Done(e)
		}},
		{"every", deltaqueue.Options{EveryChange: true}, func(q *deltaqueue.Queue, d deltaqueue.Delta) {
			_ = q.Put(ctx, d)
			_ = q.Put(ctx, d)
			for range 2 {
				e, _ := q.Take(ctx)
				q.Done(e)
				deltaqueue.Recycle(e)
			}
		}},
		{"shown", deltaqueue.Options{SkipUnchanged: true}, func(q *deltaqueue.Queue, d deltaqueue.Delta) { q.Shown(d.Key, d.Version) }},
		{"failed", deltaqueue.Options{}, func(q *deltaqueue.Queue, d deltaqueue.Delta) {
			_ = q.Put(ctx, d)
			e, _ := q.Take(ctx)
			q.Postpone([]*deltaqueue.Entry{e}, -time.Second, false)
			e, _ = q.Take(ctx)
			q.Retry(e, -time.Second)
			e, _ = q.Take(ctx)
			q.Done(e)
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			bench.opts.Known = keytable.New()
			q := deltaqueue.New(bench.opts)
			for _, d := range deltas {
				_ = q.Put(ctx, d)
				e, _ := q.Take(ctx)
				q.Done(e)
			}
			q.BeginGeneration()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				bench.each(q, deltas[i%len(deltas)])
			}
		})
	}
}
