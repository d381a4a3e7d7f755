package source

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/wire"
)

// reader has what the item under way lends. The zero value is ready for use.
type reader struct {
	lent *object.Lent
	key  []byte
}

// forget lets go of lent bytes. The reader of the body may give that buffer back.
func (r *reader) forget() {
	if r.lent != nil {
		r.lent.Item = wire.Item{}
	}
}

// readLent makes an item of an object that a wire reader lends. Listed is what the list says of its
// items. The error says that the object is not as expected; the item has its key all the same.
func (s *Source) readLent(encoded wire.Item, listed metav1.TypeMeta, at object.Place) (object.Item, error) {
	r := &s.reader
	if r.lent == nil {
		r.lent = &object.Lent{Form: s.Form}
	}
	r.lent.Item, r.lent.Listed = encoded, listed
	if len(encoded.Namespace) > 0 {
		r.key = append(append(append(r.key[:0], encoded.Namespace...), '/'), encoded.Name...)
	} else {
		r.key = append(r.key[:0], encoded.Name...)
	}
	it := object.Item{
		Key:     object.LentString(r.key),
		Version: keytable.Version{ResourceVersion: object.LentString(encoded.ResourceVersion), UID: types.UID(object.LentString(encoded.UID))},
		Place:   at,
		Arrived: s.read,
		Lent:    r.lent,
	}
	kind := r.lent.TypeMeta()
	if kind == (metav1.TypeMeta{}) {
		return it, errors.New("neither the object nor the list before it says its kind")
	}
	return it, s.Expected.CheckKind(kind)
}

// readEvent is readLent for the object of an event.
func (s *Source) readEvent(encoded wire.Item) (object.Item, error) {
	it, unreadable := s.readLent(encoded, metav1.TypeMeta{}, object.Place{})
	if len(encoded.ResourceVersion) == 0 {
		unreadable = ErrUnversioned
	}
	return it, unreadable
}

// readDecoded makes an item of an object that a ListerWatcher of others has decoded. The error says
// that it is not as expected; the item has the key if that could be read.
func (s *Source) readDecoded(obj runtime.Object, at object.Place) (object.Item, error) {
	if obj == nil {
		return object.Item{Place: at}, errors.New("no object")
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return object.Item{Place: at}, fmt.Errorf("%T: %w", obj, err)
	}
	if accessor.GetName() == "" && !s.Nameless {
		return object.Item{Place: at}, fmt.Errorf("%T without a name", obj)
	}
	it := object.Item{
		Key:     cache.MetaObjectToName(accessor).String(),
		Version: keytable.Version{ResourceVersion: accessor.GetResourceVersion(), UID: accessor.GetUID()},
		Place:   at,
		Arrived: s.read,
		Object:  obj,
	}
	return it, s.Expected.Check(obj)
}
