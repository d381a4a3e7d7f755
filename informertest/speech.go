package informertest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// namespaces are what the kube-apiserver in front of an aggregated server answers for itself.
var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// speech puts the dialect of a server into the answer to one request.
type speech struct {
	Dialect
	table    *table
	resource Resource
	store    *store
	// front is that the kube-apiserver in front answers, whose store was never taken back.
	front bool
	// shown is the newest version of an object that the answer has shown.
	shown *uint64
}

// speak returns the speech for a request about a table.
func (a *handler) speak(t *table, r Resource) speech {
	s := speech{table: t, resource: r, store: a.store, shown: new(uint64)}
	if r.GroupVersionResource != namespaces {
		s.Dialect = a.options.Dialect
	} else {
		s.front = a.options.Dialect.OwnStore
	}
	return s
}

// watches reports whether discovery names the verb.
func (d Dialect) watches(gvr schema.GroupVersionResource) bool {
	return d.RefuseWatches != http.StatusMethodNotAllowed || gvr == namespaces
}

// hear takes out of the options of a request what the server does not know, or refuses them.
func (s speech) hear(opts *metav1.ListOptions, t target) error {
	if s.IgnoreSelectors {
		opts.LabelSelector, opts.FieldSelector, opts.ShardSelector = "", "", ""
	}
	switch {
	case !opts.Watch && s.Lists != VersionOfStore:
		opts.ResourceVersion, opts.ResourceVersionMatch, opts.Limit, opts.Continue = "", "", 0, ""
	case !opts.Watch && s.has(opts.ResourceVersion):
		opts.ResourceVersion, opts.ResourceVersionMatch = "", ""
	case !opts.Watch:
	case s.RefuseWatches == http.StatusMethodNotAllowed:
		return apierrors.NewMethodNotSupported(t.gvr.GroupResource(), "watch")
	case s.RefuseWatches != 0:
		return apierrors.NewGenericServerResponse(s.RefuseWatches, "watch", t.gvr.GroupResource(), "", "no watch in the dialect of this server", 0, false)
	case asksForInitialEvents(opts) && s.WatchLists == WatchListRefused:
		return apierrors.NewBadRequest("sendInitialEvents is not supported")
	}
	return nil
}

// has reports whether a read from that version is one from now: the kube-apiserver in front still has
// it, and the server does not.
func (s speech) has(version string) bool {
	if !s.front || version == "" || version == "0" {
		return false
	}
	rv, err := s.resource.versions.parse(version)
	return err == nil && rv <= s.store.highestEver()
}

// highestEver is the newest resource version that there ever was.
func (s *store) highestEver() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.highest
}

func asksForInitialEvents(opts *metav1.ListOptions) bool {
	return opts.SendInitialEvents != nil && *opts.SendInitialEvents
}

// planWatch is planWatch of options that were heard. Refusal is the error with which the watch ends
// at once, nil for none.
func (s speech) planWatch(v versions, namespace string, opts metav1.ListOptions) (p watchPlan, refusal, err error) {
	watchList := asksForInitialEvents(&opts)
	if watchList && s.WatchLists != WatchListSent {
		opts.SendInitialEvents, opts.ResourceVersionMatch = nil, ""
	}
	resumes := !anyVersion(&opts) && s.Resume != ResumeFromHistory
	version := opts.ResourceVersion
	if resumes {
		opts.ResourceVersion = "" // it may be none of the sequence
	}
	p, err = planWatch(v, namespace, &opts)
	switch {
	case err != nil:
	case watchList && s.WatchLists == WatchListSent:
	case watchList && s.WatchLists == WatchListEmpty:
		p.opening, p.marked = openingNow, p.bookmarks
	case s.Resume == ResumeFromNow && version != "0":
		p.opening, p.marked = openingNow, false
	case resumes && s.Resume == ResumeExpired:
		refusal = apierrors.NewResourceExpired("too old resource version: " + version + ": this server resumes no watch")
	case resumes, s.WatchLists != WatchListSent:
		p.marked = false
	}
	return p, refusal, err
}

// list puts a page into the dialect.
func (s speech) list(p page) page {
	for _, o := range p.objects {
		*s.shown = max(*s.shown, o.rv)
	}
	p.version = s.version(s.Lists, p.version)
	if s.front {
		p.version = s.resource.versions.format(s.store.highestEver())
	}
	if s.TwinKeys {
		p.objects = s.withTwins(p.objects)
	}
	objects := make([]*object, len(p.objects))
	for i, o := range p.objects {
		objects[i] = s.object(o)
	}
	p.objects = objects
	return p
}

// withTwins shows each second object twice.
func (s speech) withTwins(objects []*object) []*object {
	var out []*object
	first := atomic.AddUint64(&s.table.lists, 1)%2 == 0 // the twin
	for i, o := range objects {
		if i%2 == 1 {
			out = append(out, o)
			continue
		}
		twin := o.twin()
		if first {
			out = append(out, twin, o)
		} else {
			out = append(out, o, twin)
		}
	}
	return out
}

// event is the object of an event that is no bookmark.
func (s speech) event(kind watch.EventType, o *object) *object {
	*s.shown = max(*s.shown, o.rv)
	if kind == watch.Deleted && s.BareDeletions {
		return o.bare(s.resource)
	}
	return s.object(o)
}

// object is an object that stands on its own.
func (s speech) object(o *object) *object {
	if s.NoObjectVersions {
		o = o.unversioned()
	}
	if s.NoUIDs {
		o = o.anonymous()
	}
	return o
}

// bookmark is the version of a bookmark; ok is false where none is sent.
func (s speech) bookmark(rv uint64, marked bool) (version string, ok bool) {
	version = s.resource.versions.format(rv)
	if marked {
		return s.version(s.Marks, version), true
	}
	return s.version(s.Bookmarks, version), !s.NoBookmarks
}

// version is what a rule makes of the version of the state that is shown.
func (s speech) version(rule VersionRule, ofStore string) string {
	switch {
	case rule == VersionLeftOut:
		return ""
	case rule == VersionCounted:
		return fmt.Sprint(s.store.writes(s.table))
	case rule == VersionZero, rule == VersionOfItems && *s.shown == 0:
		return "0"
	case rule == VersionOfItems:
		return s.resource.versions.format(*s.shown)
	}
	return ofStore
}

// writes is how many there were to a table.
func (s *store) writes(t *table) uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return t.end()
}

// writeEvent writes an event whose object is encoded already.
func (s speech) writeEvent(out *bufio.Writer, m media, kind watch.EventType, object []byte) error {
	if !s.SortedKeys {
		return m.event(out, kind, object)
	}
	return sorted(out, func(out *bufio.Writer) error { return m.event(out, kind, object) })
}

// write writes a document as write does, in the order that the dialect has of its keys.
func (s speech) write(out *bufio.Writer, write func(out *bufio.Writer) error) error {
	if !s.SortedKeys {
		return write(out)
	}
	return sorted(out, write)
}

// sorted writes what write writes with the keys of its objects in order.
func sorted(out *bufio.Writer, write func(out *bufio.Writer) error) error {
	var text bytes.Buffer
	buffer := bufio.NewWriter(&text)
	if err := write(buffer); err != nil {
		return err
	}
	if err := buffer.Flush(); err != nil {
		return err
	}
	decoder := json.NewDecoder(&text)
	decoder.UseNumber()
	var document any
	if err := decoder.Decode(&document); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(document)
}

// negotiate picks how a request is answered.
func (s speech) negotiate(req *http.Request, r Resource, isList bool) (representation, error) {
	as, err := negotiate(req.Header.Get("Accept"), r, isList)
	if s.SortedKeys || s.NoContentType {
		as.media = mediaJSON
	}
	return as, err
}

// contentType is the header of an answer, "" for none.
func (s speech) contentType(text string) string {
	if s.NoContentType {
		return ""
	}
	return text
}

// setContentType sets the header, or sees to it that net/http does not make up one.
func setContentType(h http.Header, text string) {
	if text == "" {
		h["Content-Type"] = nil
		return
	}
	h.Set("Content-Type", text)
}

// twin is an object of the same name elsewhere: of another UID and an older version.
func (o *object) twin() *object {
	twin := o.at(max(1, o.rv-1))
	uid := []byte(o.uid)
	last := &uid[len(uid)-1]
	*last = "123456789abcdef0"[strings.IndexByte("0123456789abcdef", *last)]
	twin.uid = types.UID(uid)
	twin.head = bytes.ReplaceAll(o.head, []byte(o.uid), uid)
	twin.tail = bytes.ReplaceAll(o.tail, []byte(o.uid), uid)
	return twin
}

// anonymous is an object that does not say its UID.
func (o *object) anonymous() *object {
	c := *o
	without := func(text []byte) []byte {
		member := fmt.Appendf(nil, `"uid":%q`, o.uid)
		if before := append([]byte{','}, member...); bytes.Contains(text, before) {
			return bytes.Replace(text, before, nil, 1)
		}
		return bytes.Replace(text, append(member, ','), nil, 1)
	}
	c.head, c.tail = without(o.head), without(o.tail)
	return &c
}

// bare is an object of which only kind, namespace and name are left.
func (o *object) bare(r Resource) *object {
	metadata := map[string]any{"name": o.name}
	if o.namespace != "" {
		metadata["namespace"] = o.namespace
	}
	content := map[string]any{"metadata": metadata}
	if r.Custom {
		content["apiVersion"], content["kind"] = r.apiVersion(), r.Kind
	}
	text, err := json.Marshal(content)
	if err != nil {
		panic(err) // a map of strings always encodes
	}
	return &object{identity: o.identity, namespace: o.namespace, name: o.name, labels: o.labels, rv: noVersion, versions: o.versions, head: text}
}
