package servers_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/informertest/oracle"
	"github.com/rvinformer/informer/tests/harness"
)

// breaker is a server that ends each watch after an event and a second, so that each watch raises the
// question what state the server is in. Of the known objects, the one that is asked for last is the first
// to be found, if find is "last".
type breaker struct {
	lid
	version          atomic.Int64
	uid              atomic.Int64
	kube, find       string
	listed, watchEnd string
	watchLists       bool
}

func (b *breaker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.count()
	w.Header().Set("Content-Type", "application/json")
	now := b.version.Add(1)
	switch {
	case strings.HasSuffix(r.URL.Path, "/namespaces/kube-system"):
		b.answer(w, b.kube, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"kube-system","uid":"k"}}`)
	case !strings.HasSuffix(r.URL.Path, "/pods"):
		http.NotFound(w, r)
	case harness.IsWatchList(r) && !b.watchLists:
		http.Error(w, "no", http.StatusNotImplemented)
	case harness.IsWatchList(r):
		event(w, watch.Bookmark, map[string]any{"kind": "Pod", "apiVersion": "v1", "metadata": map[string]any{
			"resourceVersion": fmt.Sprint(now), "annotations": map[string]any{"k8s.io/initial-events-end": "true"}}})
		b.watch(w, now)
	case harness.IsWatch(r):
		b.watch(w, now)
	case r.URL.Query().Get("limit") == "1" && b.find == "last":
		items := ""
		if strings.Contains(r.URL.Query().Get("fieldSelector"), "metadata.name=0") {
			items = harness.PodJSON("0", "")
		}
		fmt.Fprintf(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"%d"},"items":[%s]}`, now, items)
	case r.URL.Query().Get("limit") == "1":
		b.answer(w, b.find, fmt.Sprintf(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"%d"},"items":[]}`, now))
	default:
		fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":%q},"items":[%s]}`, b.listVersion(now), b.items())
	}
}

func (b *breaker) listVersion(now int64) string {
	switch b.listed {
	case "older":
		return "5"
	case "none":
		return ""
	}
	return fmt.Sprint(now)
}

// items are three pods, or fewer, so that there is something to delete.
func (b *breaker) items() string {
	var all []string
	most := 3
	if b.find != "last" {
		most = 1 + int(b.uid.Add(1)%3)
	}
	for n := range most {
		all = append(all, harness.PodJSON(fmt.Sprint(n), ""))
	}
	return strings.Join(all, ",")
}

func (b *breaker) answer(w http.ResponseWriter, how, ordinary string) {
	switch how {
	case "ordinary":
		fmt.Fprint(w, ordinary)
	case "odd":
		fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}`)
	case "another":
		fmt.Fprintf(w, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"kube-system","uid":"%d"}}`, b.uid.Add(1))
	default:
		code := map[string]int{"missing": http.StatusNotFound, "forbidden": http.StatusForbidden, "failing": http.StatusInternalServerError, "away": http.StatusServiceUnavailable}[how]
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"details":{"name":"kube-system","kind":"namespaces"}}`, map[int]string{404: "NotFound", 403: "Forbidden", 500: "InternalError", 503: "ServiceUnavailable"}[code], code)
	}
}

func (b *breaker) watch(w http.ResponseWriter, now int64) {
	pod := harness.Pod("a/0", fmt.Sprint(now))
	pod.SetUID("u-0")
	event(w, watch.Modified, pod.Object)
	time.Sleep(time.Second)
	switch b.watchEnd {
	case "expired":
		event(w, watch.Error, apierrors.NewResourceExpired("too old").ErrStatus)
	case "broken":
		event(w, watch.Error, apierrors.NewInternalError(fmt.Errorf("broken")).ErrStatus)
	case "cut":
		panic(http.ErrAbortHandler)
	}
}

// Questions about the namespace kube-system and about known objects count as requests.
func TestRule11QuestionsDoNotHammer(t *testing.T) {
	played := 0
	for _, kube := range []string{"ordinary", "odd", "another", "missing", "forbidden", "failing", "away"} {
		for _, find := range []string{"ordinary", "last", "odd", "forbidden", "failing"} {
			for _, listed := range []string{"newest", "older", "none"} {
				t.Run(fmt.Sprint(kube, "/", find, "/", listed), func(t *testing.T) {
					for _, end := range []string{"ended", "expired", "broken", "cut"} {
						for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeAuto} {
							// The dearest answers are tried with each end, the others with some in turn.
							if played++; find != "last" && played%8 != played/8%8 {
								continue
							}
							b := &breaker{kube: kube, find: find, listed: listed, watchEnd: end, watchLists: mode == informer.ListModeAuto}
							b.version.Store(1000)
							harness.Bubble(t, informertest.Options{Wrap: func(http.Handler) http.Handler { return b }}, func(t *testing.T, w *harness.World) {
								harness.RunningAuto(w, informer.InformerConfig{Handler: &harness.Recorder{}, ListMode: mode, Checkpoint: &harness.MemoryCheckpoint{}})
								time.Sleep(5 * time.Minute)
								if most := b.busiest(); most > oracle.Requests {
									t.Errorf("%s, %s: %d requests in a minute", end, mode, most)
								} else {
									t.Logf("%s, %s: %d", end, mode, most)
								}
							})
						}
					}
				})
			}
		}
	}
	require.False(t, t.Failed())
}
