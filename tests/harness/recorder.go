package harness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
)

// Batches is a BatchHandler that writes down its batches, as a Recorder writes down
// calls: "add a/b initial", "update a/b", "delete a/b", "delete a/b unknown", "sync
// a/b".
type Batches struct {
	// See, if set, is shown each batch first.
	See func(events []informer.Event)
	// Fail, if set, is asked what to return for a batch. What then is not acknowledged is not
	// written down.
	Fail func(batch []string) error

	mu  sync.Mutex
	all [][]string
	Recorder
}

// OnBatch implements BatchHandler.
func (b *Batches) OnBatch(_ context.Context, events []informer.Event) error {
	if b.See != nil {
		b.See(events)
	}
	var batch []string
	for _, e := range events {
		batch = append(batch, EventText(e))
	}
	var err error
	if b.Fail != nil {
		err = b.Fail(batch)
	}
	var failed informer.FailedEvents
	if err != nil && !errors.As(err, &failed) {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var taken []string
	for i, e := range events {
		if slices.ContainsFunc(failed, func(event informer.FailedEvent) bool { return event.Index == i }) {
			continue
		}
		taken = append(taken, batch[i])
		b.Record(batch[i], e.Object, e.Type != informer.Deleted)
	}
	b.all = append(b.all, taken)
	return err
}

// Sizes are those of the batches so far.
func (b *Batches) Sizes() (sizes []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, batch := range b.all {
		sizes = append(sizes, len(batch))
	}
	return sizes
}

// EventText is an event as a Recorder would write it down.
func EventText(e informer.Event) string {
	text := map[informer.EventType]string{informer.Added: "add ", informer.Updated: "update ", informer.Deleted: "delete ", informer.Synced: "sync "}[e.Type] + e.Key
	if e.Type == informer.Added && e.IsInInitialList {
		text += " initial"
	}
	if e.FinalStateUnknown {
		text += " unknown"
	}
	return text
}

// Only are the errors of a type among those that were reported.
func Only[E error](f *Failures) (of []E) {
	errs, _ := f.All()
	for _, err := range errs {
		var e E
		if errors.As(err, &e) {
			of = append(of, e)
		}
	}
	return of
}

// Deletions is a Recorder that keeps what it was told of deletions in Objects.
type Deletions struct {
	*Recorder
	Objects *[]interface{}
}

// OnDelete implements ResourceEventHandler.
func (d Deletions) OnDelete(obj interface{}) {
	*d.Objects = append(*d.Objects, obj)
	d.Recorder.OnDelete(obj)
}

// IgnoreErrors is an error handler that drops what it is told.
func IgnoreErrors(*informer.Reflector, error) {}

// Recorder is a handler that writes down its calls, as "add a/b initial",
// "update a/b", "delete a/b", "delete a/b unknown", "sync a/b", and folds them.
type Recorder struct {
	// Before, if set, is called first in every call, with what is written down.
	Before func(call string)

	mu    sync.Mutex
	calls []string
	// Folded is the resource version of every key that the calls leave. A test may set it first.
	Folded map[string]string
}

var _ informer.ResourceEventHandler = &Recorder{}

// OnAdd implements ResourceEventHandler.
func (r *Recorder) OnAdd(obj interface{}, isInInitialList bool) {
	call := "add " + Key(obj)
	if isInInitialList {
		call += " initial"
	}
	r.Record(call, obj, true)
}

// OnUpdate implements ResourceEventHandler.
func (r *Recorder) OnUpdate(oldObj, newObj interface{}) {
	r.Record("update "+Key(newObj), newObj, true)
}

// OnDelete implements ResourceEventHandler.
func (r *Recorder) OnDelete(obj interface{}) {
	call := "delete " + Key(obj)
	if _, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		call += " unknown"
	}
	r.Record(call, obj, false)
}

// OnSync implements SyncHandler.
func (r *Recorder) OnSync(obj interface{}) { r.Record("sync "+Key(obj), obj, true) }

// Record writes a call down, after which obj exists or not.
func (r *Recorder) Record(call string, obj interface{}, exists bool) {
	if r.Before != nil {
		r.Before(call)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
	if r.Folded == nil {
		r.Folded = map[string]string{}
	}
	if exists {
		accessor, err := meta.Accessor(obj)
		if err != nil {
			panic(err)
		}
		r.Folded[Key(obj)] = accessor.GetResourceVersion()
	} else {
		delete(r.Folded, Key(obj))
	}
}

// Events returns the calls so far.
func (r *Recorder) Events() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// Forget drops the calls so far, but not the state that they make.
func (r *Recorder) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = nil
}

// State is the resource version of every key that the calls leave.
func (r *Recorder) State() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	state := maps.Clone(r.Folded)
	if state == nil {
		state = map[string]string{}
	}
	return state
}

// Key is the key of an object or of a tombstone, "namespace/name".
func Key(obj interface{}) string {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		panic(err)
	}
	return key
}

// Failures is an error handler that writes down what it is told.
type Failures struct {
	mu      sync.Mutex
	errs    []error
	started int
}

// Handle is the error handler.
func (f *Failures) Handle(_ *informer.Reflector, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		f.started++
	} else {
		f.errs = append(f.errs, err)
	}
}

// All returns the errors so far, and how many watches have started.
func (f *Failures) All() (errs []error, watchesStarted int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.errs), f.started
}

// Errors returns the errors so far.
func (f *Failures) Errors() []error {
	errs, _ := f.All()
	return errs
}

// One returns the only error so far.
func (f *Failures) One(t require.TestingT) error {
	errs := f.Errors()
	require.Len(t, errs, 1)
	return errs[0]
}

// ErrorAs returns the error of type E in the tree of err, which must have one.
func ErrorAs[E error](t require.TestingT, err error) (found E) {
	require.ErrorAs(t, err, &found)
	return found
}

// LastKnown returns the metadata in a tombstone.
func LastKnown(t *testing.T, obj interface{}) *metav1.PartialObjectMetadata {
	t.Helper()
	require.IsType(t, cache.DeletedFinalStateUnknown{}, obj)
	metadata := obj.(cache.DeletedFinalStateUnknown).Obj
	require.IsType(t, &metav1.PartialObjectMetadata{}, metadata)
	return metadata.(*metav1.PartialObjectMetadata)
}

// IdentityOf is the key, UID and version of an object or a tombstone. The metadata of a RawObject
// must be those of the object that it decodes to.
func IdentityOf(obj interface{}) string {
	switch o := obj.(type) {
	case *informer.RawObject:
		var pod metav1.PartialObjectMetadata
		if err := o.Decode(&pod); err != nil {
			return "undecodable: " + err.Error()
		}
		s := fmt.Sprintf("%s/%s %s %s", pod.Namespace, pod.Name, pod.UID, pod.ResourceVersion)
		if h := fmt.Sprintf("%s/%s %s %s", o.GetNamespace(), o.GetName(), o.GetUID(), o.GetResourceVersion()); h != s {
			return "inconsistent " + s + " but " + h
		}
		return s
	case cache.DeletedFinalStateUnknown:
		return IdentityOf(o.Obj)
	default:
		a, err := meta.Accessor(obj)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%s/%s %s %s", a.GetNamespace(), a.GetName(), a.GetUID(), a.GetResourceVersion())
	}
}
