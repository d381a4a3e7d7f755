package watches_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

func TestRule10ASilentWatchIsStartedAnew(t *testing.T) {
	const bookmark = `{"type":"BOOKMARK","object":{"apiVersion":"v1","kind":"Pod","metadata":{"resourceVersion":"9"}}}` + "\n"
	for _, test := range []struct {
		name         string
		bookmark     string
		stallTimeout time.Duration
		least, most  time.Duration
		resumeAt     string
	}{
		{"after a bookmark", bookmark, 0, 150 * time.Second, 150 * time.Second, "9"},
		{"before one, the time asked for and a margin", "", 0, 15*time.Minute + 30*time.Second, 30*time.Minute + 30*time.Second, "2"},
		{"StallTimeout", "", 42 * time.Second, 42 * time.Second, 42 * time.Second, "2"},
		{"StallTimeout after a bookmark", bookmark, 42 * time.Second, 42 * time.Second, 42 * time.Second, "9"},
	} {
		harness.BubbleRun(t, test.name, informertest.Options{Wrap: silent(test.bookmark)}, func(t *testing.T, w *harness.World) {
			w.CreatePods("a/1")
			var r harness.Recorder
			var f harness.Failures
			i := harness.Settled(w, informer.InformerConfig{Handler: &r, ErrorHandler: f.Handle, StallTimeout: test.stallTimeout})
			w.SetResourceVersion(9) // of the bookmark
			harness.Sleep(test.least - time.Second)
			require.Len(t, w.Requests(), 2)
			harness.Sleep(test.most - test.least + 2*time.Second)
			require.Equal(t, []string{"list limit=500", "watch rv=2", "watch rv=" + test.resumeAt}, w.Verbs())
			harness.ErrorAs[*informer.StallError](t, f.One(t))
			require.NoError(t, i.Status().LastError, "the next watch has started")
		})
	}
}

// A slow handler holds the reading up; that is not the server's silence.
func TestRule10ASlowHandlerIsNoStall(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(1500)...)
		var r harness.Recorder
		r.Before = func(string) { time.Sleep(time.Second) }
		var f harness.Failures
		i := harness.Follow(w, informer.InformerConfig{Handler: &r, ErrorHandler: f.Handle})
		defer harness.Synced(i)()
		for _, k := range harness.Keys(1400) {
			w.UpdatePod(k, "changed")
		}
		time.Sleep(time.Hour)
		w.RequireState(&r)
		require.Empty(t, f.Errors())
	})
}

// The waits between failures grow from 0.8 s to 30 s, and to as much again at random.
func TestRule11Backoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []time.Time
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: harness.Script{List: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				asked = append(asked, time.Now())
				return nil, apierrors.NewInternalError(errors.New("broken"))
			}}.LW(),
			Handler:      &harness.Recorder{},
			ErrorHandler: harness.IgnoreErrors,
		})
		stop := harness.Start(i.RunWithContext)
		time.Sleep(10 * time.Minute)
		require.Equal(t, informer.PhaseBackoff, i.Status().Phase)
		require.ErrorContains(t, i.Status().LastError, "broken")
		stop()
		least := 800 * time.Millisecond
		for n, at := range asked[1:12] {
			wait := at.Sub(asked[n])
			require.GreaterOrEqual(t, wait, least)
			require.LessOrEqual(t, wait, 2*least)
			least = min(2*least, 30*time.Second)
		}
	})
}

func TestRule11WatchFailures(t *testing.T) {
	gr := harness.Pods.GroupResource()
	tooLarge := apierrors.NewTimeoutError("Too large resource version: 10, current: 5", 1)
	tooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	unreadable := apierrors.NewInternalError(errors.New("x"))
	unreadable.ErrStatus.Reason = ""
	unreadable.ErrStatus.Message = `resourceVersion: Invalid value: "10": strconv.ParseUint: parsing "10": invalid syntax` // a kube-apiserver's
	for _, test := range []struct {
		name string
		err  error
		want string // the requests after the failed watch
		wait time.Duration
	}{
		{"410 lists", apierrors.NewResourceExpired("gone"), "list rv= watch rv=10", 0},
		{"429 watches again, after as long as asked", apierrors.NewTooManyRequests("slow down", 70), "watch rv=10", 70 * time.Second},
		{"500 watches again", apierrors.NewInternalError(errors.New("broken")), "watch rv=10", 0},
		{"503 watches again", apierrors.NewServiceUnavailable("starting"), "watch rv=10", 0},
		{"no connection watches again", errors.New("dial tcp: connection refused"), "watch rv=10", 0},
		{"too large lists", tooLarge, "list rv= watch rv=10", 0},
		{"401 watches again", apierrors.NewUnauthorized("unknown"), "watch rv=10", 0},
		{"403 watches again", apierrors.NewForbidden(gr, "", errors.New("no")), "watch rv=10", 0},
		{"404 watches again", apierrors.NewNotFound(gr, ""), "watch rv=10", 0},
		{"400 lists", apierrors.NewBadRequest("what?"), "list rv= watch rv=10", 0},
		{"500 for a version that cannot be read lists", unreadable, "list rv= watch rv=10", 0},
	} {
		harness.SynctestRun(t, test.name, func(t *testing.T) {
			var asked []string
			failed := false
			var at time.Time
			s := harness.Script{
				List: func(_ context.Context, opts metav1.ListOptions) (runtime.Object, error) {
					asked = append(asked, "list rv="+opts.ResourceVersion)
					return harness.List("10", "", harness.Pod("a/1", "7")), nil
				},
				Watch: func(_ context.Context, opts metav1.ListOptions) (watch.Interface, error) {
					asked = append(asked, "watch rv="+opts.ResourceVersion)
					if !failed {
						failed, at = true, time.Now()
						return nil, test.err
					}
					if at != (time.Time{}) {
						require.GreaterOrEqual(t, time.Since(at), test.wait)
						at = time.Time{}
					}
					return watch.NewFake(), nil
				},
			}
			var r harness.Recorder
			var f harness.Failures
			i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: s.LW(), Handler: &r, ErrorHandler: f.Handle})
			stop := harness.Start(i.RunWithContext)
			time.Sleep(70*time.Second + time.Second)
			stop()
			require.Equal(t, test.want, strings.Join(asked[2:], " "))
			errs, started := f.All()
			require.Equal(t, []error{test.err}, errs)
			require.Equal(t, 1, started)
			require.NoError(t, i.Status().LastError)
		})
	}
}

// A server whose versions have no order is replaced, behind its address, by one that cannot read
// them.
func TestVersionsThatAServerCannotReadAreListed(t *testing.T) {
	var next atomic.Pointer[http.Handler]
	wrap := func(handler http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n := next.Load(); n != nil {
				(*n).ServeHTTP(w, r)
				return
			}
			handler.ServeHTTP(w, r)
		})
	}
	harness.Bubble(t, informertest.Options{OpaqueVersions: true, Wrap: wrap}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2")
		var other http.Handler
		second := informertest.NewServer(informertest.Options{InMemory: true, Wrap: func(handler http.Handler) http.Handler {
			other = handler
			return handler
		}})
		defer second.Close()
		for _, key := range []string{"a/1", "a/3"} {
			_, err := second.Create(harness.Pods, harness.Pod(key, ""))
			require.NoError(t, err)
		}
		var r harness.Recorder
		i := harness.Running(w, informer.InformerConfig{Handler: &r, ErrorHandler: harness.IgnoreErrors})
		time.Sleep(time.Minute)
		next.Store(&other)
		w.CloseClientConnections()
		time.Sleep(10 * time.Minute)
		want, err := second.ResourceVersions(harness.Pods, "")
		require.NoError(t, err)
		require.Equal(t, want, r.State())
		require.Equal(t, second.ResourceVersion(), i.Status().ResourceVersion)
	})
}

// An informer that is refused says so, keeps asking, and recovers.
func TestRule11ARefusedInformerRecovers(t *testing.T) {
	var allowed atomic.Bool
	forbid := harness.Refusing(http.StatusForbidden, func(*http.Request) bool { return !allowed.Load() })
	harness.Bubble(t, informertest.Options{Wrap: forbid}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		var r harness.Recorder
		i := harness.Running(w, informer.InformerConfig{Handler: &r, ErrorHandler: harness.IgnoreErrors})
		time.Sleep(10 * time.Minute)
		require.True(t, apierrors.IsForbidden(i.Status().LastError), "%v", i.Status().LastError)
		require.Equal(t, informer.PhaseBackoff, i.Status().Phase)
		require.False(t, i.HasSynced())
		require.Less(t, len(w.Requests()), 30, "no busy loop")
		allowed.Store(true)
		time.Sleep(2 * time.Minute)
		require.True(t, i.HasSynced())
		require.NoError(t, i.Status().LastError)
	})
}

// silent answers watches with a header, perhaps a bookmark, and silence.
func silent(bookmark string) func(http.Handler) http.Handler {
	return harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if !harness.IsWatch(r) {
			return true
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write([]byte(bookmark))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return false
	})
}
