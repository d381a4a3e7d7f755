package source

import (
	"bytes"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/wire"
)

// selected is what a list or a watch was asked to select, as far as an object shows it: by its
// labels, its name and its namespace. A server may ignore selectors. Nil selects everything.
type selected struct {
	labels, fields string
	selector       labels.Selector // nil for any labels
	names          fields.Requirements
	// read has the labels of the object at hand. Last are the encoded labels of the one before it,
	// because siblings have the same, and matched tells whether they match. Known tells that there
	// was one.
	read           wire.Metadata
	last           []byte
	format         wire.Format
	known, matched bool
}

// selectedBy returns what the selectors of opts select. A selector that cannot be read here is the
// server's.
func selectedBy(opts metav1.ListOptions) *selected {
	if opts.LabelSelector == "" && opts.FieldSelector == "" {
		return nil
	}
	s := &selected{labels: opts.LabelSelector, fields: opts.FieldSelector}
	if selector, err := labels.Parse(opts.LabelSelector); err == nil && !selector.Empty() {
		s.selector = selector
	}
	if selector, err := fields.ParseSelector(opts.FieldSelector); err == nil {
		for _, r := range selector.Requirements() {
			if r.Field == metav1.ObjectNameField || r.Field == "metadata.namespace" {
				s.names = append(s.names, r)
			}
		}
	}
	if s.selector == nil && len(s.names) == 0 {
		return nil
	}
	return s
}

// leavesOut reports whether an object is not what was selected. One that cannot be read may be.
func (s *selected) leavesOut(it *object.Item) bool {
	switch {
	case s == nil || !it.HasKey():
		return false
	case !s.isNamed(it.Key):
		return true
	case s.selector == nil:
		return false
	case it.Lent == nil:
		accessor, err := meta.Accessor(it.Object)
		return err == nil && !s.selector.Matches(labels.Set(accessor.GetLabels()))
	}
	if s.format != it.Lent.Format {
		s.last, s.known, s.format = s.last[:0], false, it.Lent.Format
	}
	encoded, ok := s.read.LabelsIn(&it.Lent.Item, s.last)
	if !ok {
		return false
	}
	if !s.known || !bytes.Equal(encoded, s.last) {
		s.read.ReadLabels(encoded, it.Lent.Format)
		s.matched = s.selector.Matches((*readLabels)(&s.read))
		s.last, s.known = append(s.last[:0], encoded...), true
	}
	return !s.matched
}

// isNamed reports whether a key, "namespace/name" or "name", is selected.
func (s *selected) isNamed(key string) bool {
	slash := strings.IndexByte(key, '/')
	for _, r := range s.names {
		value := key[slash+1:]
		if r.Field != metav1.ObjectNameField {
			value = key[:max(slash, 0)]
		}
		if (value == r.Value) != (r.Operator != selection.NotEquals) {
			return false
		}
	}
	return true
}

// readLabels are the labels that were read, for a labels.Selector. It lends strings to that.
type readLabels wire.Metadata

var _ labels.Labels = (*readLabels)(nil)

// Lookup implements labels.Labels. Of labels with the same key, the last one counts.
func (l *readLabels) Lookup(label string) (value string, exists bool) {
	for i := len(l.Labels) - 1; i >= 0; i-- {
		if string(l.Labels[i].Key) == label {
			return object.LentString(l.Labels[i].Value), true
		}
	}
	return "", false
}

// Has implements labels.Labels.
func (l *readLabels) Has(label string) bool {
	_, exists := l.Lookup(label)
	return exists
}

// Get implements labels.Labels.
func (l *readLabels) Get(label string) string {
	value, _ := l.Lookup(label)
	return value
}

// selectChange makes what was selected of a change. An object that does not match, or not any more,
// is deleted for the caller, as a kube-apiserver tells it. Begins tells that the change is one of the
// initial events: the caller has not been told of the object then.
func (s *Source) selectChange(c *Change, of *selected, begins bool) {
	if of == nil || c.Outside || c.Unreadable != nil || c.Event == watch.Deleted || !of.leavesOut(&c.Item) {
		return
	}
	s.noteUnselected(&c.Item, of)
	if begins && c.Event == watch.Added {
		c.Outside = true
		return
	}
	c.Event, c.Item.Unselected = watch.Deleted, true
}

// noteUnselected counts an object that was sent although it was not selected. The first one is
// reported.
func (s *Source) noteUnselected(it *object.Item, by *selected) {
	s.Report.CountUnselected()
	if !s.Memory.unselected.CompareAndSwap(false, true) {
		return
	}
	var selector string
	if by.isNamed(it.Key) {
		selector = fmt.Sprintf("the label selector %q", by.labels)
	} else {
		selector = fmt.Sprintf("the field selector %q", by.fields)
	}
	s.Report.Logger().Info("The server ignores a selector: what does not match is left out here", "selector", selector, "key", strings.Clone(it.Key))
	s.Report.Fail(it.Unreadable(fmt.Errorf("it does not match %s, which the server ignores; more such objects are only counted", selector)))
}
