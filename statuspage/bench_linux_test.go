package statuspage_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"
)

// BenchmarkOf25000 is an answer of a page with 25,000 informers in 500 clusters.
func BenchmarkOf25000(b *testing.B) {
	page := crowd(25_000)
	for _, c := range []struct{ name, target string }{
		{"first screen", "/"},
		{"last rows by name", "/?sort=cluster&page=500"},
		{"find text", "/?q=team-7"},
		{"JSON of 1000 rows", "/?format=json&limit=1000"},
		{"one informer", "/informer/cluster-007/_/v1/pods/namespace~20team-0~2C~20dynamic"},
		{"readyz", "/readyz"},
		{"livez", "/livez"},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			before := cpu(b)
			for b.Loop() {
				w := &discarded{header: http.Header{}}
				page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, c.target, nil))
				if w.bytes == 0 || w.code == http.StatusNotFound {
					b.Fatal("no answer", w.code)
				}
			}
			b.ReportMetric(1000*(cpu(b)-before).Seconds()/float64(b.N), "CPU-ms/op")
		})
	}
}

// BenchmarkOfHostileMessages is an answer of a page with 10,000 informers, each with a message that
// takes long to redact.
func BenchmarkOfHostileMessages(b *testing.B) {
	page := hostileCrowd(10_000)
	for _, target := range []string{"/readyz", "/readyz?verbose", "/", "/?format=json&limit=1000", "/?q=none"} {
		b.Run(target, func(b *testing.B) {
			before := cpu(b)
			for b.Loop() {
				page.ServeHTTP(&discarded{header: http.Header{}}, httptest.NewRequest(http.MethodGet, target, nil))
			}
			b.ReportMetric(1000*(cpu(b)-before).Seconds()/float64(b.N), "CPU-ms/op")
		})
	}
}

// cpu is the time that the process has had of the processors, garbage collection included.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// discarded counts an answer and keeps nothing of it.
type discarded struct {
	header http.Header
	code   int
	bytes  int
}

var _ io.Writer = (*discarded)(nil)

func (d *discarded) Header() http.Header  { return d.header }
func (d *discarded) WriteHeader(code int) { d.code = code }
func (d *discarded) Write(p []byte) (int, error) {
	d.bytes += len(p)
	return len(p), nil
}
