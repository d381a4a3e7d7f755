package informertest

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/rvinformer/informer/api"
)

// selection says which objects of a resource a request is about. The zero value means all.
type selection struct {
	namespace string
	labels    labels.Selector // nil: any
	fields    fields.Selector // nil: any
	shards    []api.Shard     // nil: any
}

func newSelection(namespace string, opts *metav1.ListOptions) (selection, error) {
	sel := selection{namespace: namespace}
	byLabel, err := labels.Parse(opts.LabelSelector)
	if err != nil {
		return sel, apierrors.NewBadRequest(fmt.Sprintf("invalid label selector %q: %v", opts.LabelSelector, err))
	}
	byField, err := fields.ParseSelector(opts.FieldSelector)
	if err != nil {
		return sel, apierrors.NewBadRequest(fmt.Sprintf("invalid field selector %q: %v", opts.FieldSelector, err))
	}
	for _, term := range byField.Requirements() {
		if term.Field != "metadata.name" && term.Field != "metadata.namespace" {
			return sel, apierrors.NewBadRequest(fmt.Sprintf("field selector %q: the field label %q is not supported, only metadata.name and metadata.namespace are", opts.FieldSelector, term.Field))
		}
	}
	if sel.shards, err = parseShard(opts.ShardSelector); err != nil {
		return sel, apierrors.NewInternalError(fmt.Errorf("invalid shard selector: %w", err))
	}
	if !byLabel.Empty() {
		sel.labels = byLabel
	}
	if !byField.Empty() {
		sel.fields = byField
	}
	return sel, nil
}

// selective reports whether the selection asks for more than a namespace.
func (s selection) selective() bool { return s.labels != nil || s.fields != nil || s.shards != nil }

// parseShard reads a shardSelector, of one range or of several.
func parseShard(selector string) (parts []api.Shard, _ error) {
	if selector == "" {
		return nil, nil
	}
	for term := range strings.SplitSeq(selector, " || ") {
		part, err := api.ParseShard(term)
		switch {
		case err != nil:
			return nil, err
		case len(parts) > 0 && part.Key != parts[0].Key:
			return nil, fmt.Errorf("all shard ranges must use the same field, got %q and %q", parts[0].Key, part.Key)
		}
		parts = append(parts, part)
	}
	return parts, nil
}

func (s selection) matches(o *object) bool {
	if s.namespace != "" && s.namespace != o.namespace {
		return false
	}
	if s.labels != nil && !s.labels.Matches(o.labels) {
		return false
	}
	isInShard := func(of api.Shard) bool { return of.Includes(o.namespace, string(o.uid)) }
	if s.shards != nil && !slices.ContainsFunc(s.shards, isInShard) {
		return false
	}
	return s.fields == nil || s.fields.Matches(fields.Set{"metadata.name": o.name, "metadata.namespace": o.namespace})
}
