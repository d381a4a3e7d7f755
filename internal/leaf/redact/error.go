package redact

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxErrorText is how much of a server's text an error keeps.
const maxErrorText = 2 << 10

// Error returns err, the error of a request, with a text that is short and has no credentials.
// A Status keeps everything that callers decide by.
func Error(err error) error {
	if err == nil {
		return nil
	}
	if refusal, ok := err.(*apierrors.StatusError); ok {
		return &apierrors.StatusError{ErrStatus: shortStatus(refusal.ErrStatus)}
	}
	text := err.Error()
	var unexpected *apierrors.UnexpectedObjectError
	if errors.As(err, &unexpected) { // its text is the object
		return &redacted{err, "an object that is no Status, where a server reports an error"}
	}
	if short := serverText(text); short != text {
		return &redacted{err, short}
	}
	return err
}

// redacted is an error with another text.
type redacted struct {
	err  error
	text string
}

func (e *redacted) Error() string { return e.text }
func (e *redacted) Unwrap() error { return e.err }

// Same reports whether a, which Error has returned, is of the error b.
func Same(a, b error) bool {
	if r, ok := a.(*redacted); ok {
		a = r.err
	}
	return a == b
}

func serverText(text string) string { return Short(text, maxErrorText) }

// shortStatus returns a copy of status without long texts. It drops the list metadata.
func shortStatus(status metav1.Status) metav1.Status {
	const maxName, maxCauses = 256, 16
	name := func(text string) string { return Short(text, maxName) }
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
		cause.Message = Short(cause.Message, left)
		left = max(0, left-len(cause.Message))
		causes = append(causes, cause)
	}
	details.Causes = causes
	status.Details = &details
	return status
}
