package script

import (
	"context"
	"net/http"
	"strings"

	"github.com/rvinformer/informer"
)

// redelivered selects all objects, and tells the lists of a redelivery from others.
const redelivered = "!redelivered"

// parseRedeliver begins a redelivery of all objects, or of keys. If the run ends, the next one goes
// on with it.
func parseRedeliver(a *args) action {
	opts := informer.RedeliverOptions{PerSecond: a.namedCount("speed", 0)}
	if len(a.words) > 0 {
		opts.Keys = a.keys()
	} else {
		opts.Selector = redelivered
	}
	return func(_ context.Context, p *player) error {
		if p.run == nil || p.subject.Redeliver == nil {
			return nil
		}
		subject, travels := p.subject, p.travels.Load()
		done := p.oracle.Redelivering()
		p.audits.begin(func(ctx context.Context) error {
			err := subject.Redeliver(ctx, opts)
			// Without an order of versions, it does not wait for what the watch is yet to bring.
			ordered := !p.script.server.OpaqueVersions && !p.script.judging.Overtaken && tellsAll(p.script.server.Dialect)
			if err == nil && opts.Keys == nil && p.travels.Load() == travels && ordered {
				done()
			}
			return nil
		})
		return nil
	}
}

// isRedelivery reports whether a request is of a redelivery.
func isRedelivery(r *http.Request) bool {
	query := r.URL.Query()
	asks := strings.Contains(query.Get("fieldSelector"), "metadata.name=") && !query.Has("limit") && !query.Has("watch")
	return query.Get("labelSelector") == redelivered || asks
}
