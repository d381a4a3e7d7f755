package informer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/internal/listwatch"
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
	// namespace kube-system).
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

// dated is a ListerWatcher that can tell how old the data of its server is.
type dated interface {
	// notOlderThan asks the server whether it has a resource version. An error of the
	// kind listwatch.TooLarge says that it has not, another one that it should be asked
	// again later.
	notOlderThan(ctx context.Context, resourceVersion string) error
}

// checkNotOlder returns what lw, a ListerWatcher, says of a resource version. One that
// is not of this package is believed to have it.
//
// A kube-apiserver does not refuse a watch from a version that it will have in the
// future, as after a restore of its etcd from a backup: it says nothing until it has
// come to that version, and nothing of what it was before.
func checkNotOlder(ctx context.Context, lw interface{}, resourceVersion string) error {
	if d, ok := lw.(dated); ok {
		return d.notOlderThan(ctx, resourceVersion)
	}
	return nil
}

func (f filtered) notOlderThan(ctx context.Context, resourceVersion string) error {
	return checkNotOlder(ctx, f.lw, resourceVersion)
}

// notOlderThan asks for a namespace, which costs nothing, and for an object of the
// resource where that is not answered, or with no: the resource may have an etcd, and
// versions, of its own, as events often do. The server waits some seconds for data that
// is not older, whether or not there is such an object. If the namespace says that they
// are older, and the resource says nothing, that counts.
func (lw resourceListerWatcher) notOlderThan(ctx context.Context, resourceVersion string) error {
	ctx, cancel := context.WithTimeout(ctx, clusterPatience)
	defer cancel()
	var older error
	if lw.resource.Resource != "events" {
		err := lw.kubeSystem().Param("resourceVersion", resourceVersion).Do(ctx).Error()
		var answer apierrors.APIStatus
		switch {
		case err == nil || hasNone(err):
			return nil
		case !errors.As(err, &answer):
			return err
		case listwatch.Classify(err) == listwatch.TooLarge:
			older = err
		}
	}
	err := lw.get().AbsPath(lw.path()...).
		SetHeader("Accept", metadataOnly).
		Param("limit", "1").
		Param("resourceVersion", resourceVersion).
		Param("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan)).
		MaxRetries(0).
		Do(ctx).Error()
	switch {
	case isRefusal(err):
		return nil
	case err != nil && older != nil && listwatch.Classify(err) != listwatch.TooLarge:
		return fmt.Errorf("%w; and of the resource: %v", older, err)
	}
	return err
}

// hasNone reports whether err is of a server that has looked for an object, and does not
// have it, and not of one that does not serve its resource.
func hasNone(err error) bool {
	var answer apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &answer) {
		return false
	}
	details := answer.Status().Details
	return details != nil && details.Name != ""
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

// clusterPatience is how long a server may take to say which cluster it is of.
const clusterPatience = 10 * time.Second

// cluster asks the server for the UID of the namespace kube-system. It is empty where
// the server has none, or none for us. An error is one that may be over later.
func (lw resourceListerWatcher) cluster(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, clusterPatience)
	defer cancel()
	body, err := lw.kubeSystem().Stream(ctx)
	if err != nil {
		if isRefusal(err) {
			return "", nil
		}
		return "", err
	}
	defer body.Close()
	const most = 1 << 20 // of what is no namespace
	text, err := io.ReadAll(io.LimitReader(body, most))
	if err != nil {
		return "", err
	}
	var namespace struct {
		Metadata struct{ UID string }
	}
	if json.Unmarshal(text, &namespace) != nil {
		return "", nil // a page of a proxy, for instance
	}
	return namespace.Metadata.UID, nil
}

// metadataOnly asks for no more of an object than its metadata.
const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// kubeSystem is a request for the namespace kube-system.
func (lw resourceListerWatcher) kubeSystem() *rest.Request {
	return lw.get().
		AbsPath("api", "v1", "namespaces", "kube-system").
		SetHeader("Accept", metadataOnly).
		MaxRetries(0) // the caller asks again
}

// isRefusal tells an answer that will be the same again from one that may be another
// later, and from none.
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
