package race

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// Loss loses a watch: it cuts the one under way, and answers the next one that goes on from a
// version with 410, so that its informer has to list. It counts what comes off the sockets.
type Loss struct {
	meter meter

	mu sync.Mutex
	// cut ends the newest watch.
	cut func() error
	// refuse tells that the next watch is to be refused.
	refuse bool
}

// Config is the configuration of a client of the server whose watch is to be lost.
func (l *Loss) Config(t *Target) *rest.Config {
	config := t.Config()
	config.Dial = l.meter.dial()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return lossy{l, next} })
	return config
}

func (l *Loss) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuse = true
	_ = l.cut() // a body that was closed before
}

// due reports whether the loss has not been noticed yet.
func (l *Loss) due() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refuse
}

type lossy struct {
	*Loss
	next http.RoundTripper
}

func (l lossy) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	watching, _ := strconv.ParseBool(query.Get("watch"))
	initial, _ := strconv.ParseBool(query.Get("sendInitialEvents"))
	if watching && !initial && l.refused() {
		return gone(r), nil
	}
	response, err := l.next.RoundTrip(r)
	if err != nil || !watching {
		return response, err
	}
	body := &cutBody{ReadCloser: response.Body}
	response.Body = body
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = body.end
	return response, nil
}

func (l *Loss) refused() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	refused := l.refuse
	l.refuse = false
	return refused
}

func gone(r *http.Request) *http.Response {
	const status = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}`
	return &http.Response{
		Status: "410 Gone", StatusCode: http.StatusGone, Proto: "HTTP/2.0", ProtoMajor: 2,
		Header:  http.Header{"Content-Type": {"application/json"}},
		Body:    io.NopCloser(bytes.NewReader([]byte(status))),
		Request: r, ContentLength: int64(len(status)),
	}
}

// cutBody is the body of a watch that may be cut.
type cutBody struct {
	io.ReadCloser
	ended atomic.Bool
}

// end has the body end as if the server had ended it.
func (c *cutBody) end() error {
	c.ended.Store(true)
	return c.Close()
}

func (c *cutBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if err != nil && c.ended.Load() {
		err = io.EOF
	}
	return n, err
}
