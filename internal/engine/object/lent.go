package object

import (
	"errors"
	"strings"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/internal/leaf/wire"
)

// Lent is an object as a reader of the wire lends it. A reader has one, which it fills anew for
// each object.
type Lent struct {
	wire.Item
	// Listed is what the list says of its items. It counts for an item that says
	// nothing itself.
	Listed metav1.TypeMeta
	Form   *Form
	// scratch is where pruning writes to. It is used again for the next object.
	scratch []byte
	// last is the kind of the object that was copied last.
	last metav1.TypeMeta
}

// copy returns the object with memory of its own, or of the pool, and without what
// does not stay.
func (l *Lent) copy(it Item, pool *Pool) (*Raw, error) {
	encoded := l.Item
	if !l.Form.fields.All() {
		if err := l.prune(); err != nil {
			return nil, err
		}
		encoded.Bytes = l.scratch
	}
	// One kind follows the other: their strings are shared.
	if kind := l.TypeMeta(); kind != l.last {
		l.last = metav1.TypeMeta{APIVersion: strings.Clone(kind.APIVersion), Kind: strings.Clone(kind.Kind)}
	}
	kind := l.last
	const envelope = 64 // of protobuf, or the kind in JSON: about
	raw := pool.get(len(encoded.Bytes) + envelope + len(kind.APIVersion) + len(kind.Kind))
	raw.kind, raw.format, raw.place = kind, l.Format, it.Place
	raw.typed, raw.decoders = l.Form.typed, l.Form.decoders
	raw.key, raw.version = it.Identity()
	raw.encoding = encoded.AppendObject(raw.encoding, kind.APIVersion, kind.Kind)
	if l.Format == wire.Protobuf {
		raw.message.from, raw.message.to = wire.MessageIn(raw.encoding, len(encoded.Bytes))
	}
	return raw, nil
}

// prune writes the object to scratch, without what does not stay.
func (l *Lent) prune() (err error) {
	switch {
	case l.Format != wire.Protobuf:
		l.scratch, err = l.Form.fields.AppendJSON(l.scratch[:0], l.Bytes)
	case l.Form.message == nil:
		err = errors.New("came in protobuf, which was not asked for: its fields to keep or prune are not known")
	default:
		l.scratch, err = l.Form.message.AppendProtobuf(l.scratch[:0], l.Bytes)
	}
	return err
}

// TypeMeta is what the object is, as client-go takes it to be. It is lent where the
// object says it itself.
func (l *Lent) TypeMeta() metav1.TypeMeta {
	if len(l.APIVersion) == 0 && len(l.Kind) == 0 {
		return l.Listed
	}
	return metav1.TypeMeta{APIVersion: LentString(l.APIVersion), Kind: LentString(l.Kind)}
}

// LentString returns a string over bytes that will be written again.
func LentString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
