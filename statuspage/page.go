package statuspage

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/internal/subject"
)

// Labels tell informers apart on the page. Each may be empty.
type Labels = subject.Labels

// Source is an informer that the page shows: an informer.ResourceVersionInformer, an
// *informer.SharedResourceVersionInformer, an *informer.HandlerRegistration, an
// *objectcache.Informer, or anything else with a Status. It may also have
//
//	Lookup(key string) (informer.Belief, bool)
//	Handlers() []*informer.HandlerRegistration
//
// Then the page answers what the informer believes of an object, and shows its handlers.
type Source interface{ Status() informer.Status }

// Page is the status page and the health checks. It is an http.Handler, for the root of a server
// or, with http.StripPrefix, for a path below. New makes one; the zero value is one, too.
//
// Its exported fields may be set before it is served, and not after. Its methods may be called at
// any time, from any goroutine.
type Page struct {
	// Title is what the page is called. Default: "Informers".
	Title string
	// Grace is how long a watch may make no progress before /livez fails. A watch makes progress
	// with each byte from the server: bookmarks, which come about every minute, included. Default:
	// 15 minutes, which is longer than a quiet watch without bookmarks may last by default. It must
	// be longer than twice InformerConfig.MinWatchTimeout where a server sends no bookmarks.
	Grace time.Duration

	draining atomic.Bool
	ready    readiness

	mu sync.Mutex
	// registrations are in the order of Add and AddFactory.
	registrations []*registration
}

// registration is what one call of Add or AddFactory has added: a source, or all informers of a
// factory.
type registration struct {
	labels  Labels
	source  Source
	factory *factory.Factory
}

var _ http.Handler = (*Page)(nil)

// New returns a page that shows nothing yet.
func New() *Page { return &Page{} }

// Add adds an informer to the page until remove is called. Several may have the same labels. It
// panics on a nil source.
func (p *Page) Add(labels Labels, source Source) (remove func()) {
	if source == nil {
		panic("statuspage: Add of no source")
	}
	return p.add(&registration{labels: masked(labels), source: source})
}

// AddFactory adds all informers of a factory to the page, those that it will have included, until
// remove is called. It panics on nil.
func (p *Page) AddFactory(f *factory.Factory) (remove func()) {
	if f == nil {
		panic("statuspage: AddFactory of no factory")
	}
	return p.add(&registration{factory: f})
}

func (p *Page) add(r *registration) (remove func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.registrations = append(p.registrations, r)
	return func() { p.remove(r) }
}

func (p *Page) remove(r *registration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.registrations = slices.DeleteFunc(p.registrations, func(other *registration) bool { return other == r })
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
		return 15 * time.Minute
	}
	return p.Grace
}

// ServeHTTP serves the page at /, the page of an informer at /informer/…, what is believed of an
// object at /lookup, and the health checks at /healthz, /livez and /readyz and below.
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
	case path == "/lookup":
		p.serveLookup(w, r)
	case first == "healthz" || first == "livez":
		p.serveChecks(w, r, first, rest, p.liveChecks)
	case first == "readyz":
		p.serveChecks(w, r, first, rest, p.readyChecks)
	default:
		http.NotFound(w, r)
	}
}
