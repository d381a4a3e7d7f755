package server

import (
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LacksResource reports whether an error of a list or a watch is the word of an API server that it
// has no such resource: a 404 with a Status, or with the text of its router. A 404 of something
// before it is a page of HTML, for instance.
func LacksResource(err error) bool {
	var answer apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &answer) {
		return false
	}
	details := answer.Status().Details
	return details == nil || !slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeUnexpectedServerResponse && strings.TrimSpace(c.Message) != "404 page not found"
	})
}
