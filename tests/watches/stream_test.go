package watches_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// endless is a body that does not end.
type endless struct{ begin string }

func (e endless) answer(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, e.begin)
	chunk := []byte(strings.Repeat("x", 1<<20))
	for {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// What a server, or what stands before it, may answer to a list or a watch that is
// neither: each is an error that says what it is, and nothing is deleted for it.
func TestWrongAnswers(t *testing.T) {
	html := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<html><body>Please log in</body></html>")
	}
	says := func(contentType, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", contentType)
			_, _ = io.WriteString(w, body)
		}
	}
	cut := func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "100")
		html(w)
	}
	listBegin := `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"`
	eventBegin := `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"`
	for _, test := range []struct {
		name   string
		watch  bool
		answer func(http.ResponseWriter)
		is     error
		says   string
	}{
		{"a page of a proxy for a list", false, html, informer.ErrContentType, `"text/html; charset=utf-8" at byte 0, after 0 items; it begins "<html><body>Please log in`},
		{"a page of a proxy for a watch", true, html, informer.ErrContentType, "Please log in"},
		{"a page that was cut", false, cut, informer.ErrContentType, "Please log in"},
		{"HTML that says it is JSON", false, says("application/json", "<html>"), informer.ErrNotList, "<html>"},
		{"HTML that says it is JSON, for a watch", true, says("application/json", "<html>"), informer.ErrNotWatch, "<html>"},
		{"no content type", false, says("", "<html>"), informer.ErrContentType, `""`},
		{"JSON that says it is protobuf", false, says("application/vnd.kubernetes.protobuf", `{"kind":"PodList"}`), informer.ErrNotList, "not a Kubernetes list"},
		{"a malformed list", false, says("application/json", `{"kind":"PodList","items":[}`), informer.ErrMalformed, "item"},
		{"a malformed watch", true, says("application/json", `{"type":"ADDED","object":{}}]`), informer.ErrMalformed, "'{'"},
		{"a list that was cut", false, says("application/json", listBegin), io.ErrUnexpectedEOF, "list: unexpected EOF at byte"},
		{"a watch that was cut", true, says("application/json", eventBegin), io.ErrUnexpectedEOF, "watch: unexpected EOF at byte"},
		{"an endless object in a list", false, endless{listBegin}.answer, informer.ErrEndless, "endless"},
		{"an endless object in a watch", true, endless{eventBegin}.answer, informer.ErrEndless, "endless"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var answered atomic.Bool
			wrong := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
				if harness.IsWatch(r) == test.watch && answered.CompareAndSwap(false, true) {
					test.answer(w)
					return false
				}
				return true
			})
			harness.Bubble(t, informertest.Options{Wrap: wrong}, func(t *testing.T, w *harness.World) {
				w.CreatePods("a/1")
				storage := informer.NewResourceVersionStorage()
				var r harness.Recorder
				harness.Fill(t, w, storage, &r)
				w.CreatePods("a/2")
				var f harness.Failures
				i := harness.Follow(w, informer.InformerConfig{Handler: &r, Storage: storage, ErrorHandler: f.Handle})
				defer harness.Synced(i)()
				time.Sleep(time.Minute)
				w.CreatePods("a/3")
				harness.Sleep(time.Minute)
				w.RequireState(&r)
				for _, call := range r.Events() {
					require.NotContains(t, call, "delete")
				}
				body := harness.ErrorAs[*informer.BodyError](t, errors.Join(f.Errors()...))
				require.ErrorIs(t, body, test.is)
				require.ErrorContains(t, body, test.says)
				require.Equal(t, test.watch, body.Watch)
				require.NoError(t, i.Status().LastError, "it is over")
			})
		})
	}
}

// What stands in an answer that may have Secrets is in no error, whatever it looks like.
func TestErrorsQuoteNoAnswerOfSecrets(t *testing.T) {
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	for _, odd := range []struct{ contentType, body string }{
		{"text/plain", "hunter2"}, {"application/json", "hunter2"}, {"", "hunter2"}, {"application/yaml", "items:\n- data: hunter2\n"},
	} {
		for _, watch := range []bool{false, true} {
			t.Run(fmt.Sprintf("%q, watch=%t", odd.contentType, watch), func(t *testing.T) {
				wrong := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
					if harness.IsWatch(r) != watch {
						return true
					}
					w.Header()["Content-Type"] = []string{odd.contentType}
					_, _ = io.WriteString(w, odd.body)
					return false
				})
				harness.Bubble(t, informertest.Options{Wrap: wrong}, func(t *testing.T, w *harness.World) {
					text := func(resource schema.GroupVersionResource) string {
						var f harness.Failures
						i := informer.NewResourceVersionInformer(resource.Resource, informer.InformerConfig{
							ListerWatcher: w.Factory().ForResource("", resource), ExampleObject: &informer.RawObject{},
							Handler: &harness.Recorder{}, ErrorHandler: f.Handle, ListMode: informer.ListModePaged,
						})
						defer harness.Settle(i.RunWithContext)()
						time.Sleep(time.Minute)
						return fmt.Sprintf("%v %+v", errors.Join(f.Errors()...), i.Status())
					}
					require.Contains(t, text(harness.Pods), "hunter2")
					require.NotContains(t, text(secrets), "hunter2")
				})
			})
		}
	}
}

// One event of a watch that cannot be read is skipped; the others go on.
func TestAWatchWithAnUnreadableEvent(t *testing.T) {
	event := func(object string) string { return `{"type":"ADDED","object":` + object + `}` + "\n" }
	pod := func(name, rest string) string {
		return `{"kind":"Pod","apiVersion":"v1",` + harness.PodJSON(name, rest)[1:]
	}
	for name, bad := range map[string]string{
		"malformed":    event(`{"metadata":{"namespace":"a","name":"2",,}}`),
		"nameless":     event(`{"kind":"Pod","apiVersion":"v1","metadata":{}}`),
		"unknown type": strings.Replace(event(pod("2", "")), "ADDED", "INVENTED", 1),
		"no object":    `{"type":"ADDED"}` + "\n",
		"oversized":    event(pod("2", `,"data":"`+strings.Repeat("x", 17<<20)+`"`)),
	} {
		t.Run(name, func(t *testing.T) {
			answer := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
				if !harness.IsWatch(r) {
					return true
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, event(pod("1", ""))+bad+event(pod("3", "")))
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				return false
			})
			harness.Bubble(t, informertest.Options{Wrap: answer}, func(t *testing.T, w *harness.World) {
				var r harness.Recorder
				var f harness.Failures
				i := harness.Settled(w, informer.InformerConfig{Handler: &r, ErrorHandler: f.Handle})
				require.Equal(t, []string{"add a/1", "add a/3"}, r.Events())
				require.EqualValues(t, 1, i.Status().Skipped)
				item := harness.ErrorAs[*informer.ItemError](t, f.One(t))
				require.Equal(t, 1, item.Index)
				require.True(t, item.Watch)
			})
		})
	}
}

// A list that sends nothing more is given up, and its page asked for again.
func TestAListThatHangs(t *testing.T) {
	for name, test := range map[string]struct {
		stallTimeout, patience time.Duration
		answered               int
	}{
		"before its head":     {0, 75 * time.Second, -1},
		"after some objects":  {0, 75 * time.Second, 700},
		"with a StallTimeout": {20 * time.Second, 20 * time.Second, 700},
	} {
		t.Run(name, func(t *testing.T) {
			var hung atomic.Bool
			hang := func(server http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if !harness.Continues(r) || !hung.CompareAndSwap(false, true) {
						server.ServeHTTP(w, r)
						return
					}
					if test.answered >= 0 {
						server.ServeHTTP(&stopping{ResponseWriter: w, left: test.answered, ctx: r.Context()}, r)
					}
					<-r.Context().Done()
				})
			}
			harness.Bubble(t, informertest.Options{Wrap: hang}, func(t *testing.T, w *harness.World) {
				w.CreatePods(harness.Keys(10)...)
				var r harness.Recorder
				var f harness.Failures
				i := harness.Follow(w, informer.InformerConfig{Handler: &r, ErrorHandler: f.Handle, WatchListPageSize: 5, StallTimeout: test.stallTimeout})
				began := time.Now()
				defer harness.Synced(i)()
				synctest.Wait()
				require.InDelta(t, test.patience, time.Since(began), float64(3*time.Second))
				w.RequireState(&r)
				require.Len(t, r.Events(), 10, "nothing is told twice")
				stalled := harness.ErrorAs[*informer.StallError](t, f.One(t))
				require.Equal(t, test.patience, stalled.Silence)
				require.Equal(t, []string{"list limit=5", "list limit=5 continue", "list limit=5 continue", "watch rv=11"}, w.Verbs())
			})
		})
	}
}

// stopping writes part of an answer and then nothing.
type stopping struct {
	http.ResponseWriter
	left int
	ctx  context.Context
}

func (s *stopping) Write(b []byte) (int, error) {
	if len(b) > s.left {
		_, _ = s.ResponseWriter.Write(b[:s.left])
		_ = http.NewResponseController(s.ResponseWriter).Flush()
		<-s.ctx.Done()
		panic(http.ErrAbortHandler)
	}
	s.left -= len(b)
	return s.ResponseWriter.Write(b)
}

// Compression is asked for as the client's configuration says, also over plain HTTP.
func TestCompression(t *testing.T) {
	for disabled, accepted := range map[bool]string{false: "gzip", true: "identity"} {
		for _, opts := range []informertest.Options{{}, {TLS: true}} {
			t.Run(fmt.Sprintf("disabled %v, TLS %v", disabled, opts.TLS), func(t *testing.T) {
				server := informertest.NewServer(opts)
				defer server.Close()
				w := &harness.World{T: t, Server: server}
				for _, key := range harness.Keys(50) {
					_, err := w.Create(harness.Pods, harness.Object(harness.Pods, key, strings.Repeat("x", 5000))) // more than 128 KiB
					require.NoError(t, err)
				}
				config := w.Config()
				config.DisableCompression = disabled
				defer closeIdle(t, config)
				var r harness.Recorder
				i := harness.Follow(w, informer.InformerConfig{ListerWatcher: harness.ListerOf(t, config), Handler: &r})
				stop := harness.Synced(i)
				stop()
				w.RequireState(&r)
				for _, request := range w.Requests() {
					require.Equal(t, accepted, request.AcceptEncoding)
				}
			})
		}
	}
}

// Over TLS, everything goes through two HTTP/2 connections: one for lists, and one for watches.
func TestOverHTTP2(t *testing.T) {
	var mu sync.Mutex
	protos, remotes := map[int]int{}, map[string]bool{}
	note := harness.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		protos[r.ProtoMajor]++
		remotes[r.RemoteAddr] = true
		return true
	})
	server := informertest.NewServer(informertest.Options{TLS: true, Wrap: note})
	defer server.Close()
	w := &harness.World{T: t, Server: server}
	w.CreatePods(harness.Keys(100)...)
	factory := w.Factory()
	defer closeIdle(t, w.Config())
	var recorders [3]harness.Recorder
	for n := range recorders {
		i := harness.Follow(w, informer.InformerConfig{ListerWatcher: factory.ForResource("", harness.Pods), Handler: &recorders[n], WatchListPageSize: 30})
		defer harness.Synced(i)()
	}
	w.UpdatePod("a/0001", "changed")
	for n := range recorders {
		require.Eventually(t, func() bool { return len(recorders[n].Events()) == 101 }, time.Minute, time.Millisecond)
	}
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, map[int]int{2: 15}, protos)
	require.Len(t, remotes, 2)
}

// A connection whose other end has vanished without a word is noticed by
// the health checks of HTTP/2, long before the watch has been silent for too long.
func TestHealthChecksOfHTTP2(t *testing.T) {
	t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "1")
	t.Setenv("HTTP2_PING_TIMEOUT_SECONDS", "1")
	server := informertest.NewServer(informertest.Options{TLS: true})
	defer server.Close()
	w := &harness.World{T: t, Server: server}
	w.CreatePods("a/1")
	config := w.Config()
	var cable cable
	defer cable.mend()
	config.Dial = cable.dial
	var r harness.Recorder
	var f harness.Failures
	i := harness.Follow(w, informer.InformerConfig{ListerWatcher: harness.ListerOf(t, config), Handler: &r, ErrorHandler: f.Handle})
	defer harness.Start(i.RunWithContext)()
	require.Eventually(t, func() bool { return i.HasSynced() && strings.Contains(fmt.Sprint(w.Verbs()), "watch") }, time.Minute, time.Millisecond)
	cable.cut()
	w.CreatePods("a/2")
	require.Eventually(t, func() bool { return len(r.Events()) == 2 }, time.Minute, 10*time.Millisecond, "a new connection is made")
	w.RequireState(&r)
	require.NotEmpty(t, f.Errors())
}

// cable makes connections that can be cut so that neither end notices.
type cable struct {
	mu    sync.Mutex
	conns []*wiredConn
}

func (c *cable) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	wired := &wiredConn{Conn: conn, gone: make(chan struct{}), closed: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = append(c.conns, wired)
	return wired, nil
}

func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		close(conn.gone)
	}
	c.conns = nil
}

func (c *cable) mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		conn.Close()
	}
}

type wiredConn struct {
	net.Conn
	gone, closed chan struct{}
	once         sync.Once
}

func (c *wiredConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	select {
	case <-c.gone: // whatever came, it did not
		<-c.closed
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (c *wiredConn) Write(b []byte) (int, error) {
	select {
	case <-c.gone:
		return len(b), nil
	default:
		return c.Conn.Write(b)
	}
}

func (c *wiredConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// closeIdle is called at the end of a test over real connections.
func closeIdle(t *testing.T, config *rest.Config) {
	t.Helper()
	client, err := rest.HTTPClientFor(config) // the transport is shared
	require.NoError(t, err)
	client.CloseIdleConnections()
}

// A deletion that cannot be read is found by the list that follows the watch.
func TestAnUnreadableDeletion(t *testing.T) {
	spoil := func(server http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			server.ServeHTTP(&spoiling{ResponseWriter: w}, r)
		})
	}
	for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeWatchList} {
		harness.Bubble(t, informertest.Options{Wrap: spoil}, func(t *testing.T, w *harness.World) {
			w.CreatePods("a/1", "a/2")
			var r harness.Recorder
			var f harness.Failures
			i := harness.Settled(w, informer.InformerConfig{Handler: &r, ErrorHandler: f.Handle, ListMode: mode})
			w.DeletePods("a/1")
			w.CreatePods("a/3")
			synctest.Wait()
			require.Contains(t, r.State(), "a/1")
			require.Contains(t, r.State(), "a/3", "the rest goes on")
			require.EqualValues(t, 1, i.Status().Skipped)
			time.Sleep(31 * time.Minute)
			w.RequireState(&r)
			require.Contains(t, r.Events(), "delete a/1 unknown")
		})
	}
}

// spoiling makes each deletion of a watch unreadable.
type spoiling struct{ http.ResponseWriter }

func (s *spoiling) Write(b []byte) (int, error) {
	if _, err := s.ResponseWriter.Write(bytes.ReplaceAll(b, []byte(`"DELETED","object":{`), []byte(`"DELETED","object":{,`))); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (s *spoiling) Unwrap() http.ResponseWriter { return s.ResponseWriter }
