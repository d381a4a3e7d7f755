package factory

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// InformerFactory gives out shared informers, and starts and waits for all of
// them. *Factory is one, and does more.
type InformerFactory interface {
	// Start starts all informers that were asked for and are not started yet. They
	// run until stopCh is closed. It does not wait.
	Start(stopCh <-chan struct{})

	// InformerFor returns the informer of resource and opts: the one that there is,
	// whoever asked for it first, or else that of newFunc. One whose stop channel was
	// closed is none any more.
	InformerFor(resource schema.GroupVersionResource, opts InformerOptions, newFunc NewInformerFunc) StartableInformer

	// WaitForCacheSync waits until all informers that are started by now have synced,
	// and returns true, or false if stopCh is closed before. Where all have synced,
	// that is true whether stopCh is closed or not.
	WaitForCacheSync(stopCh <-chan struct{}) bool

	// Shutdown keeps informers from being started: from then on, Start does
	// nothing. It returns when all goroutines have ended, those of informers included
	// that end with a stop channel of the caller's. It may be called any number of
	// times, also at the same time; each call waits.
	Shutdown()
}

// NewSharedInformerFactory returns a factory for all namespaces and clusters. It
// is New, as an InformerFactory.
func NewSharedInformerFactory() InformerFactory { return New() }

// Factory is a registry of shared informers of any kind. It is safe for
// concurrent use, and none of its functions waits for a server, or calls anything
// with a lock held. New makes one; the zero value is none.
type Factory struct {
	mu sync.Mutex
	// lives has the informers by key. What has ended stays, unless something has told the
	// factory to let go of it, for WaitForCacheSync to say that it is not synced.
	lives map[Key]*life
	// active are the lives that have a goroutine, also those that are not in lives any more.
	active map[*life]struct{}
	// turns and stopContexts have only what is in use.
	turns        map[Key]*turn
	stopContexts map[<-chan struct{}]*stopContext
	// servers has those that are in use, by cluster.
	servers map[string]*serverUse
	// goroutines counts those that the factory has started.
	goroutines int
	// quiet is nil before Shutdown, and closed when there are no goroutines after it.
	quiet chan struct{}
}

var _ InformerFactory = &Factory{}

// New returns a factory without informers.
func New() *Factory {
	return &Factory{
		lives:        map[Key]*life{},
		active:       map[*life]struct{}{},
		turns:        map[Key]*turn{},
		stopContexts: map[<-chan struct{}]*stopContext{},
		servers:      map[string]*serverUse{},
	}
}
