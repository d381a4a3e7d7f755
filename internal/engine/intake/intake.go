// Package intake turns what a follower reads into deltas of the queue: it copies, decodes, prunes
// and transforms the object, and informs the ExtraStore.
//
// An object off the wire is decoded late if nothing needs it before its consumer does: it waits in
// the queue as its bytes, and an object that is replaced while it waits is never decoded. The flow
// of an informer has one Intake. The follower calls its sink, and the delivery calls Refined and
// TakeBack.
package intake

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/engine/known"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/failure"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/objectsize"
	"github.com/rvinformer/informer/internal/leaf/prune"
)

// ExtraStore is the part of an informer.ExtraStore that is called.
type ExtraStore interface {
	Add(obj interface{}) error
	Update(obj interface{}) error
	Delete(obj interface{}) error
}

// Options say what becomes of objects.
type Options struct {
	// Report is required.
	Report *report.Report
	// Form is how objects are read off the wire.
	Form *object.Form
	// Kind is what tombstones say that they are of.
	Kind metav1.TypeMeta
	// MetadataKind is what metadata off the wire is given before Transform sees it: the server says only that it
	// is metadata. Empty leaves it so.
	MetadataKind metav1.TypeMeta
	// Fields are those that stay of an object, and Transform is what is done to it then.
	Fields    *prune.Fields
	Transform cache.TransformFunc
	// Accepts, if set, reports whether the consumer takes an object. It takes a Taken.
	Accepts func(obj interface{}) bool
	Taken   reflect.Type
	// Extra, if set, is informed of all that is read.
	Extra ExtraStore
	// Stored lists what a resync repeats; nil if there is nothing to repeat.
	Stored func() []interface{}
	// Lent tells that the consumer gives objects back when it has returned.
	Lent bool
}

// Intake turns items into deltas.
type Intake struct {
	Options
	// late tells that objects off the wire are decoded for their consumer, by Refined.
	late bool
	// pool has the memory of objects that their consumer has returned; nil if consumers keep them.
	pool *object.Pool
}

// New returns an intake.
func New(options Options) Intake {
	i := Intake{Options: options, late: options.Extra == nil && options.Form.Decodes()}
	if i.late || options.Extra == nil && options.Lent {
		i.pool = &object.Shared
	}
	return i
}

// fill gives a delta memory of its own, and its object: as the consumer is to see
// it, or, if it is decoded late, as it came off the wire.
func (i *Intake) fill(d *deltaqueue.Delta, it object.Item) error {
	if err := known.CheckLengths(it.Key, it.Version); err != nil {
		d.Key, d.Version = it.Identity()
		return object.Item{Place: it.Place}.Unreadable(err)
	}
	read := interface{}(it.Object)
	if it.Lent != nil {
		raw, err := it.Copy(i.pool)
		if err != nil {
			d.Key, d.Version = it.Identity()
			return it.Unreadable(err)
		}
		d.Key, d.Version, d.Object, d.Bytes = raw.Key(), raw.Version(), raw, raw.Size()
		if i.late {
			return nil
		}
		read, it = raw, object.Item{Key: raw.Key(), Place: raw.Place()}
	}
	obj, err := i.Refine(read)
	if err != nil {
		return it.Unreadable(err)
	}
	d.Object = obj
	if raw, ok := i.Form.Raw(obj); ok {
		d.Bytes = raw.Size()
	} else {
		d.Bytes = objectsize.Of(obj)
	}
	return nil
}

// inform hands a change on to the ExtraStore, if there is one.
func (i *Intake) inform(change cache.DeltaType, key string, obj interface{}) {
	if i.Extra == nil {
		return
	}
	var err error
	switch change {
	case cache.Added:
		err = failure.OfStore("Add", key, i.Extra.Add(obj))
	case cache.Deleted:
		err = failure.OfStore("Delete", key, i.Extra.Delete(obj))
	default:
		err = failure.OfStore("Update", key, i.Extra.Update(obj))
	}
	if err != nil {
		i.Report.Fail(err)
	}
}

// TakeBack ends the loan of the objects off the wire in deltas.
func (i *Intake) TakeBack(deltas []deltaqueue.Delta) {
	if i.pool == nil {
		return
	}
	for _, d := range deltas {
		if raw, ok := i.Form.Raw(d.Object); ok {
			i.pool.Put(raw)
		}
	}
}

// Tombstone stands for an object whose last state is not known.
func (i *Intake) Tombstone(key string, last keytable.Version) cache.DeletedFinalStateUnknown {
	return object.Tombstone(i.Kind, key, last)
}
