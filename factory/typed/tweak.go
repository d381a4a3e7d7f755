package typed

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/utils/ptr"
)

// selectors are what a tweak asks for, as far as anybody can know.
type selectors struct {
	labels, fields string
	// opaque tells that the tweak does more than to set these, or not always the
	// same: then no other tweak is the same.
	opaque bool
}

// selectorsOf tries a tweak on options that say nothing and on some that say much.
func selectorsOf(tweak internalinterfaces.TweakListOptionsFunc) selectors {
	if tweak == nil {
		return selectors{}
	}
	var first metav1.ListOptions
	tweak(&first)
	known := selectors{labels: first.LabelSelector, fields: first.FieldSelector}
	for _, asked := range []metav1.ListOptions{
		{},
		{ResourceVersion: "0", Limit: 500},
		{Continue: "token", Limit: 500},
		{ResourceVersion: "12", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true, SendInitialEvents: ptr.To(true), TimeoutSeconds: ptr.To[int64](421)},
		{Watch: true, ResourceVersion: "12", AllowWatchBookmarks: true, TimeoutSeconds: ptr.To[int64](421)},
	} {
		got, want := *asked.DeepCopy(), *asked.DeepCopy()
		tweak(&got)
		want.LabelSelector, want.FieldSelector = known.labels, known.fields
		known.opaque = known.opaque || !reflect.DeepEqual(got, want)
	}
	return known
}

// tweakTo returns the tweak that sets the selectors, and nothing else.
func (s selectors) tweakTo(opts *metav1.ListOptions) {
	opts.LabelSelector, opts.FieldSelector = s.labels, s.fields
}
