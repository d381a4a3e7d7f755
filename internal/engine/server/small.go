package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/redact"
)

const (
	// metadataOnly asks for the metadata of an object only, and metadataListOnly for that of
	// the objects of a list.
	metadataOnly     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	metadataListOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)

// Found is what a server has of one object.
type Found struct {
	// Version is empty if the server does not have the object.
	Version keytable.Version
	Exists  bool
	// At is the resource version of the answer, empty if the server could not be asked.
	At string
}

// Find asks for the version of an object, in data not older than a resource version. A refusal
// counts as no answer.
func (r *Resource) Find(ctx context.Context, key, resourceVersion string) (Found, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found, err := r.find(ctx, key, resourceVersion)
	if isRefusal(err) {
		return Found{}, nil
	}
	return found, err
}

// find is Find with an error for a refusal.
func (r *Resource) find(ctx context.Context, key, resourceVersion string) (Found, error) {
	name, err := cache.ParseObjectName(key)
	if err != nil {
		return Found{}, nil // nothing of that name can be there
	}
	selector := fields.Set{"metadata.name": name.Name}
	if name.Namespace != "" {
		selector["metadata.namespace"] = name.Namespace
	}
	listed, at, err := r.list(ctx, selector.AsSelector().String(), resourceVersion)
	switch {
	case err != nil, listed.Name == "":
		return Found{At: at}, err
	case listed.Name != name.Name, listed.Namespace != name.Namespace:
		return Found{}, apierrors.NewBadRequest("the server ignores field selectors")
	}
	return Found{Version: listed.version(), Exists: true, At: at}, nil
}

// list asks for one object of the resource, in data not older than a resource version. It is one
// that fieldSelector selects or, if that is empty, the selectors of the Resource. The metadata is
// empty if there is none. At is the resource version of the list, empty if it is not a list of
// metadata: a proxy may answer with something else.
func (r *Resource) list(ctx context.Context, fieldSelector, resourceVersion string) (first smallMeta, at string, err error) {
	request := r.get().AbsPath(r.path()...).
		SetHeader("Accept", metadataListOnly).
		Param("limit", "1").
		MaxRetries(0) // the caller asks again
	if fieldSelector != "" {
		request.Param("fieldSelector", fieldSelector)
	} else {
		own := selection(r.tweaks.apply(metav1.ListOptions{}))
		request.Param("labelSelector", own.LabelSelector).Param("fieldSelector", own.FieldSelector)
	}
	if resourceVersion != "" {
		request.Param("resourceVersion", resourceVersion).
			Param("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan))
	}
	list, err := readSmall[struct {
		Kind     string
		Metadata struct{ ResourceVersion string }
		Items    []struct{ Metadata smallMeta }
	}](ctx, request)
	if list.Kind == "PartialObjectMetadataList" {
		at = list.Metadata.ResourceVersion
	}
	if err != nil || len(list.Items) == 0 {
		return first, at, err
	}
	return list.Items[0].Metadata, at, nil
}

// smallMeta is what an Inquiry needs of an object's metadata.
type smallMeta struct{ Namespace, Name, UID, ResourceVersion string }

func (m smallMeta) version() keytable.Version {
	return keytable.Version{ResourceVersion: m.ResourceVersion, UID: types.UID(m.UID)}
}

// readSmall reads an answer that is expected to be small. It returns the zero T for one of another
// form, such as the page of a proxy.
func readSmall[T any](ctx context.Context, request *rest.Request) (read T, err error) {
	body, err := request.Stream(ctx)
	if err != nil {
		return read, redact.Error(err)
	}
	defer body.Close()
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(body, most))
	if err != nil {
		return read, err
	}
	var decoded T
	if json.Unmarshal(text, &decoded) == nil {
		read = decoded
	}
	return read, nil
}

// hasNone reports whether err says that a server has looked for an object, and does not have it.
// It is false if the server does not serve the resource.
func hasNone(err error) bool {
	var answer apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &answer) {
		return false
	}
	details := answer.Status().Details
	return details != nil && details.Name != ""
}

// isRefusal reports whether err is an answer that will be the same again. It is false for an
// answer that may change later, and where there was none.
func isRefusal(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	switch code := answer.Status().Code; code {
	case http.StatusNotImplemented:
		return true
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	default:
		return 400 <= code && code < 500
	}
}
