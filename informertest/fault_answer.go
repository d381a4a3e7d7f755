package informertest

import (
	"bufio"
	"fmt"
	"net"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// connKey is under which the context of a request has its connection.
type connKey struct{}

// inquire describes a request that faults can meet; ok is false for every other. The options are
// nil where they cannot be read, and of a get.
func inquire(req *http.Request, t target) (q inquiry, opts *metav1.ListOptions, ok bool) {
	if req.Method != http.MethodGet {
		return q, nil, false
	}
	q = inquiry{verb: verbGet, resource: t.gvr, query: req.URL.Query()}
	if t.name != "" {
		return q, nil, true
	}
	q.verb = verbList
	read, err := listOptions(q.query)
	switch {
	case err != nil:
		return q, nil, true
	case read.Watch && read.SendInitialEvents != nil && *read.SendInitialEvents:
		q.verb = verbWatchList
	case read.Watch:
		q.verb = verbWatch
	case read.Continue != "":
		q.page = LaterPages
	default:
		q.page = FirstPage
	}
	return q, &read, true
}

// serveFaulty answers a request that reads, as far as faults let it.
func (a *handler) serveFaulty(w http.ResponseWriter, req *http.Request, t target, q inquiry, opts *metav1.ListOptions) {
	x := newExchange(q, w, req, a)
	a.faults.enter(x)
	defer a.faults.leave(x)
	defer func() {
		if cause := recover(); cause != nil && cause != (endedCleanly{}) {
			panic(cause)
		}
	}()
	if x.pass() != nil {
		panic(http.ErrAbortHandler)
	}
	if x.has(effectReset) {
		if conn, ok := req.Context().Value(connKey{}).(net.Conn); ok {
			resetOne(conn)
		}
		panic(http.ErrAbortHandler)
	}
	if e, ok := x.find(effectGoAway); ok {
		// For HTTP/2, the server of Go makes a GOAWAY of it, as it does for a kube-apiserver.
		x.Header().Set("Connection", "close")
		if conn, ok := req.Context().Value(connKey{}).(net.Conn); ok && e.time > 0 {
			a.cutAfter(conn, e.time)
		}
	}
	err := x.refusal(t, opts)
	if err == nil {
		if opts != nil && x.has(effectIgnoreWatchList) {
			opts.SendInitialEvents, opts.ResourceVersionMatch = nil, ""
		}
		err = a.read(x, req, t, opts)
	}
	if err != nil {
		writeError(x, req, err)
	}
	// Its end hangs as well.
	if x.pass() != nil {
		panic(http.ErrAbortHandler)
	}
}

// refusal is the error that faults answer in place of the response, nil when they do not.
func (x *exchange) refusal(t target, opts *metav1.ListOptions) error {
	f, ok := x.findFault(effectStatus, effectRefuseWatchList)
	e := f.Effect
	watching := x.verb == verbWatch || x.verb == verbWatchList
	switch {
	case !ok, e.n == http.StatusGone && watching:
		return nil
	case e.kind == effectRefuseWatchList:
		return forbiddenOption("sendInitialEvents", "it is not enabled on this server (a fault was injected)")
	case f.With == "" || e.retry > 0:
	case e.n == http.StatusBadRequest:
		return apierrors.NewBadRequest(fmt.Sprintf("unknown query parameter %q (a fault was injected)", f.With))
	case e.n == http.StatusUnprocessableEntity:
		return forbiddenOption(f.With, "unknown parameter (a fault was injected)")
	}
	return x.status(e, t, opts)
}

// status is the error of an effect, for a request with these options.
func (x *exchange) status(e Effect, t target, opts *metav1.ListOptions) error {
	if e.n != http.StatusGone {
		return statusError(e, x.verb, t)
	}
	err := apierrors.NewResourceExpired("too old resource version: a fault was injected")
	if opts != nil && opts.Continue != "" {
		if c, bad := decodeContinuation(opts.Continue); bad == nil {
			err.ErrStatus.Message = expiredToken
			err.ErrStatus.Continue = continuation{RV: -1, Start: c.Start}.encode()
		}
	}
	if e.retry > 0 {
		err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(e.retry)}
	}
	return err
}

// statusError is a Status of a code.
func statusError(e Effect, verb string, t target) error {
	err := apierrors.NewGenericServerResponse(e.n, verb, t.gvr.GroupResource(), t.name, "", e.retry, false)
	err.ErrStatus.Message = fmt.Sprintf("%d by an injected fault", e.n)
	if e.retry > 0 {
		err.ErrStatus.Details.RetryAfterSeconds = int32(e.retry)
	}
	return err
}

// writeForeign answers with a list of something else.
func writeForeign(w http.ResponseWriter, req *http.Request) error {
	return respond(w, req, http.StatusOK, "application/json", func(out *bufio.Writer) error {
		_, err := out.WriteString(`{"kind":"ErrorPage","apiVersion":"example.com/v1","metadata":{"resourceVersion":"1"},"items":[]}`)
		return err
	})
}
