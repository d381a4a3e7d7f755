package informertest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
)

// paddingAnnotation is what makes an object oversized.
const paddingAnnotation = "informertest/padding"

// taint is what is done to one item of a list, or to the object of one event.
type taint struct {
	garbage  int // which of the kinds of garbage it is, from 1 on; 0: none
	mistyped bool
	padding  int // bytes
	// unversioned takes the resource version away.
	unversioned bool
}

// Garbage that has the place of a JSON object: well-formed all of it, but no API object.
var garbageJSON = []string{`"garbage"`, `{"metadata":7}`, `["garbage"]`}

// Garbage that has the place of a protobuf message. Its length is right, what it holds is not: a
// field that is longer than the message, a field of a type that does not exist, metadata that are a
// number.
var garbageProtobuf = []string{"\x0a\x7f?", "\x0f\x07", "\x08\x07"}

// taints reports whether the effect is on one item.
func (e Effect) taints() bool {
	switch e.kind {
	case effectGarbage, effectMistyped, effectUnversioned, effectOversize:
		return true
	}
	return false
}

// taint says what is to be done to the next item. It must be asked once for each, in order.
func (x *exchange) taint() taint {
	var t taint
	if x.many.Load() == 0 {
		return t
	}
	x.mu.Lock()
	garbage := false
	for _, m := range x.meetings {
		e := m.fault.Effect
		if !e.taints() {
			continue
		}
		m.left--
		switch {
		case m.left != 0:
		case e.kind == effectGarbage:
			garbage = true
		case e.kind == effectMistyped:
			t.mistyped = true
		case e.kind == effectUnversioned:
			t.unversioned = true
		default:
			t.padding = e.size
		}
	}
	x.mu.Unlock()
	if garbage {
		t.garbage = 1 + x.faults.pick(len(garbageJSON))
	}
	return t
}

// padded is the same state with so many bytes in an annotation more.
func (o *object) padded(r Resource, size int) (*object, error) {
	u, err := o.decode(r)
	if err != nil {
		return nil, err
	}
	annotations := maps.Clone(u.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	// The padding replaces a placeholder in the text, so that the encoder does not copy it several
	// times.
	placeholder := "padding-of-" + string(o.uid)
	annotations[paddingAnnotation] = placeholder
	u.SetAnnotations(annotations)
	out, err := encode(r, u, o.identity)
	if err != nil {
		return nil, fmt.Errorf("padding %s/%s: %w", o.namespace, o.name, err)
	}
	padding := bytes.Repeat([]byte("x"), size)
	out.head = bytes.ReplaceAll(out.head, []byte(placeholder), padding)
	out.tail = bytes.ReplaceAll(out.tail, []byte(placeholder), padding)
	return out.at(o.rv), nil
}

// shapes write an item in the shapes that it can have.
type shapes struct {
	whole, mistyped func(b []byte, o *object) ([]byte, error)
	garbage         func(b []byte, kind int) ([]byte, error)
}

// spoiled appends an item in place of the object, or in a different shape.
func (t taint) spoiled(b []byte, r Resource, o *object, as shapes) ([]byte, error) {
	switch {
	case t.garbage > 0:
		return as.garbage(b, t.garbage-1)
	case t.mistyped:
		return as.mistyped(b, o)
	case t.unversioned:
		o = o.at(noVersion)
	case t.padding > 0:
		var err error
		if o, err = o.padded(r, t.padding); err != nil {
			return b, err
		}
	}
	return as.whole(b, o)
}

func (c jsonCodec) garbage(b []byte, kind int) ([]byte, error) {
	return append(b, garbageJSON[kind]...), nil
}

// garbage is in an envelope that says what it should be.
func (c protobufCodec) garbage(b []byte, kind int) ([]byte, error) {
	obj, err := c.blank()
	if err != nil {
		return b, err
	}
	apiVersion, name := obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	text, err := (&runtime.Unknown{
		TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: name},
		Raw:      []byte(garbageProtobuf[kind]),
	}).Marshal()
	return append(append(b, envelopeMark...), text...), err
}

// garbageItem is an item of a list.
func (c protobufCodec) garbageItem(b []byte, kind int) ([]byte, error) {
	text := garbageProtobuf[kind]
	b = binary.AppendUvarint(append(b, listItemsTag), uint64(len(text)))
	return append(b, text...), nil
}
