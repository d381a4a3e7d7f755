package informertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// tooLarge is the answer to a resource version that the server has not reached.
func tooLarge(v versions, asked, current uint64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %s, current: %s", v.format(asked), v.format(current)), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    metav1.CauseTypeResourceVersionTooLarge,
		Message: "Too large resource version",
	}}
	return err
}

// expired is the answer to a resource version whose history is forgotten.
func expired(v versions, asked, compacted uint64) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %s (history begins at %s)", v.format(asked), v.format(compacted)))
}

// invalidOptions is the answer to list options that contradict each other.
func invalidOptions(wrong field.ErrorList) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", wrong)
}

// forbiddenOption is the answer to a list option that is not allowed.
func forbiddenOption(path, detail string) error {
	return invalidOptions(field.ErrorList{field.Forbidden(field.NewPath(path), detail)})
}

// unread is the answer of a get or a watch to a resource version that cannot be read: a
// kube-apiserver calls it its own failure, and only that of a list a bad request.
func unread(version string, cause error) error {
	return ownFailure(field.Invalid(field.NewPath("resourceVersion"), version, cause.Error()).Error())
}

// ownFailure is an error that a kube-apiserver's storage has no other answer for.
func ownFailure(message string) error {
	return failure(http.StatusInternalServerError, "", message)
}

// failure is an error that apimachinery has no function for.
func failure(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

func unknownResource(gvr schema.GroupVersionResource) error {
	err := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", gvr.GroupResource(), "", "", 0, false)
	err.ErrStatus.Message = fmt.Sprintf("the server could not find the requested resource: it does not serve %s of %s", gvr.Resource, gvr.GroupVersion())
	return err
}

func notAcceptable(accept string) error {
	return failure(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		fmt.Sprintf("none of the accepted representations is served (%s): only application/json is, and application/vnd.kubernetes.protobuf of built-in types; and of everything PartialObjectMetadata in both", accept))
}

func unsupportedMediaType(contentType string) error {
	return failure(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		fmt.Sprintf("bodies of type %q are not read, only application/json is, and application/vnd.kubernetes.protobuf for built-in types", contentType))
}

// statusOf is the Status object that describes an error to a client.
func statusOf(err error) metav1.Status {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	s := status.Status()
	s.Kind, s.APIVersion = "Status", "v1"
	return s
}

func writeError(w http.ResponseWriter, req *http.Request, err error) {
	s := statusOf(err)
	if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(s.Details.RetryAfterSeconds)))
	}
	writeStatus(w, req, int(s.Code), s)
}

func writeStatus(w http.ResponseWriter, req *http.Request, code int, s metav1.Status) {
	media := negotiateStatus(req.Header.Get("Accept"))
	text, err := media.status(&s)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	writeText(w, code, media.contentType(), append(text, media.end()...))
}

// writeJSON answers with a small body. Its own write errors need no answer: the client is gone.
func writeJSON(w http.ResponseWriter, code int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	writeText(w, code, mediaJSON.contentType(), append(text, '\n'))
}

func writeText(w http.ResponseWriter, code int, contentType string, text []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(code)
	_, _ = w.Write(text)
}
