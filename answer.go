package informer

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/internal/redact"
)

const (
	// maxErrorBody is how much is read of an answer that is an error, decompressed.
	maxErrorBody = 64 << 10
	// errorBodyPatience is how long reading it may take in all. It is shorter than
	// clusterPatience, so that a stalled refusal still counts as a refusal there.
	errorBodyPatience = 5 * time.Second
	// maxErrorText is how much of a server's text an error keeps.
	maxErrorText = 2 << 10
)

func isError(response *http.Response) bool {
	return response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusMultipleChoices
}

// readErrorBody replaces the body of an answer that is an error with what can be read of
// it in time. The status code says most of what a caller needs, so a body that is cut, or
// breaks, is no failure.
func readErrorBody(response *http.Response) {
	body, closed := response.Body, make(chan struct{})
	late := time.AfterFunc(errorBodyPatience, func() {
		defer close(closed)
		body.Close()
	})
	text, _ := io.ReadAll(io.LimitReader(body, maxErrorBody))
	if late.Stop() {
		body.Close()
	} else {
		<-closed
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
}

// answerError returns err, with which a request has failed, with a text that is short and
// has no credentials. A Status keeps what callers decide by.
func answerError(err error) error {
	if err == nil {
		return nil
	}
	if refusal, ok := err.(*apierrors.StatusError); ok {
		return &apierrors.StatusError{ErrStatus: shortStatus(refusal.ErrStatus)}
	}
	text := err.Error()
	var unexpected *apierrors.UnexpectedObjectError
	if errors.As(err, &unexpected) { // its text is the object
		return &answered{err, "an object that is no Status, where a server reports an error"}
	}
	if short := serverText(text); short != text {
		return &answered{err, short}
	}
	return err
}

// answered is an error with another text.
type answered struct {
	err  error
	text string
}

func (e *answered) Error() string { return e.text }
func (e *answered) Unwrap() error { return e.err }

func serverText(text string) string { return redact.Short(text, maxErrorText) }

// shortStatus returns a copy of status without long texts. Its list metadata is dropped.
func shortStatus(status metav1.Status) metav1.Status {
	const maxName, maxCauses = 256, 16
	name := func(text string) string { return redact.Short(text, maxName) }
	status.ListMeta = metav1.ListMeta{}
	status.APIVersion, status.Kind, status.Status = name(status.APIVersion), name(status.Kind), name(status.Status)
	status.Message, status.Reason = serverText(status.Message), metav1.StatusReason(name(string(status.Reason)))
	if status.Details == nil {
		return status
	}
	details := *status.Details
	details.Name, details.Group, details.Kind = name(details.Name), name(details.Group), name(details.Kind)
	if len(details.UID) > maxName {
		details.UID = ""
	}
	left := maxErrorText
	var causes []metav1.StatusCause
	for _, cause := range details.Causes[:min(len(details.Causes), maxCauses)] {
		cause.Type, cause.Field = metav1.CauseType(name(string(cause.Type))), name(cause.Field)
		cause.Message = redact.Short(cause.Message, left)
		left = max(0, left-len(cause.Message))
		causes = append(causes, cause)
	}
	details.Causes = causes
	status.Details = &details
	return status
}
