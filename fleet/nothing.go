package fleet

import (
	"encoding/json"
	"io"
	"net/http"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/engine/server"
)

// nothingOf returns a ListerWatcher of the source of another one, which has no objects, for an informer
// that is to tell its handler that all are gone.
func nothingOf(lw cache.ListerWatcher) (cache.ListerWatcher, error) {
	r := server.Of(lw)
	if r == nil {
		return server.InPlaceOf(lw, decodedNothing, errNewer()), nil
	}
	r, err := r.AnsweredBy(nothing{r.GroupResource().Resource})
	if err != nil {
		return nil, err // not a typed nil
	}
	return r, nil
}

// decodedNothing lists and watches no objects.
var decodedNothing = cache.ToListerWatcherWithContext(&cache.ListWatch{
	ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
		return &metav1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, ListMeta: metav1.ListMeta{ResourceVersion: versionOfNothing}}, nil
	},
	WatchFunc: func(opts metav1.ListOptions) (watch.Interface, error) {
		if opts.ResourceVersion != versionOfNothing {
			return nil, apierrors.NewResourceExpired("there are no objects")
		}
		return watch.NewFake(), nil
	},
})

// nothing is a server whose resource has no objects, and which has nothing else. Which cluster it is of,
// the server in whose place it stands is asked.
type nothing struct{ resource string }

// versionOfNothing is the resource version of its lists. A watch from any other is refused, so that
// an informer that resumes from a checkpoint lists.
const versionOfNothing = "1"

// isNewer reports whether a list in a resource version is refused. An informer believes a list that is
// older than what it knows only from a server that does not have the known version.
func isNewer(resourceVersion string) bool {
	return resourceVersion != "" && resourceVersion != "0" && resourceVersion != versionOfNothing
}

// errNewer is the answer to a list in a newer version than that of nothing.
func errNewer() *apierrors.StatusError {
	err := apierrors.NewTimeoutError("there are no objects", 0)
	err.ErrStatus.Kind, err.ErrStatus.APIVersion = "Status", "v1"
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

// RoundTrip answers a request.
func (n nothing) RoundTrip(request *http.Request) (*http.Response, error) {
	switch {
	case path.Base(request.URL.Path) != n.resource:
		return answer(request, http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`), nil
	case request.URL.Query().Get("watch") == "" && isNewer(request.URL.Query().Get("resourceVersion")):
		text, err := json.Marshal(errNewer().ErrStatus)
		if err != nil {
			return nil, err
		}
		return answer(request, http.StatusGatewayTimeout, string(text)), nil
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
