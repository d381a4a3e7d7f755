package informer

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/rvinformer/informer/internal/checkpoint"
)

// sourced is a ListerWatcher that knows what it reads when it is asked with opts.
type sourced interface {
	// source may ask the server. An error means that it should be asked again later,
	// and what it says all the same is known.
	source(ctx context.Context, opts metav1.ListOptions) (checkpoint.Source, error)
}

// sourceOf returns what lw, a ListerWatcher, reads. Of one that is not of this
// package nothing is known.
func sourceOf(ctx context.Context, lw interface{}) (checkpoint.Source, error) {
	if s, ok := lw.(sourced); ok {
		return s.source(ctx, metav1.ListOptions{})
	}
	return checkpoint.Source{}, nil
}

func (f filtered) source(ctx context.Context, opts metav1.ListOptions) (checkpoint.Source, error) {
	opts = tweak(opts, f.tweak)
	if s, ok := f.lw.(sourced); ok {
		return s.source(ctx, opts)
	}
	return selected(opts), nil
}

func (lw resourceListerWatcher) source(ctx context.Context, opts metav1.ListOptions) (checkpoint.Source, error) {
	s := selected(tweak(opts, lw.tweaks...))
	u := lw.get().AbsPath().URL()
	s.Server = strings.TrimSuffix((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(), "/")
	s.Resource = lw.resource.Version + "/" + lw.resource.Resource
	if lw.resource.Group != "" {
		s.Resource = lw.resource.Group + "/" + s.Resource
	}
	s.Namespace = lw.namespace
	var err error
	if s.Cluster, err = lw.cluster(ctx); err != nil {
		return s, fmt.Errorf("UID of the namespace kube-system of %s: %w", s.Server, err)
	}
	return s, nil
}

// selected is a source with the selectors of opts. The order of what a selector asks
// for is of no matter to a server, and who makes one from a map has another one each
// time.
func selected(opts metav1.ListOptions) checkpoint.Source {
	s := checkpoint.Source{LabelSelector: opts.LabelSelector, FieldSelector: opts.FieldSelector}
	if selector, err := labels.Parse(s.LabelSelector); err == nil {
		s.LabelSelector = selector.String()
	}
	if selector, err := fields.ParseSelector(s.FieldSelector); err == nil {
		s.FieldSelector = selector.String()
	}
	return s
}
