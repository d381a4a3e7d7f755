package e2e

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
)

// tap sits between an informer and the server, and sees every request with the
// beginning of its answer.
type tap struct {
	// before is called with a request that is about to be sent, and may fail it
	// or block, until the request's context ends.
	before func(ctx context.Context, e exchange) error

	// after is called when an answer began, before the informer sees it.
	after func(e exchange)

	// reading is called whenever the informer is about to read from the body of
	// an answer, after n bytes. Blocking it, until the request's
	// context ends, stops the reading.
	reading func(ctx context.Context, e exchange, n int64)

	signal
	exchanges []exchange
	cuts      int // answers that ended with an error while the informer wanted them
}

// exchange is a request and the status of its answer, or why there was none.
type exchange struct {
	path   string
	query  url.Values
	status int
	err    error
	// Accept-Encoding of the request, and Content-Encoding of the answer.
	accepted, encoding string
}

func (e exchange) isWatch() bool {
	return e.query.Get("watch") == "1" || e.query.Get("watch") == "true"
}

// isOfServer tells a question about the server, which cluster it is of or whether it was
// restored, from one about the objects.
func (e exchange) isOfServer() bool { return strings.HasSuffix(e.path, "/namespaces/kube-system") }

// isProbe tells a question whether the server is there.
func (e exchange) isProbe() bool { return e.path == "/version" }

func (e exchange) isAny() bool { return true }

// isPage tells a page of a list that is not the first.
func (e exchange) isPage() bool { return e.query.Get("continue") != "" }

// isFirstPage tells the first page of a list that may have more.
func (e exchange) isFirstPage() bool {
	return !e.isWatch() && !e.isPage() && e.query.Get("limit") != ""
}

// isWhole tells a list that comes in one answer.
func (e exchange) isWhole() bool {
	return !e.isWatch() && !e.isPage() && !e.isOfServer() && !e.isProbe() && e.query.Get("limit") == ""
}

// isExpiredToken tells a page that could not be had any more.
func (e exchange) isExpiredToken() bool { return e.isPage() && e.status == http.StatusGone }

// install makes every client of config go through the tap.
func (t *tap) install(config *rest.Config) *rest.Config {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return tapped{t, next} })
	return config
}

type tapped struct {
	tap  *tap
	next http.RoundTripper
}

func (t tapped) RoundTrip(req *http.Request) (*http.Response, error) {
	e := exchange{path: req.URL.Path, query: req.URL.Query(), accepted: req.Header.Get("Accept-Encoding")}
	if t.tap.before != nil {
		if err := t.tap.before(req.Context(), e); err != nil {
			return nil, err
		}
	}
	resp, err := t.next.RoundTrip(req)
	if e.err = err; err == nil {
		e.status, e.encoding = resp.StatusCode, resp.Header.Get("Content-Encoding")
	}
	if t.tap.after != nil {
		t.tap.after(e)
	}
	t.tap.Lock()
	t.tap.exchanges = append(t.tap.exchanges, e)
	t.tap.changedLocked()
	t.tap.Unlock()
	if err == nil {
		resp.Body = &tappedBody{ReadCloser: resp.Body, tap: t.tap, ctx: req.Context(), exchange: e}
	}
	return resp, err
}

// tappedBody is the body of one answer on its way to the informer.
type tappedBody struct {
	io.ReadCloser
	tap      *tap
	ctx      context.Context // of the request: when it ends, so does the body
	exchange exchange
	n        int64
}

func (b *tappedBody) Read(p []byte) (int, error) {
	if b.tap.reading != nil {
		b.tap.reading(b.ctx, b.exchange, b.n)
	}
	n, err := b.ReadCloser.Read(p)
	b.n += int64(n)
	if err != nil && err != io.EOF && b.ctx.Err() == nil {
		b.tap.Lock()
		b.tap.cuts++
		b.tap.changedLocked()
		b.tap.Unlock()
	}
	return n, err
}

// ofObjects returns the exchanges so far that are about the objects.
func (t *tap) ofObjects() (all []exchange) {
	t.Lock()
	defer t.Unlock()
	for _, e := range t.exchanges {
		if !e.isOfServer() && !e.isProbe() {
			all = append(all, e)
		}
	}
	return all
}

// count returns how many exchanges so far are of the kind.
func (t *tap) count(is func(exchange) bool) int {
	t.Lock()
	defer t.Unlock()
	return t.countLocked(is)
}

func (t *tap) countLocked(is func(exchange) bool) int {
	n := 0
	for _, e := range t.exchanges {
		if is(e) {
			n++
		}
	}
	return n
}
