package statuspage

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rvinformer/informer"
)

// overview is the first screen, and what is its JSON.
type overview struct {
	Title    string    `json:"title"`
	Time     time.Time `json:"time"`
	Draining bool      `json:"draining"`
	Total    total     `json:"total"`
	// Conditions has those that some informer is in, the worst first.
	Conditions []conditionCount `json:"conditions"`
	// Clusters and Resources have those first in which most is wrong.
	Clusters  []group `json:"clusters"`
	Resources []group `json:"resources"`
	// Matching is how many informers the query selects, and Items are those of this page of rows.
	Matching int    `json:"matching"`
	Items    []item `json:"items"`
	// Next is the query for the next page of rows.
	Next string `json:"next,omitempty"`

	Query query `json:"-"`
	// Pages is how many pages of rows there are, and MoreClusters and MoreResources how many groups
	// are left out.
	Pages         int `json:"-"`
	MoreClusters  int `json:"-"`
	MoreResources int `json:"-"`
}

// total sums up all informers.
type total struct {
	Informers   int   `json:"informers"`
	Synced      int   `json:"synced"`
	Wrong       int   `json:"wrong"`
	Slow        int   `json:"slow"`
	Busy        int   `json:"busy"`
	Idle        int   `json:"idle"`
	Well        int   `json:"well"`
	Objects     int   `json:"objects"`
	StoredBytes int64 `json:"storedBytes"`
	Queued      int   `json:"queued"`
	QueuedBytes int64 `json:"queuedBytes"`
}

type conditionCount struct {
	Reason    informer.ConditionReason `json:"reason"`
	Level     string                   `json:"level"`
	Informers int                      `json:"informers"`
}

// group is the informers of one cluster, or one resource.
type group struct {
	Name      string `json:"name"`
	Informers int    `json:"informers"`
	Wrong     int    `json:"wrong"`
	Slow      int    `json:"slow"`
	Objects   int    `json:"objects"`
}

// item is a row of the first screen.
type item struct {
	identity
	Condition   condition `json:"condition"`
	Phase       string    `json:"phase"`
	Synced      bool      `json:"synced"`
	Objects     int       `json:"objects"`
	StoredBytes int64     `json:"storedBytes"`
	Queued      int       `json:"queued"`
	QueuedBytes int64     `json:"queuedBytes"`
	// OldestQueued is when the oldest change was read that waits. Everything that the server had at
	// CurrentAsOf is acknowledged.
	OldestQueued time.Time `json:"oldestQueued,omitzero"`
	CurrentAsOf  time.Time `json:"currentAsOf,omitzero"`
	LastContact  time.Time `json:"lastContact,omitzero"`
	// Partial tells that the informer is one of client-go, which does not say how many objects it
	// has, or how old they are.
	Partial bool `json:"partial,omitempty"`
}

// identity says which informer it is.
type identity struct {
	// Path is that of its page, below /informer/.
	Path     string `json:"path"`
	Cluster  string `json:"cluster"`
	Group    string `json:"group"`
	Version  string `json:"version"`
	Resource string `json:"resource"`
	Informer string `json:"informer"`
}

// condition is an informer.Condition that is fit to be shown.
type condition struct {
	Reason  informer.ConditionReason `json:"reason"`
	Level   string                   `json:"level"`
	Message string                   `json:"message,omitempty"`
	Since   time.Time                `json:"since,omitzero"`
}

func identityOf(n name) identity {
	l := n.labels
	return identity{Path: n.String(), Cluster: l.Cluster, Group: l.Group, Version: l.Version, Resource: l.Resource, Informer: l.Informer}
}

func conditionOf(c informer.Condition) condition {
	reason := c.Reason
	if reason == "" {
		reason = unknown
	}
	return condition{Reason: reason, Level: kindOf(c.Reason).level.String(), Message: shown(c.Message), Since: utc(c.Since)}
}

func itemOf(r *row) item {
	return item{
		identity: identityOf(r.name), Condition: conditionOf(r.condition), Phase: r.phase.String(), Synced: r.synced,
		Objects: r.objects, StoredBytes: r.stored, Queued: r.queued, QueuedBytes: r.queuedBytes,
		OldestQueued: utc(r.oldest), CurrentAsOf: utc(r.currentAsOf), LastContact: utc(r.heard), Partial: r.partial,
	}
}

// shownGroups is how many clusters, and how many resources, the first screen has.
const shownGroups = 8

// overview answers a query.
func (p *Page) overview(q query) *overview {
	rows := p.rows()
	o := &overview{Title: p.title(), Time: utc(time.Now()), Draining: p.draining.Load(), Query: q, Items: []item{}}
	o.count(rows)
	from := (q.Page - 1) * q.Limit
	first, matching := q.first(rows, from+q.Limit)
	o.Matching, o.Pages = matching, max(1, (matching+q.Limit-1)/q.Limit)
	for _, r := range first[min(from, len(first)):] {
		o.Items = append(o.Items, itemOf(r))
	}
	if len(first) < matching {
		next := q
		next.Page++
		o.Next = next.String()
	}
	return o
}

// count sums the rows up.
func (o *overview) count(rows []row) {
	var byRank [64]int
	type key struct{ group, resource string }
	clusters, resources := map[string]*group{}, map[key]*group{}
	for i := range rows {
		r := &rows[i]
		l := &r.name.labels
		byRank[r.rank]++
		o.Total.add(r)
		cluster := clusters[l.Cluster]
		if cluster == nil {
			cluster = &group{Name: l.Cluster}
			clusters[l.Cluster] = cluster
		}
		cluster.add(r)
		resource := resources[key{l.Group, l.Resource}]
		if resource == nil {
			resource = &group{Name: resourceOf(*l)}
			resources[key{l.Group, l.Resource}] = resource
		}
		resource.add(r)
	}
	o.Conditions = []conditionCount{}
	for rank, n := range byRank[:len(kinds)] {
		if n > 0 {
			k := kinds[rank]
			o.Conditions = append(o.Conditions, conditionCount{Reason: k.reason, Level: k.level.String(), Informers: n})
		}
	}
	o.Clusters, o.MoreClusters = worstOf(clusters, o.Query.All)
	o.Resources, o.MoreResources = worstOf(resources, o.Query.All)
}

func (t *total) add(r *row) {
	t.Informers++
	if r.synced {
		t.Synced++
	}
	switch kinds[r.rank].level {
	case wrong:
		t.Wrong++
	case slow:
		t.Slow++
	case busy:
		t.Busy++
	case idle:
		t.Idle++
	case well:
		t.Well++
	}
	t.Objects += r.objects
	t.StoredBytes += r.stored
	t.Queued += r.queued
	t.QueuedBytes += r.queuedBytes
}

func (g *group) add(r *row) {
	g.Informers++
	g.Objects += r.objects
	switch kinds[r.rank].level {
	case wrong:
		g.Wrong++
	case slow:
		g.Slow++
	}
}

// worstOf returns the groups with most that is wrong, and how many it has left out.
func worstOf[K comparable](groups map[K]*group, all bool) (worst []group, more int) {
	worst = make([]group, 0, len(groups))
	for _, g := range groups {
		worst = append(worst, *g)
	}
	slices.SortFunc(worst, func(a, b group) int {
		return cmp.Or(cmp.Compare(b.Wrong, a.Wrong), cmp.Compare(b.Slow, a.Slow), cmp.Compare(b.Objects, a.Objects), strings.Compare(a.Name, b.Name))
	})
	if !all && len(worst) > shownGroups {
		return worst[:shownGroups], len(worst) - shownGroups
	}
	return worst, 0
}

func (p *Page) serveOverview(w http.ResponseWriter, r *http.Request) {
	q, err := parseQuery(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer(w, r, http.StatusOK, "overview.html", p.overview(q))
}

// utc is a time as JSON shows it, without what is finer than a millisecond.
func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}
