// Package browser tries the status page in a real browser.
package browser

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/statuspage"
)

var (
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	nodes       = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
)

// TestStatusPageInABrowser opens the page of a fleet in which several things are wrong.
func TestStatusPageInABrowser(t *testing.T) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("CHROMIUM IS NOT THERE: the status page was NOT tried in a browser. Install it with make browser-install.")
	}
	page := fleet(t)
	b := browse(t, chromium, page)

	// Informers with something wrong come first.
	b.open("/", 1280, 1000)
	require.Contains(t, b.text("#verdict .verdict"), "3 of 61 informers have something wrong.")
	require.Equal(t, []string{"Forbidden", "ServerUnreachable", "HandlerFailing", "Current"}, b.texts("table.rows tr.row .badge")[:4])
	require.Contains(t, b.text("table.rows tr.message"), "403 by an injected fault")
	b.picture("statuspage-desktop")
	b.dark(true)
	b.picture("statuspage-dark")
	b.dark(false)

	// Links filter, and the form does.
	b.click(`.badge[href*="condition=HandlerFailing"]`)
	require.Equal(t, []string{"HandlerFailing"}, b.texts("table.rows tr.row .badge"))
	require.Contains(t, b.text("table.rows"), "the database is locked")
	b.open("/", 1280, 1000)
	b.send("#informers input[name=q]", "team-7,")
	require.Len(t, b.texts("table.rows tr.row"), 1)
	require.Contains(t, b.text("table.rows"), "namespace team-7")

	// The head of a column sorts, and again the other way round.
	b.open("/", 1280, 1000)
	b.click(`th a[href*="sort=objects"]`)
	require.Equal(t, "200", b.texts("table.rows tr.row td[data-label=objects]")[0])
	b.click(`th a[href*="sort=-objects"]`)
	require.Equal(t, "0", b.texts("table.rows tr.row td[data-label=objects]")[0])

	// Rows come in pages.
	b.open("/", 1280, 1000)
	require.Len(t, b.texts("table.rows tr.row"), 50)
	b.click(`a[rel=next]`)
	require.Len(t, b.texts("table.rows tr.row"), 11)
	b.click(`a[rel=prev]`)
	require.Len(t, b.texts("table.rows tr.row"), 50)

	// One informer, and what it believes of an object.
	b.click(`table.rows tr.row a[href*="/east/_/v1/pods/"]`)
	require.Contains(t, b.text("h1"), "pods")
	require.Contains(t, b.text("#status"), "Resource version")
	b.send("#lookup input[name=key]", "shop/web-7")
	require.Contains(t, b.text("#belief"), "None is acknowledged.")
	require.Contains(t, b.text("#belief"), "The handler has failed")
	b.picture("statuspage-informer")
	b.send("#lookup input[name=key]", "shop/nothing")
	require.Contains(t, b.text("#belief"), "It knows of no object")

	// A telephone shows all of it without scrolling sideways.
	for _, path := range []string{"/", "/?sort=objects", "/lookup?key=shop/web-7", "/informer/east/_/v1/pods/shared~20resource-version?key=shop/web-7"} {
		b.open(path, 390, 844)
		require.LessOrEqual(t, b.width(), 390, path)
	}
	b.open("/", 390, 844)
	b.picture("statuspage-phone")
}

// fleet is a page of informers of three simulated servers, of which one is down and one forbids a resource, and of a handler that fails.
func fleet(t *testing.T) http.Handler {
	page := statuspage.New()
	page.Title = "Fleet"
	f := factory.New()
	page.AddFactory(f)
	t.Cleanup(f.Shutdown)
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	acquire := func(s *informertest.Server, cluster, namespace string, gvr schema.GroupVersionResource, handler informer.HandlerConfig) *informer.HandlerRegistration {
		lws, err := informer.NewDynamicListerWatcherFactory(s.Config())
		require.NoError(t, err)
		i := f.ResourceVersionInformerFor(gvr, factory.InformerOptions{Cluster: cluster, Namespace: namespace}, informer.InformerConfig{
			ListerWatcher: lws.ForResource(namespace, gvr), ErrorHandler: func(*informer.Reflector, error) {},
		})
		h, err := i.Informer.AddHandler(handler)
		require.NoError(t, err)
		i.Start(stop)
		return h
	}
	fine := informer.HandlerConfig{Handler: informer.ResourceEventHandlerFuncs{}}
	east, west, north := server(t), server(t), server(t)
	for i := range 200 {
		_, err := east.Create(pods, &corev1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web-%d", i)},
		})
		require.NoError(t, err)
	}
	broken := acquire(east, "east", "", pods, informer.HandlerConfig{BatchHandler: informer.BatchHandlerFunc(func(context.Context, []informer.Event) error {
		return errors.New("the database is locked")
	})})
	west.Inject(informertest.Fault{Match: informertest.Match{Resource: deployments}, Effect: informertest.Status(http.StatusForbidden)})
	refused := acquire(west, "west", "", deployments, fine)
	last := acquire(north, "north", "", nodes, fine)
	synced(t, last)
	synced(t, acquire(east, "south", "shop", pods, fine))
	for i := range 57 {
		synced(t, acquire(east, "south", fmt.Sprintf("team-%d", i), pods, fine))
	}
	north.Close()
	require.Eventually(t, func() bool {
		return refused.Status().Condition.Reason == informer.ReasonForbidden &&
			broken.Status().Condition.Reason == informer.ReasonHandlerFailing &&
			last.Status().Condition.Reason == informer.ReasonServerUnreachable
	}, time.Minute, 20*time.Millisecond)
	return page
}

func server(t *testing.T) *informertest.Server {
	s := informertest.NewServer(informertest.Options{})
	t.Cleanup(s.Close)
	return s
}

func synced(t *testing.T, h *informer.HandlerRegistration) {
	t.Helper()
	select {
	case <-h.HasSyncedChecker().Done():
	case <-time.After(time.Minute):
		t.Fatalf("%s has not synced: %+v", h.Name(), h.Status().Condition)
	}
}
