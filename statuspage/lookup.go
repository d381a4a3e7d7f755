package statuspage

import (
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
)

// lookup is what an informer believes of one object. Everything but Key and Found is of
// informer.Belief.
type lookup struct {
	Key   string `json:"key"`
	Found bool   `json:"found"`

	Acknowledged *acknowledged `json:"acknowledged,omitempty"`
	Waiting      *change       `json:"waiting,omitempty"`
	Unsettled    bool          `json:"unsettled,omitempty"`
}

type acknowledged struct {
	ResourceVersion string    `json:"resourceVersion,omitempty"`
	UID             types.UID `json:"uid,omitempty"`
	ReadAfter       time.Time `json:"readAfter,omitzero"`
	ReadBefore      time.Time `json:"readBefore,omitzero"`
}

type change struct {
	ResourceVersion string    `json:"resourceVersion,omitempty"`
	UID             types.UID `json:"uid,omitempty"`
	Deleted         bool      `json:"deleted,omitempty"`
	InHandler       bool      `json:"inHandler,omitempty"`
	Attempts        int       `json:"attempts,omitempty"`
	Since           time.Time `json:"since,omitzero"`
}

// believer answers what it believes of an object.
type believer interface {
	Lookup(key string) (informer.Belief, bool)
}

// look returns what a target believes of the object of a key; nil if it does not tell.
func (t *target) look(key string) *lookup {
	l := &lookup{Key: key}
	if b, ok := t.Source.(believer); ok {
		belief, found := b.Lookup(key)
		l.Found, l.Unsettled = found, belief.Unsettled
		if a := belief.Acknowledged; a != nil {
			l.Acknowledged = &acknowledged{a.ResourceVersion, a.UID, utc(a.ReadAfter), utc(a.ReadBefore)}
		}
		if c := belief.Waiting; c != nil {
			l.Waiting = &change{c.ResourceVersion, c.UID, c.Deleted, c.InHandler, c.Attempts, utc(c.Since)}
		}
		return l
	}
	store := t.store()
	if store == nil {
		return nil
	}
	obj, exists, err := store.GetByKey(key)
	if err != nil || !exists {
		return l
	}
	l.Found, l.Acknowledged = true, &acknowledged{}
	if accessor, err := meta.Accessor(obj); err == nil {
		l.Acknowledged.ResourceVersion, l.Acknowledged.UID = accessor.GetResourceVersion(), accessor.GetUID()
	}
	return l
}

// store is that of an informer of client-go, nil if it has none.
func (t *target) store() cache.KeyGetter {
	if m, ok := t.Member.(*factory.Member); ok && t.Foreign {
		if i, ok := m.Informer().(cache.SharedIndexInformer); ok {
			return i.GetStore()
		}
	}
	return nil
}

// canLookUp reports whether look has an answer.
func (t *target) canLookUp() bool {
	_, ok := t.Source.(believer)
	return ok || t.store() != nil
}

// beliefs are what many informers believe of one object.
type beliefs struct {
	Title string    `json:"title"`
	Time  time.Time `json:"time"`
	Key   string    `json:"key"`
	// Asked is how many informers were asked, and Found how many of them know of the object. Items
	// has the first of these.
	Asked int      `json:"asked"`
	Found int      `json:"found"`
	Items []belief `json:"items"`

	Query query `json:"-"`
}

type belief struct {
	identity
	Lookup *lookup `json:"lookup"`
}

// maxBeliefs is how many informers a lookup shows.
const maxBeliefs = 200

func (p *Page) serveLookup(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	q, err := parseQuery(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer(w, r, http.StatusOK, "lookup.html", p.beliefs(v.Get("key"), q))
}

// beliefs asks the informers of a cluster and a resource, or all.
func (p *Page) beliefs(key string, q query) *beliefs {
	b := &beliefs{Title: p.title(), Time: utc(time.Now()), Key: key, Items: []belief{}, Query: q}
	if key == "" {
		return b
	}
	for _, t := range p.targets() {
		l := t.name.labels
		if q.Cluster != nil && l.Cluster != *q.Cluster || q.Resource != nil && resourceOf(l) != *q.Resource {
			continue
		}
		found := t.look(key)
		if found == nil {
			continue
		}
		b.Asked++
		if !found.Found {
			continue
		}
		b.Found++
		if len(b.Items) < maxBeliefs {
			b.Items = append(b.Items, belief{identityOf(t.name), found})
		}
	}
	return b
}
