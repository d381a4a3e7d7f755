package podserver

import (
	"context"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Trouble is what is wrong with a server.
type Trouble string

const (
	// Healthy: nothing.
	Healthy Trouble = ""
	// Dead: it takes requests and does not answer.
	Dead Trouble = "dead"
	// Slow: it sends SlowBytes a second of each body.
	Slow Trouble = "slow"
	// SlowLink: it sends SlowBytes a second in all, over all its connections.
	SlowLink Trouble = "slow link"
	// Forbidden: it answers 403 to all.
	Forbidden Trouble = "forbidden"
)

// SlowBytes is what a slow server sends of a body in a second.
const SlowBytes = 10_000

// around is next with the trouble.
func (t Trouble) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch t {
		case Dead:
			<-r.Context().Done()
		case Forbidden:
			refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "you may not")
		case Slow:
			next.ServeHTTP(&slowWriter{w, r.Context()}, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// slowWriter writes slowly, a tenth of a second's bytes at a time.
type slowWriter struct {
	http.ResponseWriter
	ctx context.Context
}

func (w *slowWriter) Write(p []byte) (written int, err error) {
	for len(p) > 0 {
		some := min(len(p), SlowBytes/10)
		n, err := w.ResponseWriter.Write(p[:some])
		if written += n; err != nil {
			return written, err
		}
		w.Flush()
		p = p[some:]
		select {
		case <-time.After(time.Second / 10):
		case <-w.ctx.Done():
			return written, w.ctx.Err()
		}
	}
	return written, nil
}

func (w *slowWriter) Flush() { w.ResponseWriter.(http.Flusher).Flush() }
