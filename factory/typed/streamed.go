package typed

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/factory"
)

// streamed is a client-go informer over a listerWatcher.
type streamed struct {
	cache.SharedIndexInformer
	source *listerWatcher
}

// streamed makes an informer that lists and watches over the connections of the
// factory's rest.Config.
func (f *Factory) streamed(a ask, example runtime.Object) cache.SharedIndexInformer {
	lw := newListerWatcher(f.lists.ForResource(a.opts.Namespace, a.resource), example)
	lw.protobuf, lw.tweak, lw.transform = f.protobuf, f.requests, f.transform
	// With no example the reflector takes what a transform has made of the objects. Those
	// of the server are of its type: the source sees to that.
	made := cache.NewSharedIndexInformerWithOptions(lw, nil, cache.SharedIndexInformerOptions{
		ObjectDescription: fmt.Sprintf("%T", example),
		ResyncPeriod:      f.resync(a.kind.goType),
		Indexers:          cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
		Identifier:        f.informerName.WithResource(a.resource),
	})
	lw.stored = made.GetIndexer()
	s := &streamed{SharedIndexInformer: made, source: lw}
	// The registry sets it for client-go's own informers only. It cannot fail yet.
	_ = s.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		factory.NoteWatchError(ctx, r, err)
		cache.DefaultWatchErrorHandler(ctx, r, err)
	})
	return s
}

func (s *streamed) Run(stopCh <-chan struct{}) { s.RunWithContext(wait.ContextForChannel(stopCh)) }

// RunWithContext waits for the list under way too: client-go's informers leave it behind.
// A second one, beside the first, returns at once.
func (s *streamed) RunWithContext(ctx context.Context) {
	s.SharedIndexInformer.RunWithContext(ctx)
	if s.IsStopped() {
		s.source.close()
	}
}

// SetTransform has the source transform what it has decoded: client-go would transform
// the objects of a list that the informer has already, and others read, once more.
func (s *streamed) SetTransform(transform cache.TransformFunc) error {
	s.source.mu.Lock()
	defer s.source.mu.Unlock()
	if err := s.SharedIndexInformer.SetTransform(nil); err != nil {
		return err // it was started
	}
	s.source.transform = transform
	return nil
}
