package server

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/internal/leaf/checkpoint"
)

// patience is how long a server may take to say which cluster it is of.
const patience = 10 * time.Second

// Identify returns what a list without options reads: the server, the resource, the selectors and
// the cluster. If it fails, it should be asked again later; the source lacks the cluster then.
func (r *Resource) Identify(ctx context.Context) (checkpoint.Source, error) {
	s := selection(r.tweaks.apply(metav1.ListOptions{}))
	s.Server = r.Address()
	s.Resource = r.resource.Version + "/" + r.resource.Resource
	if r.resource.Group != "" {
		s.Resource = r.resource.Group + "/" + s.Resource
	}
	s.Namespace = r.namespace
	var err error
	if s.Cluster, err = r.cluster(ctx); err != nil {
		return s, fmt.Errorf("UID of the namespace kube-system of %s: %w", s.Server, err)
	}
	return s, nil
}

// Address is the URL of the server, without a slash at its end.
func (r *Resource) Address() string { return r.server.link.Load().address }

// selection is a source with the selectors of opts. They are normalized, because the order of
// their requirements does not matter, and differs each time if they are made from a map.
func selection(opts metav1.ListOptions) checkpoint.Source {
	s := checkpoint.Source{LabelSelector: opts.LabelSelector, FieldSelector: opts.FieldSelector}
	if selector, err := labels.Parse(s.LabelSelector); err == nil {
		s.LabelSelector = selector.String()
	}
	if selector, err := fields.ParseSelector(s.FieldSelector); err == nil {
		s.FieldSelector = selector.String()
	}
	return s
}

// cluster asks the server for the UID of the namespace kube-system. It is empty if the server
// has no such namespace, or forbids it. An error is one that may be over later.
func (r *Resource) cluster(ctx context.Context) (string, error) {
	uid, err := namespaceUID(ctx, r.kubeSystem())
	if isRefusal(err) {
		return "", nil
	}
	return uid, err
}

// kubeSystem is a request for the namespace kube-system.
func (r *Resource) kubeSystem() *rest.Request {
	if r.origin != nil {
		return r.origin.kubeSystem()
	}
	return r.get().
		AbsPath("api", "v1", "namespaces", "kube-system").
		SetHeader("Accept", metadataOnly).
		MaxRetries(0) // the caller asks again
}

// namespaceUID is the UID of the namespace that a request is for.
func namespaceUID(ctx context.Context, request *rest.Request) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	namespace, err := readSmall[struct{ Metadata smallMeta }](ctx, request)
	return namespace.Metadata.UID, err
}

// Responds reports whether the server answers a list of the resource.
func (r *Resource) Responds(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	const any = "1" // every state is newer, and unlike for "0", one object stays one
	_, _, err := r.list(ctx, "", any)
	return err == nil
}
