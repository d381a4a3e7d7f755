package informer

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// ErrCheckpointSource says that a checkpoint is of other objects than those that an
// informer is to follow. It comes within a *CheckpointSourceError.
var ErrCheckpointSource = errors.New("checkpoint of another source")

// CheckpointSourceError says in what the source of a checkpoint is not that of the
// informer. Resource versions of the one say nothing about the other: what changed
// would be taken for unchanged, and what another selector leaves out for deleted.
type CheckpointSourceError struct {
	// Differences are never none.
	Differences []CheckpointSourceDifference
}

// CheckpointSourceDifference is one thing in which two sources differ.
type CheckpointSourceDifference struct {
	// Field is "server" (the URL), "resource" ("apps/v1/deployments" or "v1/pods"),
	// "namespace", "labelSelector", "fieldSelector" or "cluster" (the UID of the
	// namespace kube-system or, where that cannot be read, an object that tells).
	Field string
	// Saved is what the checkpoint says, and Wanted what the informer follows. Empty
	// stands for all, or for something that is not known.
	Saved, Wanted string
}

func (e *CheckpointSourceError) Error() string {
	var differences []string
	for _, d := range e.Differences {
		differences = append(differences, fmt.Sprintf("%s is %q, not %q", d.Field, d.Saved, d.Wanted))
	}
	return fmt.Sprintf("%v: %s", ErrCheckpointSource, strings.Join(differences, ", "))
}

// Unwrap returns ErrCheckpointSource.
func (e *CheckpointSourceError) Unwrap() error { return ErrCheckpointSource }

// checkpointSource says what a checkpoint is of. Empty is what is not known, or, of
// a namespace and selectors, all.
type checkpointSource struct {
	// Server is its URL as far as a client needs it: scheme, host and path.
	Server string
	// Resource is group/version/resource, or version/resource.
	Resource  string
	Namespace string
	// The selectors are in an order that does not depend on how they were made.
	LabelSelector, FieldSelector string
	// Cluster is the UID of the namespace kube-system, which a cluster gets when it is
	// made and keeps. Clusters that were made of one backup have the same one.
	Cluster string
}

// field is a part of a source, under its name in the metadata of a checkpoint.
type field struct {
	name  string
	value *string
}

func (s *checkpointSource) fields() []field {
	return []field{
		{"server", &s.Server},
		{"resource", &s.Resource},
		{"namespace", &s.Namespace},
		{"labelSelector", &s.LabelSelector},
		{"fieldSelector", &s.FieldSelector},
		{"cluster", &s.Cluster},
	}
}

// metadata is the source as a checkpoint has it. What is empty is left out.
func (s checkpointSource) metadata() map[string]string {
	m := map[string]string{}
	for _, f := range s.fields() {
		if *f.value != "" {
			m[f.name] = *f.value
		}
	}
	return m
}

// checkpointSourceFrom reads what metadata has returned. Other names do not matter.
func checkpointSourceFrom(metadata map[string]string) (s checkpointSource) {
	for _, f := range s.fields() {
		*f.value = metadata[f.name]
	}
	return s
}

// check returns a *CheckpointSourceError if saved, which a checkpoint is of, is not
// s. Clusters are compared only where both are known: not everybody may read
// kube-system, and not at all times.
func (s checkpointSource) check(saved checkpointSource) error {
	var differences []CheckpointSourceDifference
	theirs := saved.fields()
	for i, f := range s.fields() {
		wanted, saved := *f.value, *theirs[i].value
		if wanted == saved || f.value == &s.Cluster && (wanted == "" || saved == "") {
			continue
		}
		differences = append(differences, CheckpointSourceDifference{Field: f.name, Saved: saved, Wanted: wanted})
	}
	if len(differences) == 0 {
		return nil
	}
	return &CheckpointSourceError{Differences: differences}
}

// sourced is a ListerWatcher that knows what it reads when it is asked with opts.
type sourced interface {
	// source may ask the server. An error means that it should be asked again later,
	// and what it says all the same is known.
	source(ctx context.Context, opts metav1.ListOptions) (checkpointSource, error)
}

// sourceOf returns what lw, a ListerWatcher, reads. Of one that is not of this
// package nothing is known.
func sourceOf(ctx context.Context, lw interface{}) (checkpointSource, error) {
	if s, ok := lw.(sourced); ok {
		return s.source(ctx, metav1.ListOptions{})
	}
	return checkpointSource{}, nil
}

func (f filtered) source(ctx context.Context, opts metav1.ListOptions) (checkpointSource, error) {
	opts = tweak(opts, f.tweak)
	if s, ok := f.lw.(sourced); ok {
		return s.source(ctx, opts)
	}
	return selected(opts), nil
}

func (lw resourceListerWatcher) source(ctx context.Context, opts metav1.ListOptions) (checkpointSource, error) {
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
func selected(opts metav1.ListOptions) checkpointSource {
	s := checkpointSource{LabelSelector: opts.LabelSelector, FieldSelector: opts.FieldSelector}
	if selector, err := labels.Parse(s.LabelSelector); err == nil {
		s.LabelSelector = selector.String()
	}
	if selector, err := fields.ParseSelector(s.FieldSelector); err == nil {
		s.FieldSelector = selector.String()
	}
	return s
}
