package servers_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

func isKubeSystem(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/namespaces/kube-system")
}
func isList(r *http.Request) bool { return !harness.IsWatch(r) && !isKubeSystem(r) }

// stalling answers with a code and the beginning of a Status, and then with silence.
func stalling(code int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","message":"no`)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

// flooding answers with a code and text without an end, and counts the bytes that were taken.
func flooding(code int, text string, taken *atomic.Int64) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		for {
			n, err := io.WriteString(w, text)
			taken.Add(int64(n))
			if err != nil {
				return
			}
		}
	}
}

func codeOf(err error) int32 {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return 0
	}
	return answer.Status().Code
}

// An error answer whose body stalls counts as that error after five seconds.
func TestStalledErrorBodyIsAnErrorInTime(t *testing.T) {
	for name, of := range map[string]struct {
		mode  informer.ListMode
		meant func(*http.Request) bool
	}{
		"list":        {informer.ListModePaged, isList},
		"watch":       {informer.ListModePaged, harness.IsWatch},
		"watch-list":  {informer.ListModeWatchList, harness.IsWatchList},
		"kube-system": {informer.ListModePaged, isKubeSystem},
	} {
		for _, code := range []int{302, 403, 410, 500, 502, 503} {
			t.Run(fmt.Sprint(name, " ", code), func(t *testing.T) {
				for _, tls := range []bool{false, true} {
					harness.Bubble(t, informertest.Options{TLS: tls, Wrap: harness.AnswerOnce(of.meant, stalling(code))}, func(t *testing.T, w *harness.World) {
						w.CreatePods("a/1")
						var r harness.Recorder
						var f harness.Failures
						i := harness.Running(w, informer.InformerConfig{ListMode: of.mode, Handler: &r, ErrorHandler: f.Handle, Checkpoint: informer.FileCheckpoint(filepath.Join(t.TempDir(), "checkpoint"))})
						time.Sleep(20 * time.Second)
						require.True(t, i.HasSynced())
						w.CreatePods("a/2")
						synctest.Wait()
						w.RequireState(&r)
						errs := f.Errors()
						switch {
						case name == "watch-list" && (code == 403 || code == 500): // a list takes its place
							require.Empty(t, errs)
							require.EqualValues(t, code, codeOf(i.Status().Fallback), "%v", i.Status().Fallback)
						case name != "kube-system" && code != 302:
							require.NotEmpty(t, errs)
							require.EqualValues(t, code, codeOf(errs[0]), "%v", errs[0])
						}
					})
				}
			})
		}
	}
}

// Of an error answer without an end, compressed or not, little is read, and its text is short.
func TestErrorBodyIsReadToALimit(t *testing.T) {
	bomb := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(http.StatusBadGateway)
		zip, _ := gzip.NewWriterLevel(w, gzip.BestCompression)
		zeroes := make([]byte, 1<<20)
		for range 64 {
			if _, err := zip.Write(zeroes); err != nil {
				return
			}
		}
		_ = zip.Close()
	}
	var taken atomic.Int64
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request){
		"plain":      flooding(http.StatusBadGateway, strings.Repeat("x", 4<<10), &taken),
		"compressed": bomb,
	} {
		harness.BubbleRun(t, name, informertest.Options{Wrap: harness.AnswerOnce(isList, answer)}, func(t *testing.T, w *harness.World) {
			var f harness.Failures
			i := harness.Running(w, informer.InformerConfig{Handler: &harness.Recorder{}, ErrorHandler: f.Handle})
			time.Sleep(time.Minute)
			require.True(t, i.HasSynced())
			err := f.One(t)
			require.True(t, apierrors.IsInternalError(err), "%v", err)
			require.Less(t, len(err.Error()), 8<<10)
			// From Go 1.27 on, net/http reads up to 256 KiB more of a body that is closed.
			require.Less(t, taken.Load(), int64(512<<10), "bytes sent")
		})
	}
}

// A Status with a long text is short in an error, and says all the same what decides.
func TestTextOfAStatusIsCut(t *testing.T) {
	const token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl"
	status := func(message int) []byte {
		s := apierrors.NewTooManyRequests("the token "+token+" is no good"+strings.Repeat(" no", message/3), 7).Status()
		s.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Message: strings.Repeat("x", message/3)}}
		s.Kind, s.APIVersion = "Status", "v1"
		text, err := json.Marshal(s)
		if err != nil {
			panic(err)
		}
		return text
	}
	for name, test := range map[string]struct {
		meant  func(*http.Request) bool
		answer func(http.ResponseWriter)
	}{
		"of a list": {isList, func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = w.Write(status(40 << 10))
		}},
		"of an event": {harness.IsWatch, func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"type":"ERROR","object":%s}`, status(8<<20))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			wrap := harness.AnswerOnce(test.meant, func(w http.ResponseWriter, _ *http.Request) { test.answer(w) })
			harness.Bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *harness.World) {
				var f harness.Failures
				harness.Running(w, informer.InformerConfig{Handler: &harness.Recorder{}, ErrorHandler: f.Handle})
				time.Sleep(time.Minute)
				err := f.One(t)
				require.True(t, apierrors.IsTooManyRequests(err))
				seconds, _ := apierrors.SuggestsClientDelay(err)
				require.Equal(t, 7, seconds)
				require.LessOrEqual(t, len(err.Error()), 2<<10)
				require.Contains(t, err.Error(), "the token xxxxx is no good")
				var answer apierrors.APIStatus
				require.ErrorAs(t, err, &answer)
				require.Less(t, len(fmt.Sprint(answer.Status())), 8<<10)
			})
		})
	}
}

// What a ListerWatcher of others reports is cut and redacted too, and the object of an event that
// should be a Status is not shown.
func TestErrorsOfOthersShowNoCredentials(t *testing.T) {
	secret := harness.Object(harness.Pods, "a/1", "hunter2")
	for name, lw := range map[string]harness.Script{
		"list": {List: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return nil, errors.New("Get https://me:hunter2@host/: EOF" + strings.Repeat(" ", 1<<20))
		}},
		"watch": {List: harness.Listing("1"), Watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return nil, apierrors.NewInternalError(errors.New("https://me:hunter2@host/" + strings.Repeat(" ", 1<<20)))
		}},
		"event": {List: harness.Listing("1"), Watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return harness.Stream(true, watch.Event{Type: watch.Error, Object: secret}), nil
		}},
	} {
		harness.SynctestRun(t, name, func(t *testing.T) {
			var f harness.Failures
			i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lw.LW(), Handler: &harness.Recorder{}, ErrorHandler: f.Handle})
			defer harness.Start(i.RunWithContext)()
			time.Sleep(time.Second)
			errs := f.Errors()
			require.NotEmpty(t, errs)
			for _, err := range append(errs, i.Status().LastError) {
				require.NotContains(t, err.Error(), "hunter2")
				require.LessOrEqual(t, len(err.Error()), 4<<10)
			}
		})
	}
}

// The lists and watches that a factory decodes, for users of client-go's machinery, have the same
// deadlines.
func TestDecodedRequestsHaveTheSameDeadlines(t *testing.T) {
	harness.Bubble(t, informertest.Options{Wrap: harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		stalling(http.StatusForbidden)(w, r)
		return false
	})}, func(t *testing.T, w *harness.World) {
		lw := cache.ToListerWatcherWithContext(w.Lister())
		began := time.Now()
		_, err := lw.ListWithContext(t.Context(), metav1.ListOptions{})
		require.True(t, apierrors.IsForbidden(err), "%v", err)
		_, err = lw.WatchWithContext(t.Context(), metav1.ListOptions{})
		require.True(t, apierrors.IsForbidden(err), "%v", err)
		require.Equal(t, 10*time.Second, time.Since(began))
	})
}
