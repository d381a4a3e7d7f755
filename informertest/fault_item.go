package informertest

import (
	"bytes"
	"fmt"
	"maps"
)

// paddingAnnotation is what makes an object oversized.
const paddingAnnotation = "informertest/padding"

// taint is what is done to one item of a list, or to the object of one event.
type taint struct {
	kind effectKind // effectNone, or one that taints
	n    int        // of effectGarbage which one it is, of effectOversize the bytes of padding
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
	for _, m := range x.meetings {
		e := m.fault.Effect
		if !e.taints() {
			continue
		}
		m.left--
		if m.left == 0 && (t.kind == effectNone || e.kind <= t.kind) {
			t = taint{e.kind, e.size}
		}
	}
	x.mu.Unlock()
	if t.kind == effectGarbage {
		t.n = x.faults.pick(len(garbageJSON))
	}
	return t
}

// changed is the object with what the taint changes of it. Garbage has no object.
func (t taint) changed(o *object, r Resource) (*object, error) {
	switch t.kind {
	case effectMistyped:
		return o.mistyped(r)
	case effectUnversioned:
		return o.unversioned(), nil
	case effectOversize:
		return o.padded(r, t.n)
	}
	return o, nil
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
