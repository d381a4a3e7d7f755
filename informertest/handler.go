package informertest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// handler is the HTTP face of a store.
type handler struct {
	store   *store
	faults  *faults
	options Options // with their defaults
	// cutAfter cuts a connection after a while.
	cutAfter func(net.Conn, time.Duration)
	// Ends the watches when the server closes.
	ctx     context.Context
	watches *openWatches
}

// target is what the path of a request is about.
type target struct {
	gvr             schema.GroupVersionResource
	namespace, name string
}

// parseTarget reads the path of a resource; ok is false for every other path.
func parseTarget(path string) (t target, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		t.gvr.Version = parts[1]
		parts = parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		t.gvr.Group, t.gvr.Version = parts[1], parts[2]
		parts = parts[3:]
	default:
		return t, false
	}
	// The namespaces themselves live under the word that begins every namespaced path.
	if len(parts) >= 3 && parts[0] == "namespaces" {
		t.namespace = parts[1]
		parts = parts[2:]
	}
	t.gvr.Resource = parts[0]
	if len(parts) > 1 {
		t.name = parts[1]
	}
	return t, len(parts) <= 2
}

// listOptions decodes the query of a list or watch.
func listOptions(query url.Values) (metav1.ListOptions, error) {
	var opts metav1.ListOptions
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&query, &opts, nil); err != nil {
		return opts, apierrors.NewBadRequest(fmt.Sprintf("invalid list options %q: %v", query.Encode(), err))
	}
	return opts, nil
}

func (a *handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if a.serveDiscovery(w, req) {
		return
	}
	t, ok := parseTarget(req.URL.Path)
	if !ok {
		err := apierrors.NewGenericServerResponse(http.StatusNotFound, req.Method, schema.GroupResource{}, "", "", 0, false)
		err.ErrStatus.Message = fmt.Sprintf("the server could not find the requested resource: nothing is served at %s", req.URL.Path)
		writeError(w, req, err)
		return
	}
	if q, opts, ok := inquire(req, t); ok {
		a.serveFaulty(w, req, t, q, opts)
		return
	}
	if err := a.serve(w, req, t); err != nil {
		writeError(w, req, err)
	}
}

// serve answers a write. It returns an error only as long as nothing is written.
func (a *handler) serve(w http.ResponseWriter, req *http.Request, t target) error {
	_, r, err := a.find(t)
	if err != nil {
		return err
	}
	switch {
	case req.Method == http.MethodPost && t.name == "":
		return a.create(w, req, t, r)
	case req.Method == http.MethodPut && t.name != "":
		return a.update(w, req, t, r)
	case req.Method == http.MethodDelete && t.name != "":
		return a.remove(w, req, t)
	}
	return apierrors.NewMethodNotSupported(t.gvr.GroupResource(), strings.ToLower(req.Method))
}

// find finds the table that a path is about.
func (a *handler) find(t target) (*table, Resource, error) {
	table, r, err := a.store.lookup(t.gvr)
	if err == nil && !r.Namespaced && t.namespace != "" {
		err = unknownResource(t.gvr)
	}
	return table, r, err
}

// read answers a request that reads. It returns an error only as long as nothing is written.
func (a *handler) read(x *exchange, req *http.Request, t target, opts *metav1.ListOptions) error {
	table, r, err := a.find(t)
	switch {
	case err != nil:
		return err
	case x.verb == verbGet:
		return a.get(x, req, t, table, r)
	case opts == nil:
		_, err := listOptions(req.URL.Query())
		return err
	}
	if !a.options.ShardedListAndWatch {
		opts.ShardSelector = ""
	}
	if err := a.speak(table, r).hear(opts, t); err != nil {
		return err
	}
	if opts.Watch {
		return a.watch(x, req, t, table, r, opts)
	}
	return a.list(x, req, t, table, r, opts)
}

func (a *handler) get(w *exchange, req *http.Request, t target, table *table, r Resource) error {
	speech := a.speak(table, r)
	as, err := speech.negotiate(req, r, false)
	if err != nil {
		return err
	}
	rv := uint64(0)
	text := req.URL.Query().Get("resourceVersion")
	if speech.Lists != VersionOfStore || speech.has(text) {
		text = "" // it may be none of the sequence
	}
	if text != "" && text != "0" {
		if rv, err = r.versions.parse(text); err != nil {
			return unread(text, err)
		}
		a.store.await(req.Context().Done(), w, rv)
	}
	var old *replica
	if text != "" {
		old = w.replica()
	}
	r, o, err := a.store.getAt(table, t.namespace, t.name, rv, old)
	if err != nil {
		return err
	}
	return respond(w, req, http.StatusOK, speech.contentType(as.media.contentType()), func(out *bufio.Writer) error {
		return speech.write(out, func(out *bufio.Writer) error { return writeAlone(out, r, as, speech.object(o)) })
	})
}

func (a *handler) list(w *exchange, req *http.Request, t target, table *table, r Resource, opts *metav1.ListOptions) error {
	speech := a.speak(table, r)
	as, err := speech.negotiate(req, r, true)
	if err != nil {
		return err
	}
	plan, err := planList(r.versions, t.namespace, opts)
	if err != nil {
		return err
	}
	if plan.waits() {
		a.store.await(req.Context().Done(), w, plan.rv)
	}
	r, p, err := a.store.list(table, plan, w.replica())
	if err != nil {
		return err
	}
	if w.has(effectForeign) {
		return writeForeign(w, req)
	}
	if w.has(effectRepeatToken) && opts.Continue != "" {
		p.next = opts.Continue
	}
	p.shard = opts.ShardSelector
	p = speech.list(p)
	p.taint = func() taint {
		_ = w.dawdle(time.Now().Add(maxTime)) // a write finds that the client is gone
		return w.taint()
	}
	return respond(w, req, http.StatusOK, speech.contentType(as.media.contentType()), func(out *bufio.Writer) error {
		return speech.write(out, func(out *bufio.Writer) error { return newCodec(r, as).list(out, p) })
	})
}

func (a *handler) watch(w *exchange, req *http.Request, t target, table *table, r Resource, opts *metav1.ListOptions) error {
	speech := a.speak(table, r)
	as, err := speech.negotiate(req, r, false)
	if err != nil {
		return err
	}
	plan, refusal, err := speech.planWatch(r.versions, t.namespace, *opts)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	defer context.AfterFunc(a.ctx, cancel)()
	defer a.watches.add(cancel)()

	var (
		initial []*object
		cursor  *cursor
		openErr error
	)
	if e, ok := w.find(effectStatus); ok {
		openErr = w.status(e, t, nil)
	} else if refusal != nil {
		openErr = refusal
	} else {
		plan = a.openAt(w, plan, ctx.Done())
		r, initial, cursor, openErr = a.store.open(table, plan, w.replica())
		if apierrors.IsNotFound(openErr) {
			return openErr
		}
	}
	setContentType(w.Header(), speech.contentType(as.media.streamType()))
	run := &watching{
		watchPlan: plan,
		exchange:  w,
		target:    t,
		resource:  r,
		codec:     newCodec(r, as),
		media:     as.media,
		speech:    speech,
		every:     a.options.BookmarkInterval,
		cursor:    cursor,
		out:       bufio.NewWriterSize(w, writeBuffer),
		flusher:   http.NewResponseController(w),
	}
	if a.options.GzipWatches && acceptsGzip(req) {
		run.zip = newZipper(w, w.spoils())
		defer run.zip.release()
		run.out.Reset(run.zip)
	}
	w.WriteHeader(http.StatusOK)
	if openErr != nil {
		err = run.fail(openErr)
	} else {
		defer cursor.close()
		err = run.run(ctx, initial)
	}
	if bad, ok := errors.AsType[unwritable](err); ok {
		err = run.fail(bad.error)
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

func (a *handler) create(w http.ResponseWriter, req *http.Request, t target, r Resource) error {
	as, err := negotiate(req.Header.Get("Accept"), r, false)
	if err != nil {
		return err
	}
	obj, err := readObject(req, r)
	if err != nil {
		return err
	}
	if hasVersion(obj) {
		return ownFailure("resourceVersion should not be set on objects to be created")
	}
	r, o, err := a.store.create(t.gvr, t.namespace, obj)
	if err != nil {
		return err
	}
	return writeObject(w, req, http.StatusCreated, r, as, o)
}

func (a *handler) update(w http.ResponseWriter, req *http.Request, t target, r Resource) error {
	as, err := negotiate(req.Header.Get("Accept"), r, false)
	if err != nil {
		return err
	}
	obj, err := readObject(req, r)
	if err != nil {
		return err
	}
	if r.Custom && !hasVersion(obj) {
		if _, _, err := a.store.get(t.gvr, t.namespace, t.name); err != nil {
			return err
		}
		return apierrors.NewInvalid(r.gvk().GroupKind(), t.name, field.ErrorList{field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")})
	}
	r, o, err := a.store.update(t.gvr, t.namespace, t.name, obj)
	if err != nil {
		return err
	}
	return writeObject(w, req, http.StatusOK, r, as, o)
}

// hasVersion reports whether an object says a resource version.
func hasVersion(obj runtime.Object) bool {
	m, ok := obj.(metav1.Object)
	return ok && m.GetResourceVersion() != "" && m.GetResourceVersion() != "0"
}

func (a *handler) remove(w http.ResponseWriter, req *http.Request, t target) error {
	opts, err := readDeleteOptions(req)
	if err != nil {
		return err
	}
	r, o, err := a.store.remove(t.gvr, t.namespace, t.name, opts.Preconditions)
	if err != nil {
		return err
	}
	writeStatus(w, req, http.StatusOK, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		ListMeta: metav1.ListMeta{ResourceVersion: r.versions.format(o.rv)}, // as from 1.38 on
		Status:   metav1.StatusSuccess,
		Details:  &metav1.StatusDetails{Name: o.name, Group: t.gvr.Group, Kind: t.gvr.Resource, UID: o.uid},
	})
	return nil
}

func writeObject(w http.ResponseWriter, req *http.Request, code int, r Resource, as representation, o *object) error {
	return respond(w, req, code, as.media.contentType(), func(out *bufio.Writer) error {
		return writeAlone(out, r, as, o)
	})
}

// writeAlone writes an object that is the whole document.
func writeAlone(out *bufio.Writer, r Resource, as representation, o *object) error {
	text, err := newCodec(r, as).object(nil, o, taint{})
	if err != nil {
		return err
	}
	_, err = out.Write(append(text, as.media.end()...))
	return err
}
