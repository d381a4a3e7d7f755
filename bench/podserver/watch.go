package podserver

import (
	"context"
	"net/url"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/bench/podserver/extra"
)

// bookmarkPeriod is a kube-apiserver's.
const bookmarkPeriod = time.Minute

// burstPause is before the burst, so that the handler of the initial events has done
// so: otherwise changes are told with them.
const burstPause = 500 * time.Millisecond

// watchRequest is what a watch asks for.
type watchRequest struct {
	initialEvents bool
	bookmarks     bool
	timeout       time.Duration
	known         int // changes that the client has heard of
	end           string
}

func watchOf(query url.Values, set Options) watchRequest {
	// A value that cannot be parsed counts as not given.
	flag := func(name string) bool { b, _ := strconv.ParseBool(query.Get(name)); return b }
	number := func(name string) int { n, _ := strconv.Atoi(query.Get(name)); return n }
	q := watchRequest{
		initialEvents: flag("sendInitialEvents"),
		bookmarks:     flag("allowWatchBookmarks"),
		timeout:       time.Duration(number("timeoutSeconds")) * time.Second,
		known:         max(number("resourceVersion")-listVersion, 0),
		end:           query.Get(extra.EndParameter),
	}
	// Without a version, a watch begins with what there is.
	if version := query.Get("resourceVersion"); query.Get("sendInitialEvents") == "" && (version == "" || version == "0") {
		q.initialEvents = true
	}
	if q.initialEvents {
		q.known = max(q.known, set.Changed)
	}
	if q.timeout <= 0 {
		q.timeout = 30 * time.Minute
	}
	return q
}

// events sends the events of a watch.
type events interface {
	initial(ctx context.Context, w *counted) error
	// changes sends changes: those after the first ones, which the client knows, and up to
	// a number of them.
	changes(ctx context.Context, w *counted, known, to int) error
	bookmark(w *counted, version string, annotations map[string]string) error
}

func (q watchRequest) serve(ctx context.Context, w *counted, send events, set Options) error {
	ctx, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	w.flush() // the client waits for the headers
	if q.initialEvents {
		if err := send.initial(ctx, w); err != nil {
			return err
		}
		if q.bookmarks {
			if err := send.bookmark(w, set.ListVersion(), map[string]string{metav1.InitialEventsAnnotationKey: "true"}); err != nil {
				return err
			}
		}
	}
	if q.end == extra.EndInitial {
		return nil
	}
	if err := send.changes(ctx, w, q.known, set.Changed); err != nil {
		return err
	}
	known := max(q.known, set.Changed)
	if known < set.Changed+set.Events {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(burstPause):
		}
	}
	if err := send.changes(ctx, w, known, set.Changed+set.Events); err != nil || q.end == extra.EndBurst {
		return err
	}
	ticker := time.NewTicker(bookmarkPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if !q.bookmarks {
				continue
			}
			if err := send.bookmark(w, set.LastVersion(), nil); err != nil {
				return err
			}
		}
	}
}
