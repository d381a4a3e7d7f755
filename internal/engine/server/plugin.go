package server

import (
	"context"
	"crypto/tls"
	"net/http"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/backoff"
)

// refusalsEvery is how often the plugin is run because the server has refused its credentials.
const refusalsEvery = 10 * time.Second

// plugin is the exec plugin of a configuration, which thousands of informers may share. Client-go
// runs it for each request that lacks credentials, one run after the other, and for
// each request that is refused. A plugin bounds that: requests share a failed run until a pause is
// over, and the refusals of a while lead to one run.
//
// A nil plugin does nothing.
type plugin struct {
	// credentials returns those that client-go has, and runs the plugin if they are missing or
	// expired.
	credentials func() (*tls.Certificate, error)
	// turn has room for the one request that asks for credentials. The others wait for it as long
	// as their contexts allow, which client-go's own lock does not regard.
	turn chan struct{}

	// These belong to the request that has the turn.
	failures int
	failed   error
	until    time.Time // when the plugin may be run again after a failure

	mu      sync.Mutex
	refused time.Time // when the plugin was last run because of a refusal
}

// newPlugin returns the plugin of config; nil if it has none that is in use.
func newPlugin(config *rest.Config) (*plugin, error) {
	if config.ExecProvider == nil {
		return nil, nil
	}
	// Client-go keeps one authenticator for all equal plugins.
	transport, err := config.TransportConfig()
	if err != nil || !transport.HasCertCallback() {
		return nil, err
	}
	return &plugin{credentials: transport.TLS.GetCertHolder.GetCert, turn: make(chan struct{}, 1)}, nil
}

// await returns when there are credentials, or why there are none.
func (p *plugin) await(ctx context.Context) error {
	if p == nil {
		return nil
	}
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if time.Now().Before(p.until) {
		return p.failed
	}
	if _, err := p.credentials(); err != nil {
		p.until = time.Now().Add(backoff.RetryDelay(p.failures))
		p.failures++
		p.failed = &api.CredentialError{Attempts: p.failures, Err: err}
		return p.failed
	}
	p.failures, p.failed, p.until = 0, nil, time.Time{}
	return nil
}

// withheld is the status code of a refusal that client-go is not to see.
const withheld = -http.StatusUnauthorized

// install returns config with a transport that withholds refusals from client-go.
func (p *plugin) install(config *rest.Config) *rest.Config {
	if p == nil {
		return config
	}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return withholding{p, next} })
	return config
}

// reveal undoes what a withholding has done.
func (p *plugin) reveal(response *http.Response) {
	if p != nil && response.StatusCode == withheld {
		response.StatusCode = http.StatusUnauthorized
	}
}

// mayRenew reports whether a refusal may lead to a run.
func (p *plugin) mayRenew() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.refused.IsZero() && time.Since(p.refused) < refusalsEvery {
		return false
	}
	p.refused = time.Now()
	return true
}

// withholding is a transport between client-go's credentials and the network. Client-go runs
// the plugin for each 401 that it sees, so it sees one in a while.
type withholding struct {
	plugin *plugin
	next   http.RoundTripper
}

var _ utilnet.RoundTripperWrapper = withholding{}

func (w withholding) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := w.next.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusUnauthorized && !w.plugin.mayRenew() {
		response.StatusCode = withheld
	}
	return response, err
}

// WrappedRoundTripper implements utilnet.RoundTripperWrapper.
func (w withholding) WrappedRoundTripper() http.RoundTripper { return w.next }
