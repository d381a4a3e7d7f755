package keytable_test

import (
	"runtime"
	"testing"

	"github.com/rvinformer/informer/internal/keytable"
)

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkBytes measures what a million objects take, all included, beside a
// map[string]uint64 that knows no UIDs.
//
//	go test -run - -bench Bytes -benchtime 1x ./internal/keytable
func BenchmarkBytes(b *testing.B) {
	const n = 1_000_000
	for _, names := range []struct {
		name string
		names
	}{
		{"pods-10", pods(10)}, {"pods-3", pods(3)}, {"pods-1", pods(1)}, {"random", random}, {"uuids", uuids},
	} {
		for impl, table := range map[string]func() *keytable.Table{"exact": keytable.New, "fingerprint": keytable.NewFingerprinting} {
			b.Run(names.name+"/uid="+impl, func(b *testing.B) {
				for b.Loop() {
					before := heap()
					table := table()
					for i := range n {
						table.Set(names.names(i), versionOf(i), 0)
					}
					b.ReportMetric(float64(heap()-before)/n, "bytes/object")
					b.ReportMetric(float64(table.SizeBytes())/n, "told/object")
					for part, size := range table.SizeParts() {
						b.ReportMetric(float64(size)/n, part+"/object")
					}
					runtime.KeepAlive(table)
				}
			})
		}
	}
}
