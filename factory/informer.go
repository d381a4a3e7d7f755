package factory

import (
	"context"
	"errors"
	"reflect"

	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
)

// Informer is what a factory runs: a cache.SharedIndexInformer, an
// informer.ResourceVersionInformer, or an *informer.SharedResourceVersionInformer.
type Informer interface {
	// RunWithContext runs it until ctx ends, and returns when its goroutines have ended.
	RunWithContext(ctx context.Context)
	HasSyncedChecker() cache.DoneChecker
}

var (
	_ Informer = cache.SharedIndexInformer(nil)
	_ Informer = informer.ResourceVersionInformer(nil)
	_ Informer = &informer.SharedResourceVersionInformer{}
)

// NewInformerFunc makes an informer, which must not run yet. The factory calls it
// with no lock held, once for each informer: it may ask the factory for others.
// It must not ask for the one that it is making, not even through another
// newFunc: that would wait for itself.
//
// If it panics, the panic is that of the InformerFor or Acquire that was given it. A caller
// that asks for the same informer meanwhile waits, and then tries with its own
// newFunc.
type NewInformerFunc func() cache.SharedIndexInformer

// NewResourceVersionInformerFunc is a NewInformerFunc for an
// informer.ResourceVersionInformer.
type NewResourceVersionInformerFunc func() informer.ResourceVersionInformer

var (
	errNoNewFunc  = errors.New("newFunc is nil")
	errNoInformer = errors.New("newFunc returned nil")

	errNoListerWatcher = errors.New("the configuration has no ListerWatcher")
	errHandler         = errors.New("the configuration has a handler: handlers are added to the informer, each with AddHandler")
)

// isNil reports whether there is nothing, or a pointer to nothing.
func isNil(i Informer) bool {
	v := reflect.ValueOf(i)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
