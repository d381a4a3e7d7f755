package jsonmap

import (
	"errors"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Pool has the Decoders of objects of one kind, as many as are at work side by side. The garbage
// collector takes those that have not been used for a while, so that an idle informer has none. The
// zero value is ready for use, and a nil Pool uses each Decoder once. A Pool must not be copied.
type Pool struct {
	// free is made when it is needed: each informer has a Pool, and most never decode an
	// unstructured object.
	free atomic.Pointer[sync.Pool]
}

// Decode is Decode of one of the Decoders.
func (p *Pool) Decode(text []byte) (map[string]interface{}, error) {
	if p == nil {
		return new(Decoder).Decode(text)
	}
	free := p.free.Load()
	if free == nil {
		p.free.CompareAndSwap(nil, &sync.Pool{})
		free = p.free.Load()
	}
	d, ok := free.Get().(*Decoder)
	if !ok {
		d = &Decoder{}
	}
	object, err := d.Decode(text)
	free.Put(d)
	return object, err
}

// ErrNoKind says that an object has no kind.
var ErrNoKind = errors.New("object without a kind")

// Object decodes the text of an object that says its kind. Like UnstructuredJSONScheme, it returns
// ErrNoKind for one that says none, or whose apiVersion is none.
func (p *Pool) Object(text []byte) (*unstructured.Unstructured, error) {
	object, err := p.Decode(text)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: object}
	if u.GroupVersionKind().Kind == "" {
		return nil, ErrNoKind
	}
	return u, nil
}
