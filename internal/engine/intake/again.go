package intake

import (
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/engine/object"
)

// Again has an object put that a list shows beside the watch. The ExtraStore is not informed,
// because it has the object. The error is that of put, or an *api.ItemError.
func (i *Intake) Again(it object.Item, put func(deltaqueue.Delta) (deltaqueue.Standing, error)) (deltaqueue.Standing, error) {
	d := deltaqueue.Delta{Type: cache.Replaced, Key: it.Key, Version: it.Version}
	if err := i.fill(&d, it); err != nil {
		return deltaqueue.Past, err
	}
	standing, err := put(d)
	if err != nil || standing != deltaqueue.Coming {
		i.TakeBack([]deltaqueue.Delta{d})
	}
	return standing, err
}
