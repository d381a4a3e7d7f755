package statuspage

import (
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rvinformer/informer/registry"
)

// Labels tell informers apart on the page. Each may be empty.
type Labels = registry.Labels

// Source is an informer that the page shows.
type Source = registry.Source

// Page is the status page and the health checks. It is an http.Handler, for the root of a server
// or, with http.StripPrefix, for a path below. New makes one; the zero value is one, too.
//
// Its exported fields may be set before it is served, and not after. Its methods may be called at
// any time, from any goroutine.
type Page struct {
	// Registry has what the page shows, with credentials in labels masked. Its methods Add and
	// AddFactory add to it.
	registry.Registry
	// Title is what the page is called. Default: "Informers".
	Title string
	// Grace is how long a watch may make no progress before /livez fails. A watch makes progress
	// with each byte from the server: bookmarks, which come about every minute, included. Default:
	// 35 minutes, because a watch of a DynamicListerWatcherFactory may last for 30 minutes, and a
	// quiet server without bookmarks sends nothing meanwhile. Where a server sends no bookmarks, it
	// must be longer than twice InformerConfig.MinWatchTimeout.
	Grace time.Duration

	draining atomic.Bool
	ready    readiness
}

var _ http.Handler = (*Page)(nil)

// New returns a page that shows nothing yet.
func New() *Page { return &Page{} }

// Of returns a page of all that r has. What is added to the page itself is not in r.
func Of(r *registry.Registry) *Page {
	p := New()
	p.AddFactory(r)
	return p
}

// Drain notes that the process is about to end: /readyz fails from now on, so that it gets no new
// work.
func (p *Page) Drain() { p.draining.Store(true) }

func (p *Page) title() string {
	if p.Title == "" {
		return "Informers"
	}
	return p.Title
}

func (p *Page) grace() time.Duration {
	if p.Grace <= 0 {
		return 35 * time.Minute
	}
	return p.Grace
}

// ServeHTTP serves the page at /, the page of an informer at /informer/… and, by the labels of its
// series in metrics, at /informer?…, and the health checks at /healthz, /livez and /readyz and below.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are served", http.StatusMethodNotAllowed)
		return
	}
	path := "/" + strings.TrimPrefix(r.URL.Path, "/")
	first, rest, below := strings.Cut(path[1:], "/")
	switch {
	case path == "/":
		p.serveOverview(w, r)
	case first == "informer" && below:
		p.serveInformer(w, r, rest)
	case path == "/informer" && r.URL.RawQuery != "":
		p.serveLabelled(w, r)
	case first == "healthz" || first == "livez":
		p.serveChecks(w, r, first, rest, p.liveChecks)
	case first == "readyz":
		p.serveChecks(w, r, first, rest, p.readyChecks)
	default:
		http.NotFound(w, r)
	}
}
