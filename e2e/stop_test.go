package e2e

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/e2e/cluster"
)

// moments are those at which an informer is told to stop. Each installs, before
// the informer runs, what calls stop.
var moments = []struct {
	name    string
	install func(seen *tap, m *mirror, config *informer.InformerConfig, stop func())
}{
	{"before Run", func(_ *tap, _ *mirror, _ *informer.InformerConfig, stop func()) {
		stop()
	}},
	{"while the first request is not answered", func(seen *tap, _ *mirror, _ *informer.InformerConfig, stop func()) {
		seen.before = func(ctx context.Context, _ exchange) error {
			stop()
			return context.Cause(afterEnd(ctx))
		}
	}},
	{"when the first answer began", func(seen *tap, _ *mirror, _ *informer.InformerConfig, stop func()) {
		seen.after = func(exchange) { stop() }
	}},
	{"while an answer has stalled", func(seen *tap, _ *mirror, _ *informer.InformerConfig, stop func()) {
		seen.reading = func(ctx context.Context, _ exchange, n int64) {
			if n > 10<<10 {
				stop()
				afterEnd(ctx)
			}
		}
	}},
	{"at the first object", atEvent(func(n int, _ event) bool { return n == 1 })},
	{"in the middle of the list", atEvent(func(n int, _ event) bool { return n == stopPods/2 })},
	{"at the last object of the list", atEvent(func(n int, _ event) bool { return n == stopPods })},
	{"in the middle of the watch", atEvent(func(n int, e event) bool { return e.kind != added })},
	{"before a page", func(seen *tap, _ *mirror, _ *informer.InformerConfig, stop func()) {
		// Those that do not ask for pages are told so before they watch.
		seen.before = func(_ context.Context, e exchange) error {
			if e.isPage() || e.isWatch() {
				stop()
			}
			return nil
		}
	}},
	{"while waiting to try again", func(seen *tap, _ *mirror, config *informer.InformerConfig, stop func()) {
		seen.before = func(context.Context, exchange) error { return errors.New("no way through") }
		config.ErrorHandler = func(*informer.Reflector, error) { stop() }
	}},
}

const stopPods = 300

// afterEnd returns ctx when it has ended.
func afterEnd(ctx context.Context) context.Context {
	<-ctx.Done()
	return ctx
}

// atEvent stops at the first event for which when is true.
func atEvent(when func(n int, e event) bool) func(*tap, *mirror, *informer.InformerConfig, func()) {
	return func(_ *tap, m *mirror, _ *informer.InformerConfig, stop func()) {
		m.hook = func(n int, e event) {
			if when(n, e) {
				stop()
			}
		}
	}
}

// Whenever an informer is stopped, Run returns, nothing that it started is left,
// and nothing is told afterwards. What was told until then is in the storage,
// so that the next informer needs to tell only the rest.
func TestStopAtAnyMoment(t *testing.T) {
	ctx := testContext(t)
	c := usual.Get(t)
	pods := newPods(ctx, t, c, stopPods)
	for _, setting := range sample(settings, 3) {
		for _, moment := range moments {
			t.Run(setting.name+"/"+moment.name, func(t *testing.T) {
				ctx := testContext(t)
				storage := informer.NewResourceVersionStorage()
				transport := newTransport(t, c)
				present := goleak.IgnoreCurrent()

				seen, m := &tap{}, newMirror(nil)
				config := setting.config
				config.Storage = storage
				config.WatchListPageSize = 100
				stopCtx, stop := context.WithCancel(ctx)
				defer stop()
				moment.install(seen, m, &config, stop)
				config.ListerWatcher = source(t, seen.install(configOver(transport, c)), pods)
				s := start(stopCtx, t, m, config)
				// Changes bring the moment that comes in the watch.
				for stopCtx.Err() == nil {
					touch(ctx, t, pods)
				}
				s.awaitReturn(t)
				told := len(m.all())
				requireNoLeak(t, transport, present)
				require.Len(t, m.all(), told, "nothing is told after Run has returned")
				require.Empty(t, m.complaints())
				requireStored(t, storage, m.known())

				next := setting.config
				next.Storage = storage
				next.ListerWatcher = source(t, c.Config(), pods)
				start(ctx, t, newMirror(m.known()), next).requireEqual(ctx, t, pods)
			})
		}
	}
}

// Run stops with a channel as RunWithContext does with a context.
func TestStopThroughAChannel(t *testing.T) {
	ctx := testContext(t)
	c := usual.Get(t)
	pods := newPods(ctx, t, c, 50)
	transport := newTransport(t, c)
	present := goleak.IgnoreCurrent()
	m := newMirror(nil)
	s := newSession(t, m, informer.InformerConfig{ListerWatcher: source(t, configOver(transport, c), pods)})
	stopCh := make(chan struct{})
	s.cancel, s.done = func() {}, make(chan struct{})
	go func() {
		defer close(s.done)
		s.informer.Run(stopCh)
	}()
	s.waitSynced(ctx, t)
	close(stopCh)
	s.awaitReturn(t)
	requireNoLeak(t, transport, present)
	requireSame(t, versions(ctx, t, pods), m.known())
}

// newTransport returns a transport whose connections belong to one informer
// alone: those that client-go makes are shared by all clients of a server. Its
// HTTP/2 is the one of net/http, client-go's the one of golang.org/x/net, which
// tells them apart.
func newTransport(t *testing.T, c *cluster.Cluster) *http.Transport {
	t.Helper()
	tls, err := rest.TLSConfigFor(c.Config())
	require.NoError(t, err)
	transport := &http.Transport{TLSClientConfig: tls, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// configOver returns a configuration whose requests go through the transport.
func configOver(transport *http.Transport, c *cluster.Cluster) *rest.Config {
	config := c.Config()
	config.TLSClientConfig = rest.TLSClientConfig{}
	config.Transport = transport
	return config
}

// othersConnections belong to the clients that the test itself writes and reads
// with, and come and go as those like.
var othersConnections = goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run")

// requireNoLeak waits until no goroutine is left but those that were present.
// A connection is idle, and can be closed, only a moment after the last request
// on it was given up.
func requireNoLeak(t *testing.T, transport *http.Transport, present goleak.Option) {
	t.Helper()
	var leaks error
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, stopTimeout, true, func(context.Context) (bool, error) {
		transport.CloseIdleConnections()
		leaks = goleak.Find(present, othersConnections)
		return leaks == nil, nil
	})
	require.NoError(t, leaks)
	require.NoError(t, err)
}
