package statuspage_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/statuspage"
)

// The JSON of both kinds of page is that of testdata, which programs rely on: a member may be
// added, and none changed. To write it anew, set UPDATE_GOLDEN.
func TestJSONIsStable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, now := statuspage.New(), time.Now()
		page.Title = "Fleet"
		time.Sleep(time.Minute)
		s := unreachable(now)
		s.Queued, s.QueuedBytes, s.OldestQueued = 3, 4096, now.Add(-time.Second)
		s.Checkpoint, s.CheckpointTime, s.ResumedFrom, s.ResumedTime = "/var/lib/pods", now, "6", now
		s.SkippedError, s.Fallback, s.CheckpointError = s.LastError, s.LastError, s.LastError
		s.LastAudit = &informer.AuditResult{}
		page.Add(ofPods("east"), with(s))
		page.Add(statuspage.Labels{Group: "apps", Version: "v1", Resource: "deployments"}, with(listing(now)))
		page.Drain()
		for name, path := range map[string]string{"overview": "/?format=json&limit=1", "informer": "/informer/east/_/v1/pods/dynamic?format=json"} {
			got, file := get(t, page, http.StatusOK, path), filepath.Join("testdata", name+".json")
			if os.Getenv("UPDATE_GOLDEN") != "" {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			requireWithin(t, name, decoded(t, string(want)), decoded(t, got))
		}
	})
}

func decoded(t *testing.T, text string) (v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &v))
	return v
}

// requireWithin requires got to be want, but for members that want does not have.
func requireWithin(t *testing.T, place string, want, got any) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		members, ok := got.(map[string]any)
		require.True(t, ok, place)
		for name, value := range want {
			require.Contains(t, members, name, place)
			requireWithin(t, place+"."+name, value, members[name])
		}
	case []any:
		items, ok := got.([]any)
		require.True(t, ok, place)
		require.Len(t, items, len(want), place)
		for i := range want {
			requireWithin(t, place+"[]", want[i], items[i])
		}
	default:
		require.Equal(t, want, got, place)
	}
}

// Whatever a Status has is on the page, also what it will have.
func TestPageOfAnInformerHasAllOfItsStatus(t *testing.T) {
	page := statuspage.New()
	page.Add(ofPods("east"), with(unreachable(time.Now())))
	html := strings.ToLower(get(t, page, http.StatusOK, "/informer/east/_/v1/pods/dynamic"))
	for _, f := range reflect.VisibleFields(reflect.TypeFor[informer.Status]()) {
		if f.Name == "Condition" {
			continue // on top
		}
		text := "<dt>"
		for i, r := range f.Name {
			if i > 0 && r >= 'A' && r <= 'Z' {
				text += " "
			}
			text += strings.ToLower(string(r))
		}
		require.Contains(t, html, text+"</dt>")
	}
	require.Contains(t, html, "serverunreachable")
	require.Contains(t, html, "look at the server and the network")
}

func TestEveryConditionHasAdvice(t *testing.T) {
	for _, reason := range []informer.ConditionReason{
		informer.ReasonStopped, informer.ReasonStopping, informer.ReasonUnauthorized, informer.ReasonForbidden, informer.ReasonNotFound, informer.ReasonServerUnreachable,
		informer.ReasonThrottled, informer.ReasonStalled, informer.ReasonFailing, informer.ReasonExpiredLoop, informer.ReasonHandlerFailing,
		informer.ReasonHandlerSlow, informer.ReasonBudgetFull, informer.ReasonListing, informer.ReasonCheckpointFailing, informer.ReasonNotStarted,
		informer.ReasonUndecodableObjects, informer.ReasonNotWatchable, informer.ReasonCurrent,
	} {
		page, s := statuspage.New(), current(time.Now())
		s.Condition.Reason = reason
		page.Add(ofPods("east"), with(s))
		var d struct{ Advice string }
		require.NoError(t, json.Unmarshal([]byte(get(t, page, http.StatusOK, "/informer/east/_/v1/pods/dynamic?format=json")), &d))
		require.NotEmpty(t, d.Advice, reason)
	}
}

func TestSameLabelsAreNumbered(t *testing.T) {
	page, now := statuspage.New(), time.Now()
	page.Add(ofPods("east"), with(current(now)))
	page.Add(ofPods("east"), with(listing(now)))
	require.Contains(t, get(t, page, http.StatusOK, "/informer/east/_/v1/pods/dynamic"), "Current")
	require.Contains(t, get(t, page, http.StatusOK, "/informer/east/_/v1/pods/dynamic~~2"), "Listing")
	for _, path := range []string{"dynamic~~3", "dynamic~~1", "dynamic~~", "dynamic~~x", "dynamic~4", "dynamic~zz", ""} {
		get(t, page, http.StatusNotFound, "/informer/east/_/v1/pods/"+path)
	}
}

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// A page of a factory has informers of all kinds, and forgets the factory.
func TestPageOfAFactory(t *testing.T) {
	server := informertest.NewServer(informertest.Options{})
	defer server.Close()
	_, err := server.Create(pods, &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}})
	require.NoError(t, err)
	lws, err := informer.NewDynamicListerWatcherFactory(server.Config())
	require.NoError(t, err)
	f, page := factory.New(), statuspage.New()
	defer f.Shutdown()
	remove := page.AddFactory(f)
	stop := make(chan struct{})
	defer close(stop)

	shared := f.ResourceVersionInformerFor(pods, factory.InformerOptions{Cluster: "east"}, informer.InformerConfig{ListerWatcher: lws.ForResource("", pods)})
	h, err := shared.Informer.AddEventHandler(informer.ResourceEventHandlerFuncs{})
	require.NoError(t, err)
	ordinary := f.InformerFor(pods, factory.InformerOptions{Cluster: "west"}, func() cache.SharedIndexInformer {
		return cache.NewSharedIndexInformer(lws.ForResource("", pods), &unstructured.Unstructured{}, 0, nil)
	})
	require.Contains(t, get(t, page, http.StatusInternalServerError, "/readyz"), "NotStarted")
	shared.Start(stop)
	ordinary.Start(stop)
	<-h.HasSyncedChecker().Done()
	require.True(t, cache.WaitForCacheSync(stop, ordinary.Informer.HasSynced, shared.Informer.HasSynced))
	require.Eventually(t, func() bool { return page.Ready(nil) == nil }, time.Minute, 5*time.Millisecond)
	require.NoError(t, page.Live(nil))

	a := ask(t, page, "?sort=cluster")
	require.Equal(t, []string{"east", "west"}, a.clusters())
	for _, i := range a.Items {
		require.Contains(t, get(t, page, http.StatusOK, "/informer/"+i.Path), "Leases")
	}
	require.Contains(t, get(t, page, http.StatusOK, "/informer/"+a.Items[0].Path), h.Name())
	remove()
	require.Empty(t, ask(t, page, "").Items)
}

// The page shows how far a redelivery has come.
func TestPageShowsARedelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := statuspage.New()
		s := unreachable(time.Now())
		s.Redelivery = &informer.RedeliveryStatus{
			RedeliverOptions: informer.RedeliverOptions{Keys: []string{"shop/db", "shop/web"}, PerSecond: 7}, Started: time.Now(), Done: 41, Position: "shop/db",
		}
		page.Add(ofPods("east"), with(s))
		for _, format := range []string{"", "?format=json"} {
			text := get(t, page, http.StatusOK, "/informer/east/_/v1/pods/dynamic"+format)
			for _, part := range []string{"edelivery", "shop/db", "shop/web", "41"} {
				require.Contains(t, text, part)
			}
		}
	})
}
