package fleet

import (
	"io"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
)

// nothingOf returns a ListerWatcher that lists a resource without objects, for an informer that is
// to tell its handler that all are gone.
func nothingOf(t Target, host string) (cache.ListerWatcher, error) {
	listers, err := informer.NewDynamicListerWatcherFactory(&rest.Config{Host: host, Transport: nothing{t}, QPS: -1})
	if err != nil {
		return nil, err
	}
	return listers.ForResource("", t.Resource), nil
}

// nothing is a server whose resource has no objects, and which has nothing else.
type nothing struct{ target Target }

// versionOfNothing is the resource version of its lists. A watch from any other is refused, so that
// an informer that resumes from a checkpoint lists.
const versionOfNothing = "1"

// RoundTrip answers a request.
func (n nothing) RoundTrip(request *http.Request) (*http.Response, error) {
	_, asked, _ := strings.Cut(request.URL.Path, n.target.Resource.GroupVersion().String()+"/")
	switch {
	case asked != n.target.Resource.Resource:
		return answer(request, http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`), nil
	case request.URL.Query().Get("watch") == "": // a list
		return answer(request, http.StatusOK, `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"`+versionOfNothing+`"},"items":[]}`), nil
	case request.URL.Query().Get("resourceVersion") != versionOfNothing:
		return answer(request, http.StatusGone, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`), nil
	}
	<-request.Context().Done() // nothing happens to no objects
	return nil, request.Context().Err()
}

func answer(to *http.Request, code int, text string) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: to,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)),
	}
}
