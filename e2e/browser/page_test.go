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
	b.send("#informers input[name=q]", "team-7)")
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

	// One informer.
	b.click(`table.rows tr.row a[href*="/east/_/v1/pods/"]`)
	require.Contains(t, b.text("h1"), "pods")
	require.Contains(t, b.text("#status"), "Resource version")
	require.Contains(t, b.text("#verdict"), "the database is locked")
	b.picture("statuspage-informer")

	// A telephone shows all of it without scrolling sideways.
	for _, path := range []string{"/", "/?sort=objects", "/informer/east/_/v1/pods/shared~20resource-version"} {
		b.open(path, 390, 844)
		require.LessOrEqual(t, b.width(), 390, path)
	}
	b.open("/", 390, 844)
	b.picture("statuspage-phone")

	// On a smaller one the heads of columns keep apart.
	b.open("/", 360, 740)
	require.GreaterOrEqual(t, b.number(leastGap), 6.0)

	// All text can be read, in both themes.
	for _, dark := range []bool{false, true} {
		b.dark(dark)
		for _, path := range []string{"/", "/?level=wrong&q=shop", "/informer/east/_/v1/pods/shared~20resource-version"} {
			b.open(path, 1280, 1000)
			require.GreaterOrEqual(t, b.number(leastContrast), 4.5, "%s, dark: %v", path, dark)
		}
	}
}

// leastGap is how many pixels are between the texts of two heads in a row, at least, where names
// are long.
const leastGap = `(() => {
	document.querySelectorAll("td:first-child a").forEach(a => a.textContent = "customresourcedefinitions.apiextensions.k8s.io");
	const box = head => { const r = document.createRange(); r.selectNodeContents(head); return r.getBoundingClientRect() };
	let least = Infinity;
	for (const row of document.querySelectorAll("thead tr")) {
		const boxes = Array.from(row.children, box).filter(b => b.width > 0);
		for (let i = 1; i < boxes.length; i++) least = Math.min(least, boxes[i].left - boxes[i - 1].right);
	}
	return least;
})()`

// leastContrast is the least contrast of a text with what is behind it, after WCAG 2.
const leastContrast = `(() => {
	const parts = color => color.match(/[\d.]+/g).map(Number);
	const seen = color => { const p = parts(color); return p.length < 4 || p[3] > 0 };
	const light = color => {
		const [r, g, b] = parts(color).slice(0, 3).map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const behind = e => { while (e.parentElement && !seen(getComputedStyle(e).backgroundColor)) e = e.parentElement; return getComputedStyle(e).backgroundColor };
	let least = Infinity;
	for (const e of document.body.querySelectorAll("*")) {
		if (!Array.from(e.childNodes).some(n => n.nodeType == Node.TEXT_NODE && n.data.trim())) continue;
		const [a, b] = [light(getComputedStyle(e).color), light(behind(e))];
		least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
	}
	return least;
})()`

// fleet is a page of informers of three simulated servers. One server is down, one forbids a
// resource, and the handler of the third fails.
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
