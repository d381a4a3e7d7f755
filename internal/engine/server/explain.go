package server

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/redact"
)

// check returns an error if there is no URL of the resource.
func (r *Resource) check() error {
	if r.resource.Version == "" || r.resource.Resource == "" {
		return fmt.Errorf("resource %q, version %q, group %q: the resource and its version must not be empty", r.resource.Resource, r.resource.Version, r.resource.Group)
	}
	if complaints := content.IsPathSegmentName(r.namespace); len(complaints) > 0 {
		return fmt.Errorf("namespace %q of a list of %v: %s", r.namespace, r.resource.GroupResource(), strings.Join(complaints, ", "))
	}
	return nil
}

// explain returns the error of a list or a watch with what a reader needs to find the cause: the
// name of the resource or object, where the server does not say it, and the setting that is
// probably wrong.
func (r *Resource) explain(err error) error {
	if !apierrors.IsNotFound(err) || hasNone(err) {
		return ExplainConnection(err)
	}
	hint := "is the resource installed in this version, and its name in the plural?"
	if r.namespace != "" {
		hint = fmt.Sprintf("is it in namespaces at all? It was asked for in the namespace %q. Or: %s", r.namespace, hint)
	}
	return fmt.Errorf("%v in version %q at %s: %w: %s", r.resource.GroupResource(), r.resource.Version, r.server.link.Load().config.Host, redact.Error(err), hint)
}

// ExplainConnection names the setting of the rest.Config that is probably wrong, if err says so.
func ExplainConnection(err error) error {
	var authority x509.UnknownAuthorityError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &authority):
		return fmt.Errorf("%w: the CA of the rest.Config has not signed the server's certificate", err)
	case speaksTLS(err):
		return fmt.Errorf("%w: the server takes no plain HTTP, so the Host of the rest.Config has to begin with https://", redact.Error(err))
	}
	return err
}

// secrets are the resource whose answers no error quotes, whatever they look like.
var secrets = schema.GroupResource{Resource: "secrets"}

// Unquoted returns the error of a list or a watch without the beginning of an answer that may have
// Secrets in it.
func (r *Resource) Unquoted(err error) error {
	var body *api.BodyError
	if r.GroupResource() == secrets && errors.As(err, &body) {
		body.Head = nil
	}
	return err
}

// speaksTLS reports whether err is the answer of a server of package net/http that expects TLS.
func speaksTLS(err error) bool {
	var answer apierrors.APIStatus
	if !apierrors.IsBadRequest(err) || !errors.As(err, &answer) || answer.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(answer.Status().Details.Causes, func(c metav1.StatusCause) bool {
		return strings.Contains(c.Message, "HTTP request to an HTTPS server")
	})
}
