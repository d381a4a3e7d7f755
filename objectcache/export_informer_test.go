package objectcache

import (
	"io"
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"
)

// Handlers returns how many handlers an informer has.
func Handlers(i *Informer) int {
	i.feed.mu.Lock()
	defer i.feed.mu.Unlock()
	return len(i.feed.handlers)
}

// IsRegistered reports whether an informer has a handler.
func IsRegistered(i *Informer, handle cache.ResourceEventHandlerRegistration) bool {
	i.feed.mu.Lock()
	defer i.feed.mu.Unlock()
	return slices.Contains(i.feed.handlers, handle.(*registration))
}

// IsStarted reports whether Run was called.
func IsStarted(i *Informer) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.started
}

// ResyncPeriod returns the resync period that a handler has.
func ResyncPeriod(handle cache.ResourceEventHandlerRegistration) time.Duration {
	r := handle.(*registration)
	r.informer.mu.Lock()
	defer r.informer.mu.Unlock()
	return r.period
}

// ResyncCheckPeriod returns how often an informer looks whether a resync is due.
func ResyncCheckPeriod(i *Informer) time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.resyncs.check
}

// ErrSecrets is the error of an informer of Secrets with a Snapshot.
var ErrSecrets = errSecrets

// WriteState writes the objects of an informer as a snapshot has them.
func WriteState(i *Informer, w io.Writer) error { return saved{i}.State().Write(w) }
