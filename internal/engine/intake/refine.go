package intake

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/engine/object"
)

// Refine returns obj, an object as it was read, as the consumer is to see it.
func (i *Intake) Refine(obj interface{}) (interface{}, error) {
	if raw, ok := i.Form.Raw(obj); ok {
		decoded, err := i.Form.Decode(raw)
		if err != nil {
			return nil, err
		}
		if partial, ok := decoded.(*metav1.PartialObjectMetadata); ok && i.MetadataKind != (metav1.TypeMeta{}) {
			partial.TypeMeta = i.MetadataKind
		}
		obj = decoded
	} else {
		i.Fields.Apply(obj)
	}
	if i.Transform != nil {
		transformed, err := i.transformed(obj)
		if err != nil {
			return nil, err
		}
		obj = transformed
	}
	if i.Accepts != nil && !i.Accepts(obj) {
		return obj, fmt.Errorf("is a %T, the handler takes a %v", obj, i.Taken)
	}
	return obj, nil
}

// transformed calls Transform. Where utilruntime lets the process survive a
// panic, so does the informer.
func (i *Intake) transformed(obj interface{}) (result interface{}, err error) {
	defer utilruntime.HandleCrash(func(value interface{}) {
		err = fmt.Errorf("transform: %w", &api.PanicError{Value: value})
	})
	result, err = i.Transform(obj)
	if err == nil && result == nil {
		err = errors.New("transform returned nil")
	}
	return result, err
}

// Refined returns the deltas of an entry as the consumer is to see them, until the entry is given
// back. If an object cannot be decoded, that is the error, and the deltas before it are returned
// all the same.
func (i *Intake) Refined(e *deltaqueue.Entry) ([]deltaqueue.Delta, error) {
	if !i.late {
		return e.Deltas, nil
	}
	deltas := e.Room()
	for _, d := range e.Deltas {
		if raw, ok := d.Object.(*object.Raw); ok {
			obj, err := i.Refine(raw)
			if err != nil && d.Type != cache.Deleted {
				return deltas, object.Item{Key: d.Key, Place: raw.Place()}.Unreadable(err)
			}
			if err != nil { // a deletion counts, whatever becomes of its object
				i.Report.Skip(object.Item{Key: d.Key, Place: raw.Place()}.Unreadable(err))
				obj = nil
			}
			d.Object = obj
		}
		deltas = append(deltas, d)
	}
	return deltas, nil
}
