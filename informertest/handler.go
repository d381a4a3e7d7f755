package informertest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// writeBuffer is how much of a response is gathered before it goes to the socket.
const writeBuffer = 32 << 10

// api is the HTTP face of a store.
type api struct {
	store *store
	every time.Duration // between bookmarks
	// Ends the watches when the server closes.
	ctx context.Context
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

func (a *api) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if a.serveDiscovery(w, req) {
		return
	}
	t, ok := parseTarget(req.URL.Path)
	if !ok {
		err := apierrors.NewGenericServerResponse(http.StatusNotFound, req.Method, schema.GroupResource{}, "", "", 0, false)
		err.ErrStatus.Message = fmt.Sprintf("the server could not find the requested resource: nothing is served at %s", req.URL.Path)
		writeError(w, err)
		return
	}
	if err := a.serve(w, req, t); err != nil {
		writeError(w, err)
	}
}

// serve answers a request for a resource. It returns an error only as long as nothing is written.
func (a *api) serve(w http.ResponseWriter, req *http.Request, t target) error {
	table, r, err := a.store.lookup(t.gvr)
	if err != nil {
		return err
	}
	if !r.Namespaced && t.namespace != "" {
		return unknownResource(t.gvr)
	}

	switch {
	case req.Method == http.MethodGet && t.name != "":
		return a.get(w, req, t)
	case req.Method == http.MethodGet:
		opts, err := listOptions(req.URL.Query())
		if err != nil {
			return err
		}
		if opts.Watch {
			return a.watch(w, req, t, table, &opts)
		}
		return a.list(w, req, t, table, &opts)
	case req.Method == http.MethodPost && t.name == "":
		return a.create(w, req, t)
	case req.Method == http.MethodPut && t.name != "":
		return a.update(w, req, t)
	case req.Method == http.MethodDelete && t.name != "":
		return a.remove(w, req, t)
	}
	return apierrors.NewMethodNotSupported(t.gvr.GroupResource(), strings.ToLower(req.Method))
}

func (a *api) get(w http.ResponseWriter, req *http.Request, t target) error {
	form, err := negotiate(req.Header.Get("Accept"), false)
	if err != nil {
		return err
	}
	r, o, err := a.store.get(t.gvr, t.namespace, t.name)
	if err != nil {
		return err
	}
	return writeObject(w, http.StatusOK, codec{resource: r, form: form}, o)
}

func (a *api) list(w http.ResponseWriter, req *http.Request, t target, table *table, opts *metav1.ListOptions) error {
	form, err := negotiate(req.Header.Get("Accept"), true)
	if err != nil {
		return err
	}
	plan, err := planList(t.namespace, opts)
	if err != nil {
		return err
	}
	r, p, err := a.store.list(table, plan)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	out := bufio.NewWriterSize(w, writeBuffer)
	if err = (codec{resource: r, form: form}).list(out, p); err == nil {
		err = out.Flush()
	}
	if err != nil {
		// The status is on its way: only a broken connection tells the client that the list is not whole.
		panic(http.ErrAbortHandler)
	}
	return nil
}

func (a *api) watch(w http.ResponseWriter, req *http.Request, t target, table *table, opts *metav1.ListOptions) error {
	form, err := negotiate(req.Header.Get("Accept"), false)
	if err != nil {
		return err
	}
	plan, err := planWatch(t.namespace, opts)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	defer context.AfterFunc(a.ctx, cancel)()

	r, initial, cursor, openErr := a.store.open(table, plan)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	run := &watching{
		watchPlan: plan,
		codec:     codec{resource: r, form: form},
		every:     a.every,
		cursor:    cursor,
		out:       bufio.NewWriterSize(w, writeBuffer),
		flusher:   http.NewResponseController(w),
	}
	if openErr != nil {
		err = run.fail(openErr)
	} else {
		defer cursor.close()
		err = run.run(ctx, initial)
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

func (a *api) create(w http.ResponseWriter, req *http.Request, t target) error {
	obj, err := readObject(req)
	if err != nil {
		return err
	}
	r, o, err := a.store.create(t.gvr, t.namespace, obj)
	if err != nil {
		return err
	}
	return writeObject(w, http.StatusCreated, codec{resource: r}, o)
}

func (a *api) update(w http.ResponseWriter, req *http.Request, t target) error {
	obj, err := readObject(req)
	if err != nil {
		return err
	}
	r, o, err := a.store.update(t.gvr, t.namespace, t.name, obj)
	if err != nil {
		return err
	}
	return writeObject(w, http.StatusOK, codec{resource: r}, o)
}

func (a *api) remove(w http.ResponseWriter, req *http.Request, t target) error {
	var opts metav1.DeleteOptions
	if err := readBody(req, &opts); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	_, o, err := a.store.remove(t.gvr, t.namespace, t.name, opts.Preconditions)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess,
		Details:  &metav1.StatusDetails{Name: o.name, Group: t.gvr.Group, Kind: t.gvr.Resource, UID: o.uid},
	})
	return nil
}

func writeObject(w http.ResponseWriter, code int, c codec, o *object) error {
	text, err := c.object(nil, o)
	if err != nil {
		return err
	}
	writeText(w, code, append(text, '\n'))
	return nil
}

func readObject(req *http.Request) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	var text json.RawMessage
	if err := readBody(req, &text); err != nil {
		if errors.Is(err, io.EOF) {
			err = apierrors.NewBadRequest("the request has no body: it must hold the object")
		}
		return nil, err
	}
	if err := u.UnmarshalJSON(text); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body is not an object: %v", err))
	}
	return u, nil
}

// readBody decodes a JSON body. Its error is io.EOF when there is none.
func readBody(req *http.Request, into any) error {
	text, err := io.ReadAll(req.Body)
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("reading the body: %v", err))
	}
	if len(text) == 0 {
		return io.EOF
	}
	contentType := req.Header.Get("Content-Type")
	if media, _, err := mime.ParseMediaType(contentType); contentType != "" && (err != nil || media != "application/json") {
		return unsupportedMediaType(contentType)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("the body is not valid JSON: %v", err))
	}
	return nil
}
