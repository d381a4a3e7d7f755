package factory

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/leaf/claims"
)

// ask is a request to a factory for an informer.
type ask struct {
	key       Key
	transform Transform
	newFunc   func() Informer
	// settle decides on a transform that is not that of the informer that there is;
	// nil: it is taken all the same.
	settle func(*TransformConflictError) error
	// take is called with the factory's lock for the life that is given out.
	take func(*life)
}

// askForShared is an ask for a cache.SharedIndexInformer.
func askForShared(resource schema.GroupVersionResource, opts InformerOptions, newFunc NewInformerFunc) (ask, error) {
	key, err := NewKey(resource, opts)
	switch {
	case err != nil:
		return ask{}, err
	case key.InformerType == ResourceVersionInformer:
		return ask{}, &RequestError{Key: key, Err: errors.New("informers of this type are asked for with AcquireResourceVersion")}
	case key.InformerType == SharedResourceVersionInformer:
		return ask{}, &RequestError{Key: key, Err: errors.New("informers of this type are asked for with ResourceVersionInformerFor")}
	case newFunc == nil:
		return ask{}, &RequestError{Key: key, Err: errNoNewFunc}
	}
	return ask{key: key, transform: transformOf(opts), newFunc: func() Informer { return newFunc() }}, nil
}

// askForResourceVersion is an ask for an informer.ResourceVersionInformer.
func askForResourceVersion(resource schema.GroupVersionResource, opts InformerOptions, newFunc NewResourceVersionInformerFunc) (ask, error) {
	opts.InformerType = ResourceVersionInformer
	key, err := NewKey(resource, opts)
	switch {
	case err != nil:
		return ask{}, err
	case newFunc == nil:
		return ask{}, &RequestError{Key: key, Err: errNoNewFunc}
	}
	return ask{key: key, transform: transformOf(opts), newFunc: func() Informer { return newFunc() }}, nil
}

// askForSharedResourceVersion is an ask for an informer.SharedResourceVersionInformer.
func askForSharedResourceVersion(resource schema.GroupVersionResource, opts InformerOptions, config informer.InformerConfig) (ask, error) {
	opts.InformerType = SharedResourceVersionInformer
	switch {
	case opts.Shard.IsAll() && !config.Shard.IsAll():
		opts.Shard = config.Shard
	case config.Shard.IsAll():
		config.Shard = opts.Shard
	}
	key, err := NewKey(resource, opts)
	switch {
	case err != nil:
		return ask{}, err
	case config.Shard != opts.Shard:
		return ask{}, &RequestError{Key: key, Err: fmt.Errorf("the configuration has another shard: %v", config.Shard)}
	case config.ListerWatcher == nil:
		return ask{}, &RequestError{Key: key, Err: errNoListerWatcher}
	case config.Handler != nil || config.BatchHandler != nil:
		return ask{}, &RequestError{Key: key, Err: errHandler}
	}
	if config.Transform == nil {
		config.Transform = opts.ObjectTransform
	}
	newFunc := func() Informer { return informer.NewSharedResourceVersionInformer(key.String(), config) }
	return ask{key: key, transform: transformOf(opts), newFunc: newFunc}, nil
}

// answer returns the informer that there is, or else makes it.
func (f *Factory) answer(a ask) (*life, Informer, error) {
	f.noteStopped(a.key)
	for {
		l, built := f.find(a)
		if built == nil { // it is ours to build
			i, err := f.build(l, a)
			return l, i, err
		}
		<-built
		if i, ok, err := f.join(l, a); ok {
			return l, i, err
		}
		// It was not made, or stopped right away.
	}
}

// noteStopped ends the life of a key if others ran its informer, and have stopped it.
func (f *Factory) noteStopped(key Key) {
	f.mu.Lock()
	l := f.lives[key]
	if l == nil || l.stage == building || l.stage == ended {
		f.mu.Unlock()
		return
	}
	i := l.informer
	f.mu.Unlock()
	if isStopped(i) {
		f.mu.Lock()
		defer f.mu.Unlock()
		switch {
		case l.stage == idle:
			l.end()
		case l.active():
			l.stopped = true
			l.cancel()
		}
	}
}

// find returns the life of a key, and what is closed when it is built; nil if there was no
// life, and it is the caller's to build.
func (f *Factory) find(a ask) (l *life, built <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.lives[a.key]; l != nil && l.stage == building {
		return l, l.built
	} else if l != nil && !l.over() {
		return l, closed
	}
	l = newLife(a.key, a.transform)
	f.lives[a.key] = l // in the place of one that is over, and ends by itself
	return l, nil
}

// join takes a life that others have built; ok is false if it is of no use.
func (f *Factory) join(l *life, a ask) (i Informer, ok bool, err error) {
	f.mu.Lock()
	if f.lives[a.key] != l || l.stage == building || l.over() {
		f.mu.Unlock()
		return nil, false, nil
	}
	if l.transform.same(a.transform) || a.settle == nil {
		defer f.mu.Unlock()
		a.take(l)
		return l.informer, true, nil
	}
	f.mu.Unlock()
	if err := a.settle(&TransformConflictError{Key: a.key, Have: l.transform, Asked: a.transform}); err != nil {
		return nil, true, err
	}
	a.settle = nil
	return f.join(l, a)
}

// build makes the informer of a life that find has returned.
func (f *Factory) build(l *life, a ask) (Informer, error) {
	var made Informer
	var synced <-chan struct{}
	defer func() { // also when newFunc panics, or ends its goroutine
		f.mu.Lock()
		defer f.mu.Unlock()
		if made != nil {
			l.stage, l.informer, l.synced = idle, made, synced
			a.take(l)
		} else {
			delete(f.lives, l.key)
		}
		close(l.built)
		l.built = nil
	}()
	i := a.newFunc()
	if isNil(i) {
		return nil, &RequestError{Key: a.key, Err: errNoInformer}
	}
	noteErrorsOf(i)
	if shared, ok := i.(cache.SharedIndexInformer); ok {
		l.claim = claims.IdentityOf(shared)
	}
	made, synced = i, i.HasSyncedChecker().Done()
	return i, nil
}
