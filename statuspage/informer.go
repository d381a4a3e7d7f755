package statuspage

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
)

// details is the page of one informer, and what is its JSON.
type details struct {
	identity
	Time time.Time `json:"time"`
	// Kind is the Go type of the informer.
	Kind      string    `json:"kind"`
	Condition condition `json:"condition"`
	// Advice is what to do about the condition.
	Advice string `json:"advice,omitempty"`
	// Status has all of informer.Status, or of factory.Status for an informer of client-go.
	Status fields `json:"status"`
	// Started and Leases are those of an informer of a factory.
	Started time.Time `json:"started,omitzero"`
	Leases  *int      `json:"leases,omitempty"`
	// Handlers are those of a shared informer.
	Handlers []handler `json:"handlers,omitempty"`
	// DeadLetters are the first of those that the informer has, by key.
	DeadLetters []fields `json:"deadLetters,omitempty"`

	Title string `json:"-"`
}

// handler is one handler of a shared informer.
type handler struct {
	Name      string    `json:"name"`
	Condition condition `json:"condition"`
	Status    fields    `json:"status"`
}

// sharing is an informer with handlers that have a Status of their own.
type sharing interface {
	Handlers() []*informer.HandlerRegistration
}

// burying is an informer that may have dead letters.
type burying interface {
	DeadLetters() []informer.DeadLetter
}

// mostLetters is how many dead letters are shown.
const mostLetters = 100

func (p *Page) serveInformer(w http.ResponseWriter, r *http.Request, path string) {
	n, ok := parseName(path)
	if !ok {
		http.NotFound(w, r)
		return
	}
	t, ok := p.find(n)
	if !ok {
		http.Error(w, "there is no such informer, or not any more", http.StatusNotFound)
		return
	}
	answer(w, r, http.StatusOK, "informer.html", p.details(&t))
}

// serveLabelled leads from the labels of a series of metrics to the page of the informer or, if several
// have them, to their rows.
func (p *Page) serveLabelled(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	l := Labels{Cluster: v.Get("cluster"), Group: v.Get("group"), Version: v.Get("version"), Resource: v.Get("resource"), Informer: v.Get("informer")}
	found := p.labelled(l)
	if len(found) == 0 {
		http.Error(w, "there is no such informer, or not any more", http.StatusNotFound)
		return
	}
	to := "informer/" + found[0].name.String()
	if len(found) > 1 {
		resource := resourceOf(l)
		to = "./" + query{Cluster: &l.Cluster, Resource: &resource, Informer: &l.Informer, Page: 1, Limit: defaultLimit}.String()
	}
	w.Header().Set("Location", to) // relative, because the page may be served below a prefix
	w.WriteHeader(http.StatusFound)
}

// details describes a target.
func (p *Page) details(t *target) *details {
	d := &details{identity: identityOf(t.name), Time: utc(time.Now()), Title: p.title()}
	if m, ok := t.Member.(*factory.Member); ok {
		s := m.Status()
		d.Started, d.Leases, d.Kind = utc(s.Started), &s.Leases, typeName(m.Informer())
		d.Condition, d.Status = conditionOf(s.Condition), fieldsOf(s).without("Key", "Condition", "Started", "Leases")
	}
	if !t.Foreign {
		s := t.Status()
		d.Kind, d.Condition, d.Status = typeName(t.Source), conditionOf(s.Condition), fieldsOf(s).without("Condition")
	}
	if b, ok := t.Source.(burying); ok {
		letters := b.DeadLetters()
		for _, letter := range letters[:min(len(letters), mostLetters)] {
			d.DeadLetters = append(d.DeadLetters, fieldsOf(letter))
		}
	}
	d.Advice = kindOf(d.Condition.Reason).advice
	if shared, ok := t.Source.(sharing); ok {
		for _, h := range shared.Handlers() {
			s := h.Status()
			d.Handlers = append(d.Handlers, handler{Name: shown(h.Name()), Condition: conditionOf(s.Condition), Status: fieldsOf(s).without("Condition")})
		}
	}
	return d
}

// typeName is the Go type of an informer, without the path of its package.
func typeName(v any) string {
	if v == nil {
		return ""
	}
	path, name, _ := strings.Cut(strings.TrimPrefix(fmt.Sprintf("%T", v), "*"), ".")
	if name == "" {
		return path
	}
	return path + "." + strings.ToUpper(name[:1]) + name[1:] // that of the interface, where the type is not public
}
