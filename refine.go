package informer

import (
	"errors"
	"fmt"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/deltaqueue"
	"github.com/rvinformer/informer/internal/object"
	"github.com/rvinformer/informer/internal/prune"
	"github.com/rvinformer/informer/internal/report"
)

// refining is what happens to an object between the wire and its consumer: it is
// decoded, loses fields, and is transformed.
type refining struct {
	form      object.Form
	prune     prune.Paths
	transform cache.TransformFunc
	// taken is the type of what the consumer takes, where form and Transform do not decide it.
	taken objectType
}

// refine returns obj, an object as it was read, as the consumer is to see it.
func (r refining) refine(obj interface{}) (interface{}, error) {
	if raw, ok := r.form.Raw(obj); ok {
		decoded, err := r.form.Decode(raw)
		if err != nil {
			return nil, err
		}
		obj = decoded
	} else {
		r.prune.Apply(obj)
	}
	if r.transform != nil {
		transformed, err := r.transformed(obj)
		if err != nil {
			return nil, err
		}
		obj = transformed
	}
	return obj, r.taken.check(obj)
}

// transformed calls Transform. Where utilruntime lets the process survive a
// panic, so does the informer.
func (r refining) transformed(obj interface{}) (result interface{}, err error) {
	defer utilruntime.HandleCrash(func(value interface{}) {
		err = fmt.Errorf("transform: %w", &report.PanicError{Value: value})
	})
	result, err = r.transform(obj)
	if err == nil && result == nil {
		err = errors.New("transform returned nil")
	}
	return result, err
}

// refined returns the deltas of an entry as the consumer is to see them. An object
// that can not be is the error; what was there before it is returned all the same.
func (f *flow) refined(e *deltaqueue.Entry) ([]deltaqueue.Delta, error) {
	if !f.intake.form.Decodes() || f.intake.extra != nil {
		return e.Deltas, nil
	}
	deltas := make([]deltaqueue.Delta, 0, len(e.Deltas))
	for _, d := range e.Deltas {
		if raw, ok := d.Object.(*object.Raw); ok {
			obj, err := f.intake.refine(raw)
			if err != nil && d.Type != cache.Deleted {
				return deltas, object.Item{Key: d.Key, Place: raw.Place()}.Unreadable(err)
			}
			if err != nil { // a deletion counts, whatever becomes of its object
				f.reflector.report.Skip(object.Item{Key: d.Key, Place: raw.Place()}.Unreadable(err))
				obj = nil
			}
			d.Object = obj
		}
		deltas = append(deltas, d)
	}
	return deltas, nil
}

// leave gives an entry back the newest delta of which can not be read, and why. What can
// not be decoded is missed from then on: a list that began before takes it for told.
func (f *flow) leave(queue *deltaqueue.Queue, e *deltaqueue.Entry, why error) {
	listed := e.Deltas[len(e.Deltas)-1].Type == cache.Replaced
	queue.Skip(e, f.reflector.report.Gaps.Add)
	if !listed && object.IsUndecodable(why) {
		f.reflector.missed.Store(true)
	}
}
