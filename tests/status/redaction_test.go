package status_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// planted is a secret that must not come out of an informer.
const planted = "hunter2-0123456789abcdef"

// leaks returns all texts that a status, an error handler and a log have given away.
func leaks(statuses []informer.Status, errs []error, log logbook) string {
	var all strings.Builder
	for _, s := range statuses {
		fmt.Fprintf(&all, "%+v\n%s\n", s, s.Condition.Message)
	}
	for _, err := range errs {
		fmt.Fprintf(&all, "%v\n", err)
	}
	for _, e := range log.entries() {
		fmt.Fprintf(&all, "%+v\n", e)
	}
	return all.String()
}

// Wherever an error comes from, what it has of secrets is masked in the Status, in the ErrorHandler
// and in the log, and what is in it is found by errors.Is and errors.As all the same.
func TestSecretsInErrorsAreMaskedEverywhere(t *testing.T) {
	reason := errors.New("the reason")
	text := "Get \"https://admin:" + planted + "@db/?access_token=" + planted + "\": Authorization: Bearer " + planted
	secret := fmt.Errorf("%s: %w", text, reason)
	type plant struct {
		config func(w *harness.World, c *informer.InformerConfig)
		// find finds what was planted in the status.
		find func(s informer.Status) error
		// as checks that the cause is found.
		as func(t *testing.T, err error)
	}
	isReason := func(t *testing.T, err error) { require.ErrorIs(t, err, reason) }
	lastError := func(s informer.Status) error { return s.LastError }
	transport := func(err error) func(w *harness.World, c *informer.InformerConfig) {
		return func(w *harness.World, c *informer.InformerConfig) {
			config := w.Config()
			config.Wrap(func(http.RoundTripper) http.RoundTripper {
				return roundTrip(func(*http.Request) (*http.Response, error) { return nil, err })
			})
			factory, made := informer.NewDynamicListerWatcherFactory(config)
			require.NoError(w.T, made)
			c.ListerWatcher = factory.ForResource("", harness.Pods)
		}
	}
	answer := func(w *harness.World, c *informer.InformerConfig, code int) {
		config := w.Config()
		config.Wrap(func(http.RoundTripper) http.RoundTripper {
			return roundTrip(func(r *http.Request) (*http.Response, error) {
				body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":"Unauthorized","message":%q,"details":{"causes":[{"message":%q}]}}`, code, text, text)
				return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
			})
		})
		c.ListerWatcher = harness.ListerOf(w.T, config)
	}
	isUnauthorized := func(t *testing.T, err error) {
		require.ErrorContains(t, err, "xxxxx")
	}
	for name, p := range map[string]plant{
		"transport":   {transport(secret), lastError, isReason},
		"auth plugin": {transport(fmt.Errorf("getting credentials: decoding stdout: {\"token\":\"%s\"}: %w", planted, reason)), lastError, isReason},
		"server":      {func(w *harness.World, c *informer.InformerConfig) { answer(w, c, 401) }, lastError, isUnauthorized},
		"server 500":  {func(w *harness.World, c *informer.InformerConfig) { answer(w, c, 500) }, lastError, isUnauthorized},
		"a watch-list's refusal": {func(w *harness.World, c *informer.InformerConfig) {
			c.ListMode = informer.ListModeWatchList
			config := w.Config()
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTrip(func(r *http.Request) (*http.Response, error) {
					if r.URL.Query().Get("sendInitialEvents") == "" {
						return next.RoundTrip(r)
					}
					body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":422,"reason":"Invalid","message":%q}`, text)
					return &http.Response{StatusCode: 422, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
				})
			})
			c.ListerWatcher = harness.ListerOf(w.T, config)
		}, func(s informer.Status) error { return s.Fallback }, isUnauthorized},
		"ListerWatcher": {func(_ *harness.World, c *informer.InformerConfig) {
			c.ListerWatcher = &cache.ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return nil, secret }}
		}, lastError, isReason},
		"handler": {func(_ *harness.World, c *informer.InformerConfig) {
			c.Handler, c.BatchHandler = nil, informer.BatchHandlerFunc(func(context.Context, []informer.Event) error { return secret })
		}, lastError, func(t *testing.T, err error) {
			isReason(t, err)
			batch := harness.ErrorAs[*informer.BatchError](t, err)
			require.NotEmpty(t, batch.Keys)
		}},
		"panic": {func(_ *harness.World, c *informer.InformerConfig) {
			c.Handler = &harness.Recorder{Before: func(string) { panic(text) }}
		}, lastError, func(t *testing.T, err error) {
			harness.ErrorAs[*informer.PanicError](t, err)
		}},
		"transform": {func(_ *harness.World, c *informer.InformerConfig) {
			c.Transform = func(interface{}) (interface{}, error) { return nil, secret }
		}, func(s informer.Status) error { return s.SkippedError }, isReason},
		"checkpoint": {func(_ *harness.World, c *informer.InformerConfig) {
			c.Checkpoint = namedCheckpoint{&harness.MemoryCheckpoint{OnSave: func(context.Context, int) error { return secret }}}
		}, func(s informer.Status) error { return s.CheckpointError }, func(t *testing.T, err error) {
			isReason(t, err)
			harness.ErrorAs[*informer.UnusedCheckpointError](t, err)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			harness.SurvivePanics(t)
			harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
				w.CreatePods(harness.Keys(3)...)
				var told harness.Failures
				log := newLogbook()
				config := informer.InformerConfig{Handler: &harness.Recorder{}, ErrorHandler: told.Handle, ListerWatcher: w.Lister(), ListMode: informer.ListModePaged}
				p.config(w, &config)
				i := informer.NewResourceVersionInformer("pods", config)
				defer harness.Start(func(ctx context.Context) { i.RunWithContext(klog.NewContext(ctx, log.Logger)) })()
				var statuses []informer.Status
				found := false
				for range 200 {
					time.Sleep(time.Second)
					s := i.Status()
					statuses = append(statuses, s)
					if err := p.find(s); err != nil {
						found = true
						p.as(t, err)
					}
				}
				require.True(t, found)
				all := leaks(statuses, told.Errors(), log)
				require.Contains(t, all, "xxxxx")
				require.NotContains(t, all, planted)
			})
		})
	}
}

// A server, or a proxy before it, may repeat the token of a request in its refusal, in words by
// which no form shows it. It is known by its value. The same word in the answer of another server
// stays.
func TestOwnBearerTokenInARefusalIsMasked(t *testing.T) {
	const token = "opaque"
	for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeWatchList} {
		for own, want := range map[string]string{token: "no session of xxxxxx is known", "another token": "no session of opaque is known"} {
			harness.BubbleRun(t, fmt.Sprint(mode, " ", own), informertest.Options{}, func(t *testing.T, w *harness.World) {
				config := w.Config()
				config.BearerToken = own
				config.Wrap(func(http.RoundTripper) http.RoundTripper {
					return roundTrip(func(r *http.Request) (*http.Response, error) {
						const body = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":401,"reason":"Unauthorized","message":"no session of ` + token + ` is known"}`
						return &http.Response{StatusCode: 401, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
					})
				})
				i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{Handler: &harness.Recorder{}, ListerWatcher: harness.ListerOf(t, config), ListMode: mode})
				defer harness.Start(i.RunWithContext)()
				time.Sleep(time.Second)
				require.Equal(t, informer.ReasonUnauthorized, i.Status().Condition.Reason)
				require.Contains(t, i.Status().Condition.Message, want)
			})
		}
	}
}

// namedCheckpoint has a connection string for its name.
type namedCheckpoint struct{ *harness.MemoryCheckpoint }

func (namedCheckpoint) String() string { return "postgres://mirror:" + planted + "@db/checkpoints" }

// roundTrip is an http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
