package typed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/backoff"
	"github.com/rvinformer/informer/internal/listwatch"
	"github.com/rvinformer/informer/internal/object"
	"github.com/rvinformer/informer/internal/report"
	"github.com/rvinformer/informer/internal/rv"
	"github.com/rvinformer/informer/internal/server"
	"github.com/rvinformer/informer/internal/source"
)

// listerWatcher lists and watches for one informer. It reads lists off the wire,
// object by object, and what the informer has in the same version it has again. What it
// returns is transformed.
type listerWatcher struct {
	resource *server.Resource
	example  runtime.Object
	protobuf bool
	tweak    internalinterfaces.TweakListOptionsFunc
	// stored has the informer's objects.
	stored cache.Store

	mu        sync.Mutex
	transform cache.TransformFunc
	// listed is how many objects the last list had.
	listed int
	// newest is the newest resource version that the server has told.
	newest string
	// listing counts the lists under way, and idle is told when there is none. Nothing
	// is listed after closed.
	listing int
	idle    sync.Cond
	closed  bool
}

// newListerWatcher reads what lw reads, a ListerWatcher of a DynamicListerWatcherFactory.
func newListerWatcher(lw cache.ListerWatcher, example runtime.Object) *listerWatcher {
	s := &listerWatcher{resource: server.Of(lw).Retrying(retriesOfClientGo), example: example}
	s.idle.L = &s.mu
	return s
}

var _ cache.ListerWatcherWithContext = &listerWatcher{}

// retriesOfClientGo is how often a request of client-go is made again if the server says when.
const retriesOfClientGo = 10

// newSource returns a source of one list, or one watch.
func (s *listerWatcher) newSource() *source.Source {
	expected := object.Expect(s.example, "", object.Public{})
	form := expected.Form(s.protobuf, nil)
	if !s.protobuf {
		form.OnlyJSON()
	}
	return source.New(source.Options{
		ListerWatcher: s.resource,
		Memory:        &source.Memory{},
		Expected:      &expected,
		Form:          &form,
		Prompt:        true,
		Report:        &report.Report{Handler: utilruntime.HandleError},
	})
}

// IsWatchListSemanticsUnSupported has reflectors list: they would collect a watch-list
// in a store of its own, decoded anew.
func (s *listerWatcher) IsWatchListSemanticsUnSupported() bool { return true }

func (s *listerWatcher) List(opts metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), opts)
}

func (s *listerWatcher) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), opts)
}

// close waits for the lists under way, whose context has ended.
func (s *listerWatcher) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for s.listing > 0 {
		s.idle.Wait()
	}
}

// begin begins a list, unless it is too late.
func (s *listerWatcher) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.listing++
	return true
}

func (s *listerWatcher) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listing--
	s.idle.Broadcast()
}

// ListWithContext returns all objects: it reads the pages itself, as large as opts ask
// for. An error is that of the whole list, so that nothing counts as deleted that
// could not be read.
func (s *listerWatcher) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	if !s.begin() {
		return nil, context.Canceled
	}
	defer s.end()
	l := s.newListing()
	list, err := l.read(ctx, opts)
	if err == nil && (l.restored || rv.Compare(list.ResourceVersion, l.told) == rv.Older) {
		// The server was restored. It gives its versions anew, to other states too: the
		// same version says nothing.
		anew := s.newListing()
		anew.decodeAll = true
		list, err = anew.read(ctx, opts)
	}
	if err != nil {
		return nil, err // not a typed nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed, s.newest = len(list.Items), list.ResourceVersion
	return list, nil
}

// reached notes what a watch has told.
func (s *listerWatcher) reached(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rv.Compare(s.newest, version) == rv.Older {
		s.newest = version
	}
}

// listing is one list.
type listing struct {
	*listerWatcher
	transform cache.TransformFunc
	reader    *source.Source
	// room is about how many objects there will be.
	room int
	// continued tells that more than the first page was asked for.
	continued bool
	// told is the newest resource version that the server had told before, and restored
	// tells that it has objects of no newer version that it has not told of.
	told     string
	restored bool
	// decodeAll tells that what is stored is not to be trusted.
	decodeAll bool
}

func (s *listerWatcher) newListing() *listing {
	const some = 16
	s.mu.Lock()
	defer s.mu.Unlock()
	return &listing{listerWatcher: s, transform: s.transform, reader: s.newSource(), room: s.listed + s.listed/some, told: s.newest}
}

// read reads the whole list.
func (l *listing) read(ctx context.Context, opts metav1.ListOptions) (*internalversion.List, error) {
	list, err := l.pages(ctx, opts)
	if err != nil && opts.Continue == "" && l.continued && (apierrors.IsResourceExpired(err) || errors.Is(err, errCircular)) {
		// The later pages were too late, or have no end. As client-go does: all at once.
		opts.Limit = 0
		list, err = l.pages(ctx, opts)
	}
	return list, err
}

// errCircular says that the pages of a list have no end.
var errCircular = errors.New("a page has the continue token or the first object of an earlier page")

// emptyPause is how long to wait after a page without an object that is not the last.
const emptyPause = time.Second

func (l *listing) pages(ctx context.Context, opts metav1.ListOptions) (*internalversion.List, error) {
	list := &internalversion.List{Items: make([]runtime.Object, 0, l.room)}
	for read := (listwatch.Listing{}); ; {
		first := ""
		head, err := l.reader.Page(ctx, l.tweaked(opts), func(it object.Item, unreadable error) error {
			if unreadable != nil {
				return it.Unreadable(unreadable)
			}
			if first == "" {
				first = strings.Clone(it.Key)
			}
			obj, err := l.object(it)
			list.Items = append(list.Items, obj)
			return err
		})
		var lost *informer.ItemError
		if errors.As(err, &lost) {
			return nil, fmt.Errorf("the list is given up, for nothing may be missing: %w", err)
		}
		if err != nil {
			return nil, err
		}
		if list.ResourceVersion == "" {
			list.ResourceVersion = head.ResourceVersion
		}
		if head.Continue == "" {
			return list, nil
		}
		if read.Pages > 0 && read.Circular(head.Continue, first) {
			return nil, errCircular
		}
		if read = read.Turned(head.Continue, first); first == "" {
			if err := backoff.Sleep(ctx, emptyPause); err != nil {
				return nil, err
			}
		}
		l.continued = true
		opts.Continue, opts.ResourceVersion, opts.ResourceVersionMatch = head.Continue, "", ""
	}
}

// object returns the informer's own object, if it is the same.
func (l *listing) object(it object.Item) (runtime.Object, error) {
	stored, is := l.compare(it)
	if is == same && !l.decodeAll {
		return stored, nil
	}
	l.restored = l.restored || is == other && rv.NotNewer(it.Version.ResourceVersion, l.told)
	obj, err := it.Decode()
	if err != nil {
		return nil, err
	}
	return transformed(obj, l.transform)
}

// likeness is what the informer's own object is to one that is listed.
type likeness int

const (
	// unknown: a transform has taken away what would tell.
	unknown likeness = iota
	// same object in the same version.
	same
	// other object or version, or none.
	other
)

// compare compares an object with the informer's own of that key.
func (l *listing) compare(it object.Item) (runtime.Object, likeness) {
	stored, exists, err := l.stored.GetByKey(it.Key)
	if err != nil || !exists {
		return nil, other
	}
	obj, ok := stored.(runtime.Object)
	if !ok {
		return nil, unknown
	}
	accessor, err := meta.Accessor(obj)
	switch {
	case err != nil || accessor.GetResourceVersion() == "" || accessor.GetUID() == "" && it.Version.UID != "":
		return nil, unknown
	case accessor.GetResourceVersion() != it.Version.ResourceVersion || accessor.GetUID() != it.Version.UID:
		return nil, other
	}
	return obj, same
}

func (s *listerWatcher) transformer() cache.TransformFunc {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.transform
}

func (s *listerWatcher) tweaked(opts metav1.ListOptions) metav1.ListOptions {
	if s.tweak != nil {
		s.tweak(&opts)
	}
	return opts
}

func transformed(obj runtime.Object, transform cache.TransformFunc) (runtime.Object, error) {
	if transform == nil {
		return obj, nil
	}
	changed, err := transform(obj)
	if err != nil {
		return nil, fmt.Errorf("transform: %w", err)
	}
	result, ok := changed.(runtime.Object)
	if !ok {
		return nil, fmt.Errorf("transform: it returned a %T, which is no runtime.Object", changed)
	}
	return result, nil
}

// WatchWithContext watches on the same connections.
func (s *listerWatcher) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	ctx, cancel := context.WithCancel(ctx)
	reader := s.newSource()
	opened, err := reader.Watch(ctx, s.tweaked(opts))
	if err != nil {
		cancel()
		return nil, err
	}
	return newFollowing(ctx, cancel, s, opened, reader.Patience.Bookmarked()), nil
}
