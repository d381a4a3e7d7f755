package informer

import (
	"context"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/rvinformer/informer/internal/items"
	"github.com/rvinformer/informer/internal/object"
)

var _ items.Source = resourceListerWatcher{}

// retriesOfClientGo is how often a request of client-go is made again if the server says when.
const retriesOfClientGo = 10

// Items implements items.Source.
func (lw resourceListerWatcher) Items(example runtime.Object, protobuf bool) items.Reader {
	lw = resourceListerWatcher{lw.Retrying(retriesOfClientGo)}
	f := object.Expect(example, "", object.Public{}).Form(protobuf, nil)
	if !protobuf {
		f.OnlyJSON()
	}
	return itemReader{
		session: &session{Reflector: NewNamedReflector("items", lw, example, nil, 0), form: f, prompt: true},
		goType:  reflect.TypeOf(example),
	}
}

// itemReader is a session without the machine: others decide what is read.
type itemReader struct {
	*session
	goType reflect.Type
}

func (r itemReader) Page(ctx context.Context, opts metav1.ListOptions, each func(items.Item) error) (metav1.ListMeta, error) {
	handed := &lentItem{}
	p, err := r.streamPage(ctx, opts, func(it object.Item, unreadable error) error {
		if unreadable != nil {
			return it.Unreadable(unreadable)
		}
		handed.it = it
		return each(handed)
	})
	return metav1.ListMeta{ResourceVersion: p.resourceVersion, Continue: p.next}, err
}

// lentItem is an item as an items.Item.
type lentItem struct{ it object.Item }

func (l *lentItem) Key() string             { return l.it.Key }
func (l *lentItem) UID() types.UID          { return l.it.Version.UID }
func (l *lentItem) ResourceVersion() string { return l.it.Version.ResourceVersion }

func (l *lentItem) Decode() (runtime.Object, error) { return l.it.Decode() }

func (r itemReader) Watch(ctx context.Context, opts metav1.ListOptions) (items.Watch, error) {
	asked := time.Duration(ptr.Deref(opts.TimeoutSeconds, 0)) * time.Second
	ctx, cancel := context.WithCancel(ctx)
	f, err := r.openFeed(ctx, opts, r.watchPatience(asked))
	if err != nil {
		cancel()
		return nil, err
	}
	return &itemWatch{itemReader: r, feed: f, cancel: cancel}, nil
}

// itemWatch is a feed as an items.Watch.
type itemWatch struct {
	itemReader
	feed   feed
	cancel context.CancelFunc
	told   change
	events int
}

func (w *itemWatch) Next(ctx context.Context) (watch.Event, error) {
	if err := w.feed.next(ctx, &w.told); err != nil {
		return watch.Event{}, err
	}
	w.told.it.Place = object.Place{Watch: true, Index: w.events}
	w.events++
	switch {
	case w.told.unreadable != nil:
		return watch.Event{}, w.told.it.Unreadable(w.told.unreadable)
	case w.told.event == watch.Bookmark:
		w.feed.expect(w.bookmarkPatience())
		return w.bookmark()
	}
	obj, err := (&lentItem{w.told.it}).Decode()
	return watch.Event{Type: w.told.event, Object: obj}, err
}

func (w *itemWatch) bookmark() (watch.Event, error) {
	obj := reflect.New(w.goType.Elem()).Interface().(runtime.Object)
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return watch.Event{}, err
	}
	accessor.SetResourceVersion(w.told.bookmark)
	return watch.Event{Type: watch.Bookmark, Object: obj}, nil
}

func (w *itemWatch) Close() {
	w.cancel()
	w.feed.close()
}
