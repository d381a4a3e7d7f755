package objectcache

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// Handlers returns how many handlers an informer has.
func Handlers(i *Informer) int {
	i.changelog.mu.Lock()
	defer i.changelog.mu.Unlock()
	return len(i.changelog.handlers)
}

// IsRegistered reports whether an informer has a handler.
func IsRegistered(i *Informer, handle cache.ResourceEventHandlerRegistration) bool {
	i.changelog.mu.Lock()
	defer i.changelog.mu.Unlock()
	return slices.Contains(i.changelog.handlers, handle.(*registration))
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

// SaveUnobserved has the store of an informer that has stopped take a change whose version it does
// not observe, and saves it.
func SaveUnobserved(ctx context.Context, i *Informer, obj *unstructured.Unstructured) error {
	_, err := i.into.Put(ctx, watch.Modified, object.Item{
		Key: cache.MetaObjectToName(obj).String(), Object: obj, Version: keytable.Version{ResourceVersion: obj.GetResourceVersion(), UID: obj.GetUID()},
	})
	i.snapshots.End(ctx)
	return err
}

// Renames returns how many objects an informer knows that Transform has renamed.
func Renames(i *Informer) int { return len(i.into.renames.keys) }

// PutEncoded has an informer store bytes that may be anything as those of an object, as it does
// with a change of a watch.
func PutEncoded(ctx context.Context, i *Informer, obj runtime.Object, bytes []byte) error {
	e, err := i.store.encodeObject(obj, metav1.TypeMeta{})
	if err != nil {
		return err
	}
	e.object, e.bytes = nil, bytes
	return i.into.put(ctx, object.Item{Key: e.key}, e)
}

// ListEncoded does the same with a list.
func ListEncoded(ctx context.Context, i *Informer, obj runtime.Object, bytes []byte) error {
	g, err := i.into.Begin(ctx)
	if err != nil {
		return err
	}
	return errors.Join(PutEncoded(ctx, i, obj, bytes), g.End(ctx, "9", true))
}

// ErrSecrets is the error of an informer of Secrets with a Snapshot.
var ErrSecrets = errSecrets

// WriteState writes the objects of an informer as a snapshot has them.
func WriteState(i *Informer, w io.Writer) error {
	return saved{i}.State().Write(checkpoint.NewSnapshotWriter(w).Payload())
}

// ErrUnknownKind is the error of an informer with a Snapshot of objects whose kind is not known.
var ErrUnknownKind = errUnknownKind
