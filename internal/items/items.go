// Package items is what a ListerWatcher of the root package is to the typed factory:
// a source that lends the objects of a list or a watch one by one, while they arrive,
// and decodes those that somebody wants.
package items

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Source is implemented by the ListerWatchers of a DynamicListerWatcherFactory.
type Source interface {
	// Items returns a Reader of objects of the type of example: in protobuf, if that
	// is wanted and type and server have it, else in JSON.
	Items(example runtime.Object, protobuf bool) Reader
}

// Reader reads the pages of one list, or one watch. It belongs to one goroutine.
type Reader interface {
	// Page does one list request and calls each for its objects. An error of each ends
	// it, as does an object that can not be read. The error is an apierrors.APIStatus
	// where the server has answered with one, a *informer.ItemError, a
	// *informer.BodyError or a *informer.StallError.
	Page(ctx context.Context, opts metav1.ListOptions, each func(Item) error) (metav1.ListMeta, error)
	// Watch opens a watch.
	Watch(ctx context.Context, opts metav1.ListOptions) (Watch, error)
}

// Item is one object of a list. It is lent, with its strings, until the function that
// was given it returns.
type Item interface {
	// Key is namespace/name, or name.
	Key() string
	UID() types.UID
	ResourceVersion() string
	// Decode returns the object, with memory of its own.
	Decode() (runtime.Object, error)
}

// Watch is an open watch.
type Watch interface {
	// Next waits for an event and decodes its object. A bookmark is an object with
	// nothing but a resource version. The error is io.EOF for the ordinary end, else as
	// that of Page.
	Next(ctx context.Context) (watch.Event, error)
	// Close ends it. A Next under way returns.
	Close()
}
