package objectcache

import (
	"bufio"
	"encoding/binary"
	"hash/crc32"
	"io"
	"reflect"
	"slices"

	"github.com/rvinformer/informer/internal/pack"
)

// snapshot is one state of a store, to be written. It shares the bytes of the objects with the store.
type snapshot struct {
	resourceVersion    string
	goType             reflect.Type
	secrets            bool
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
		resourceVersion: s.resourceVersion, goType: s.goType, secrets: s.secrets.Load(), forms: s.forms.all(), namespaces: t.namespaces.all(), labels: t.labels.all(),
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

// The format: the magic, numbers as varints and texts behind their lengths, the CRC-32C of that, and the pack. Slots that are not live
// have no flags. A staged slot has a record in the pack which no slot names.
const snapshotMagic = "infstore\x01"

// typeName names a pointer type in snapshots.
func typeName(t reflect.Type) string { return t.Elem().PkgPath() + "." + t.Elem().Name() }

// WriteTo writes the objects of the snapshot, for Store.restore. It needs no lock.
func (sn *snapshot) WriteTo(w io.Writer) (int64, error) {
	out := &output{w: bufio.NewWriterSize(w, 64<<10)}
	out.write([]byte(snapshotMagic))
	out.text(sn.resourceVersion)
	out.text(typeName(sn.goType))
	out.number(uint64(len(sn.forms)))
	for _, f := range sn.forms {
		out.text(typeName(f.goType))
		protobuf := byte(0)
		if f.protobuf {
			protobuf = 1
		}
		out.write([]byte{protobuf})
		out.text(f.kind.APIVersion)
		out.text(f.kind.Kind)
	}
	for _, texts := range [][]string{sn.namespaces, sn.labels} {
		out.number(uint64(len(texts)))
		for _, text := range texts {
			out.text(text)
		}
	}
	out.slots(sn.slots)
	sum := out.sum
	out.write(binary.LittleEndian.AppendUint32(nil, sum))
	if out.err == nil {
		out.err = out.w.Flush()
	}
	if out.err != nil {
		return out.n, out.err
	}
	n, err := sn.pack.WriteTo(w)
	return out.n + n, err
}

// output writes and sums. Its first error stays.
type output struct {
	w   *bufio.Writer
	n   int64
	sum uint32
	err error
}

func (o *output) write(b []byte) {
	if o.err != nil {
		return
	}
	var n int
	n, o.err = o.w.Write(b)
	o.n += int64(n)
	o.sum = crc32.Update(o.sum, castagnoli, b)
}

func (o *output) number(n uint64) {
	var b [binary.MaxVarintLen64]byte
	o.write(b[:binary.PutUvarint(b[:], n)])
}

func (o *output) text(text string) {
	o.number(uint64(len(text)))
	o.write([]byte(text))
}

func (o *output) slots(pages [][]slot) {
	total := 0
	for _, page := range pages {
		total += len(page)
	}
	o.number(uint64(total))
	var b []byte
	for _, page := range pages {
		for i := range page {
			b = page[i].append(b[:0])
			o.write(b)
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
