package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/rvinformer/informer/internal/engine/server"
	"github.com/rvinformer/informer/internal/leaf/redact"
)

const (
	// silence is how long a server may say nothing while it is discovered.
	silence = 30 * time.Second
	// maxAnswer is how large an answer may be. That of a server with a thousand custom resources is
	// about a megabyte.
	maxAnswer = 32 << 20
)

var (
	errSilent = fmt.Errorf("the server was silent for %v: %w", silence, os.ErrDeadlineExceeded)
	errLarge  = fmt.Errorf("an answer to discovery has more than %d MiB", maxAnswer>>20)
)

// discover asks the cluster once what it serves. After an error, retryAfter is how long the server
// has asked to be left alone.
func (c *cluster) discover(ctx context.Context) (found *catalog, retryAfter time.Duration, err error) {
	release, err := c.fleet.slots.take(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer release()
	e := c.newExchange(ctx)
	defer e.end()
	client, err := e.client()
	if err != nil {
		return nil, 0, err
	}
	groups, lists, err := discovery.ServerGroupsAndResources(client)
	found, err = newCatalog(groups, lists, err)
	return found, e.retryAfter, e.explain(err)
}

// isUnknown asks the cluster for a list of a resource, and reports whether it answers that it has
// no such resource.
func (c *cluster) isUnknown(ctx context.Context, r schema.GroupVersionResource) bool {
	e := c.newExchange(ctx)
	defer e.end()
	client, err := e.client()
	if err != nil {
		return false
	}
	path := []string{"/apis", r.Group, r.Version, r.Resource}
	if r.Group == "" {
		path = []string{"/api", r.Version, r.Resource}
	}
	answer := client.RESTClient().Get().AbsPath(path...).Param("limit", "1").Do(ctx)
	return server.LacksResource(answer.Error())
}

// exchange is a few requests of a discovery client. The client knows no context, and makes requests
// again that have failed: an exchange ends its requests with a context, and lets each be made once.
// They are over when end is called.
type exchange struct {
	cluster *cluster
	// next makes the requests.
	next   http.RoundTripper
	ctx    context.Context
	cancel context.CancelCauseFunc
	// quiet ends the context when the server has been silent for too long.
	quiet *time.Timer

	mu sync.Mutex
	// failure is the first error of a request without an answer.
	failure    error
	retryAfter time.Duration
}

func (c *cluster) newExchange(ctx context.Context) *exchange {
	e := &exchange{cluster: c}
	e.ctx, e.cancel = context.WithCancelCause(c.overseen(ctx, nil))
	e.quiet = time.AfterFunc(silence, func() { e.cancel(errSilent) })
	return e
}

func (e *exchange) end() {
	e.quiet.Stop()
	e.cancel(context.Canceled)
}

func (e *exchange) client() (*discovery.DiscoveryClient, error) {
	config, client := e.cluster.server.Client()
	over := *client
	e.next, over.Transport = client.Transport, e
	return discovery.NewDiscoveryClientForConfigAndClient(config, &over)
}

// errNoAnswer stands for an error that client-go would try again after.
var errNoAnswer = errors.New("no answer")

// RoundTrip is how requests are made.
func (e *exchange) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := e.next.RoundTrip(request.WithContext(e.ctx))
	e.quiet.Reset(silence)
	if err != nil {
		return nil, e.fail(err)
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		response.Header.Del("Retry-After")
		e.mu.Lock()
		defer e.mu.Unlock()
		e.retryAfter = max(e.retryAfter, time.Duration(seconds)*time.Second)
	}
	response.Body = &body{ReadCloser: response.Body, exchange: e}
	return response, nil
}

// fail notes why there is no answer, or not all of it.
func (e *exchange) fail(err error) error {
	if cause := context.Cause(e.ctx); cause != nil {
		err = cause
	}
	err = server.ExplainConnection(err)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failure == nil {
		e.failure = err
	}
	return errNoAnswer
}

// explain returns err, the error of the client, with what it stands for.
func (e *exchange) explain(err error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil && e.failure != nil {
		err = e.failure
	}
	return redact.Error(err)
}

// body is that of an answer. The server is not silent while it comes.
type body struct {
	io.ReadCloser
	exchange *exchange
	read     int
}

func (b *body) Read(into []byte) (n int, err error) {
	n, err = b.ReadCloser.Read(into)
	if n > 0 {
		b.exchange.quiet.Reset(silence)
	}
	if b.read += n; b.read > maxAnswer {
		err = errLarge
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.exchange.fail(err)
	}
	return n, err
}
