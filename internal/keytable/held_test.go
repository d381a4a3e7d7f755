package keytable_test

import (
	"slices"
	"testing"
	"time"

	"github.com/rvinformer/informer/internal/keytable"
)

// BenchmarkHeld is how long the owner's guard is held at most by one call: to add
// a key, while a million are added, and for a part of a sweep that finds them all
// gone, and of one that finds none. The pauses of a busy machine are in it, in the
// maximum above all: look at the 99.9th percentile there.
//
//	go test -run - -bench Held -benchtime 1x ./internal/keytable
func BenchmarkHeld(b *testing.B) {
	const n = 1_000_000
	measure := func(times []time.Duration, name string) {
		slices.Sort(times)
		b.ReportMetric(float64(times[len(times)-1].Nanoseconds())/1e3, name+"-max-µs")
		b.ReportMetric(float64(times[len(times)*999/1000].Nanoseconds())/1e3, name+"-99.9%-µs")
		b.ReportMetric(float64(times[len(times)/2].Nanoseconds())/1e3, name+"-median-µs")
	}
	for b.Loop() {
		var adding []time.Duration
		table := keytable.New()
		for i := range n {
			key, version := pods(10)(i), versionOf(i)
			begin := time.Now()
			table.Set(key, version, 0)
			adding = append(adding, time.Since(begin))
		}
		measure(adding, "add")
		generation := table.Begin()
		sweep := func(name string) {
			var parts []time.Duration
			for cursor := keytable.Cursor(0); ; {
				begin := time.Now()
				_, cursor = table.UnmarkedFrom(cursor, generation, 1000)
				parts = append(parts, time.Since(begin))
				if cursor == 0 {
					break
				}
			}
			measure(parts, name)
			b.ReportMetric(float64(len(parts)), "parts")
		}
		sweep("sweep-all")
		for i := range n {
			table.Show(pods(10)(i), keytable.Version{}, generation, generation)
		}
		sweep("sweep-none")
	}
}
