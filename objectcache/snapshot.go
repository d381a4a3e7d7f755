package objectcache

import (
	"encoding/binary"
	"reflect"
	"slices"

	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/leaf/pack"
)

// snapshot is one state of a store, to be written. It shares the bytes of the objects with the
// store.
type snapshot struct {
	resourceVersion    string
	goType             reflect.Type
	secrets, kindless  bool
	forms              []*form
	namespaces, labels []string
	slots              [][]slot
	pack               *pack.Snapshot
}

// snapshot returns the present state. It waits for the writer, and no reader waits for it.
func (s *Store) snapshot() *snapshot {
	s.writing.Lock()
	defer s.writing.Unlock()
	t := s.table
	sn := &snapshot{
		resourceVersion: s.resourceVersion, goType: s.goType, secrets: s.secrets.Load(), kindless: s.kindless.Load(),
		forms: s.forms.all(), namespaces: t.namespaces.all(), labels: t.labels.all(),
		slots: make([][]slot, len(t.slots.pages)), pack: t.pack.Snapshot(),
	}
	for i, page := range t.slots.pages {
		sn.slots[i] = slices.Clone(page)
	}
	return sn
}

// all returns the texts by number.
func (n *names) all() []string {
	texts := make([]string, len(n.list))
	for number, of := range n.list {
		texts[number] = of.text
	}
	return texts
}

// The flags of a form.
const formProtobuf, formImplied = 1, 2

// typeName names a pointer type in snapshots.
func typeName(t reflect.Type) string { return t.Elem().PkgPath() + "." + t.Elem().Name() }

// write writes the objects of the snapshot, for Store.restore. It needs no lock. Slots that are not
// live have no flags. A staged slot has a record in the pack which no slot names.
func (sn *snapshot) write(out *checkpoint.PayloadWriter) {
	out.Bytes([]byte(sn.resourceVersion))
	out.Bytes([]byte(typeName(sn.goType)))
	out.Number(uint64(len(sn.forms)))
	for _, f := range sn.forms {
		out.Bytes([]byte(typeName(f.goType)))
		flags := byte(0)
		if f.protobuf {
			flags |= formProtobuf
		}
		if f.implied {
			flags |= formImplied
		}
		out.Write([]byte{flags})
		out.Bytes([]byte(f.kind.APIVersion))
		out.Bytes([]byte(f.kind.Kind))
	}
	for _, texts := range [][]string{sn.namespaces, sn.labels} {
		out.Number(uint64(len(texts)))
		for _, text := range texts {
			out.Bytes([]byte(text))
		}
	}
	writeSlots(out, sn.slots)
	sn.pack.Write(out)
}

func writeSlots(out *checkpoint.PayloadWriter, pages [][]slot) {
	total := 0
	for _, page := range pages {
		total += len(page)
	}
	out.Number(uint64(total))
	var b []byte
	for _, page := range pages {
		for i := range page {
			b = page[i].append(b[:0])
			out.Write(b)
		}
	}
}

// append appends what a snapshot has of a slot.
func (s *slot) append(dst []byte) []byte {
	if s.flags&live == 0 {
		return append(dst, 0)
	}
	dst = append(dst, s.flags)
	dst = binary.AppendUvarint(dst, s.number)
	dst = binary.LittleEndian.AppendUint32(dst, s.uid)
	dst = binary.AppendUvarint(dst, uint64(s.namespace))
	dst = binary.AppendUvarint(dst, uint64(s.labels))
	return append(dst, s.form)
}
