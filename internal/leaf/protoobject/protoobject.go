// Package protoobject decodes objects from protobuf to their Go types, as the generated code does,
// in less time and memory.
//
//   - Strings that siblings share, and those that the caller has, are not allocated again.
//   - Slices are allocated once, with the length that they need. Elements that siblings have alike
//     are copied in place of decoded, and so are labels, annotations, owners and managers.
//
// The generated code has a method for each type. This package has a plan instead, which it makes of
// the Go type the first time: which field has which number. What a plan does not know, it leaves to
// the generated code.
package protoobject

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/internal/leaf/intern"
	"github.com/rvinformer/informer/internal/leaf/wire"
)

// Known has strings of the object that the caller keeps anyway. They are compared with what the
// message says.
type Known struct{ Name, UID, ResourceVersion string }

// Message is a generated API type.
type Message interface {
	Reset()
	Unmarshal([]byte) error
}

// Pool has the memory for decoding objects of one kind, as often as they are decoded side by side.
// The garbage collector takes what has not been used for a while, so that an idle informer has
// none. The zero value is ready for use, and a nil Pool remembers no strings. A Pool must not be
// copied.
type Pool struct{ free sync.Pool }

// Unmarshal decodes the message of an object into an empty object of its type. The result, and the
// error, are those of the generated code.
func (p *Pool) Unmarshal(object []byte, known Known, into Message) error {
	d := p.get()
	err := d.unmarshal(object, known, into)
	p.put(d)
	return err
}

func (p *Pool) get() *decoder {
	if p == nil {
		return &decoder{}
	}
	if d, ok := p.free.Get().(*decoder); ok {
		return d
	}
	return &decoder{words: &intern.Table{}, runs: &runs{}, last: &sibling{}}
}

func (p *Pool) put(d *decoder) {
	if p != nil {
		d.known, d.quantity = Known{}, resource.Quantity{}
		if d.key.IsValid() {
			d.key.SetString("")
		}
		p.free.Put(d)
	}
}

// decoder decodes one object after the other. It is for one goroutine at a time.
type decoder struct {
	words *intern.Table
	known Known
	// key and quantity are of the entry of a map. They are here because reflection would allocate
	// them.
	key        reflect.Value
	quantity   resource.Quantity
	quantities quantities
	runs       *runs
	last       *sibling // nil if nothing is remembered
	// pointers counts fields that point to memory which objects must not share.
	pointers int
}

func (d *decoder) unmarshal(object []byte, known Known, into Message) error {
	d.known = known
	if d.object(object, into) {
		return nil
	}
	// The generated code says what is wrong.
	into.Reset()
	return into.Unmarshal(object)
}

// object is false if there is something in the message that it does not expect.
func (d *decoder) object(object []byte, into Message) bool {
	v := reflect.ValueOf(into)
	if v.Kind() == reflect.Pointer {
		if p := planOf(v.Type().Elem()); p.isGenerated() {
			return d.message(p, v.Elem(), object, true)
		}
	}
	if accessor, ok := into.(metav1.ObjectMetaAccessor); ok {
		into.Reset() // which may do more than to empty it
		if meta, ok := accessor.GetObjectMeta().(*metav1.ObjectMeta); ok {
			return d.foreign(object, meta, into)
		}
	}
	return false
}

// foreign decodes the metadata of an object, and leaves the rest to its own code.
func (d *decoder) foreign(object []byte, meta *metav1.ObjectMeta, into Message) bool {
	const number = 1
	m := wire.NewMessage(object)
	if !m.Next() || m.Number() != number {
		return false
	}
	metadata := m.Data()
	_, to := m.Span()
	if m.Err() != nil || !d.metadata(meta, metadata) {
		return false
	}
	had := *meta
	// Code that is not generated may begin with an empty object, in place of adding to this one.
	return into.Unmarshal(object[to:]) == nil && meta.Name == had.Name && meta.UID == had.UID && meta.ResourceVersion == had.ResourceVersion
}
