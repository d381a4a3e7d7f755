package servers_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// Informers of one server that start together open one connection over HTTP/2 for lists, and one
// for watches, and not one each, to close all but one.
func TestInformersThatStartTogetherShareTheirFirstConnection(t *testing.T) {
	harness.Bubble(t, informertest.Options{TLS: true}, func(t *testing.T, w *harness.World) {
		config, dials := harness.CountDials(w.Config())
		factory, err := informer.NewDynamicListerWatcherFactory(config)
		require.NoError(t, err)
		for range 5 {
			i := harness.Follow(w, informer.InformerConfig{ListerWatcher: factory.ForResource("", harness.Pods), Handler: &harness.Recorder{}})
			defer harness.Start(i.RunWithContext)()
			defer func() { require.True(t, i.HasSynced()) }()
		}
		time.Sleep(time.Minute)
		require.EqualValues(t, 2, dials.Load())
	})
}

// A first request that gets no connection holds the others up for a second at most, and one
// that fails not at all.
func TestFirstConnectionThatIsNotMadeBlocksNoOtherForLong(t *testing.T) {
	for name, most := range map[string]time.Duration{"fails": 0, "hangs": time.Second} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			config, over := w.Config(), make(chan struct{})
			dial, dials := config.Dial, atomic.Int32{}
			config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				if dials.Add(1) > 1 {
					return dial(ctx, network, address)
				}
				if name == "hangs" {
					<-over
				}
				return nil, &net.OpError{Op: "dial", Err: context.DeadlineExceeded}
			}
			lw := cache.ToListerWatcherWithContext(harness.ListerOf(t, config))
			var first sync.WaitGroup
			first.Go(func() { _, _ = lw.ListWithContext(t.Context(), metav1.ListOptions{}) })
			synctest.Wait()
			began := time.Now()
			_, err := lw.ListWithContext(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			require.Equal(t, most, time.Since(began))
			close(over)
			first.Wait()
		})
	}
}

// A transport that tells nothing of its connections holds the others up for a second at
// most, however long it takes to answer.
func TestTransportWithoutConnectionsBlocksNoOtherForLong(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		config, asked := w.Config(), atomic.Int32{}
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(request *http.Request) (*http.Response, error) {
				if asked.Add(1) == 1 {
					<-request.Context().Done()
					return nil, request.Context().Err()
				}
				return next.RoundTrip(request)
			})
		})
		ctx, cancel := context.WithCancel(t.Context())
		lw := cache.ToListerWatcherWithContext(harness.ListerOf(t, config))
		failed := make(chan error, 1)
		go func() {
			_, err := lw.ListWithContext(ctx, metav1.ListOptions{})
			failed <- err
		}()
		synctest.Wait()
		began := time.Now()
		for range 2 {
			_, err := lw.ListWithContext(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
		}
		require.Equal(t, time.Second, time.Since(began))
		cancel()
		require.Error(t, <-failed)
	})
}

// A transport of the caller's keeps the answer of a watch, which the informer does not keep whole.
// The transport still finds the server's address there, and may set a header.
func TestTransportMayUseTheAnswerOfAWatch(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		config := w.Config()
		var mu sync.Mutex
		var kept []*http.Response
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(request *http.Request) (*http.Response, error) {
				answer, err := next.RoundTrip(request)
				if err == nil && request.URL.Query().Has("watch") {
					mu.Lock()
					kept = append(kept, answer)
					mu.Unlock()
				}
				return answer, err
			})
		})
		i := harness.Running(w, informer.InformerConfig{ListerWatcher: harness.ListerOf(t, config), Handler: &harness.Recorder{}})
		harness.Sleep(time.Second)
		require.True(t, i.HasSynced())
		mu.Lock()
		defer mu.Unlock()
		require.NotEmpty(t, kept)
		for _, answer := range kept {
			require.Contains(t, config.Host, answer.Request.URL.Host)
			require.NotEmpty(t, answer.Request.URL.Host)
			answer.Header.Set("X-Seen", "yes")
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
