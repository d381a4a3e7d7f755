package objectcache

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"reflect"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer/internal/pack"
)

// errSnapshot says that the bytes are no snapshot of such a store, or a damaged one.
var errSnapshot = errors.New("objectcache: no snapshot of such a store, or a damaged one")

// byteReader is read to the end of what is asked for, and no byte further.
type byteReader interface {
	io.Reader
	io.ByteReader
}

// restore fills an empty store with the objects of a snapshot. Objects are decoded only if there
// are indexes that need them, because an index function may have changed since. On an error, which
// is that of r or errSnapshot, the store stays empty. It panics if an index function fails.
func (s *Store) restore(r byteReader) error {
	s.replacing.Lock()
	defer s.replacing.Unlock()
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.table.keys.count > 0 {
		return errors.New("objectcache: restore a store that is not empty")
	}
	t := newTable(s.hot)
	t.generation, t.born = s.table.generation, s.table.born
	for name, f := range s.table.indexers {
		t.addIndex(name, f, newIndex(f))
	}
	in := &input{r: r}
	saved := s.readSlots(in)
	if in.err != nil {
		return in.err
	}
	var err error
	if t.pack, err = pack.Read(r); err != nil {
		return fmt.Errorf("%w: %w", errSnapshot, err)
	}
	if err := s.fillTable(t, saved); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table, s.resourceVersion = t, saved.resourceVersion
	return nil
}

// savedSlots are what a snapshot has beside the pack. Nothing of them is believed before both
// checksums were compared.
type savedSlots struct {
	resourceVersion    string
	forms              []form
	namespaces, labels []string
	live               paged[savedSlot]
}

// savedSlot is a live slot as a snapshot has it: its numbers of a namespace, of labels and of a
// form are those of the snapshot.
type savedSlot struct {
	slot
	number uint32
}

// maxSavedForms leaves room for forms that are not in the snapshot.
const maxSavedForms = math.MaxUint8 / 2

// readSlots reads all but the pack. Free slots take no memory.
func (s *Store) readSlots(in *input) (saved *savedSlots) {
	saved = &savedSlots{}
	if magic := in.take(uint64(len(snapshotMagic))); string(magic) != snapshotMagic {
		in.fail("it does not begin as one")
	}
	saved.resourceVersion = in.text()
	if name := in.text(); name != typeName(s.goType) {
		in.fail("it has objects like a %s", name)
	}
	in.each(func() {
		if saved.forms = append(saved.forms, s.readForm(in)); len(saved.forms) > maxSavedForms {
			in.fail("it has more than %d types and kinds", maxSavedForms)
		}
	})
	in.each(func() { saved.namespaces = append(saved.namespaces, in.text()) })
	in.each(func() { saved.labels = append(saved.labels, in.text()) })
	number := uint64(0)
	in.each(func() {
		flags := in.byte()
		if flags&live != 0 {
			of := saved.append()
			of.flags, of.number = flags, uint32(number)
			of.slot.number = in.number()
			of.uid = in.fixed()
			of.namespace, of.labels = readIndex(in, len(saved.namespaces)), readIndex(in, len(saved.labels))
			if of.form = in.byte(); int(of.form) >= len(saved.forms) {
				in.fail("it has no form %d", of.form)
			}
			if number == 0 || number > math.MaxUint32 {
				in.fail("a slot has the number %d", number)
			}
		}
		number++
	})
	if sum := in.sum; in.fixed() != sum {
		in.fail("its checksum is another")
	}
	return saved
}

func (s *savedSlots) append() *savedSlot {
	s.live.grow(s.live.len + 1)
	return s.live.at(s.live.len - 1)
}

// find returns the slot with a number, or nil.
func (s *savedSlots) find(number uint32) *savedSlot {
	if k := number - 1; k < s.live.len && s.live.at(k).number == number { // there are no free slots before it
		return s.live.at(k)
	}
	k, found := sort.Find(int(s.live.len), func(k int) int { return cmp.Compare(number, s.live.at(uint32(k)).number) })
	if !found {
		return nil
	}
	return s.live.at(uint32(k))
}

// readIndex reads the number of one of n texts.
func readIndex(in *input, n int) uint32 {
	k := in.number()
	if k >= uint64(n) || k > math.MaxUint32 {
		in.fail("it has no text %d", k)
		return 0
	}
	return uint32(k)
}

// readForm reads a form, whose type is the store's or one that all stores know.
func (s *Store) readForm(in *input) (f form) {
	name := in.text()
	for _, t := range []reflect.Type{s.goType, unstructuredType, partialType} {
		if typeName(t) == name {
			f.goType = t
		}
	}
	flags := in.byte()
	if flags&^(formProtobuf|formImplied) != 0 {
		in.fail("a form has the flags %d", flags)
	}
	f.protobuf, f.implied = flags&formProtobuf != 0, flags&formImplied != 0
	f.kind.APIVersion, f.kind.Kind = in.text(), in.text()
	if f.goType == nil || f.protobuf && !isMessage(f.goType) {
		in.fail("it has objects of the type %s", name)
	}
	return f
}

// fillTable makes the slots live whose records the pack has. Their numbers leave no gaps, unlike
// those of the snapshot.
func (s *Store) fillTable(t *table, saved *savedSlots) error {
	var unnamed []pack.Ref // the records of staged slots
	for owner, ref := range t.pack.All() {
		if of := saved.find(owner); of == nil || of.ref != 0 {
			unnamed = append(unnamed, ref)
		} else {
			of.ref = ref
		}
	}
	numbers := make([]uint8, len(saved.forms))
	for k, f := range saved.forms {
		var err error
		if numbers[k], err = s.forms.number(f); err != nil {
			return fmt.Errorf("%w: %w", errSnapshot, err)
		}
	}
	count := saved.live.len
	t.slots.grow(count + 1)
	gap, kept := uint32(1), uint32(0)
	for k := range count {
		of := saved.live.at(k)
		if of.ref == 0 {
			return fmt.Errorf("%w: an object is missing", errSnapshot)
		}
		if of.number > count { // it takes the next number that is free
			for ; saved.live.at(kept).number == gap; kept++ {
				gap++
			}
			of.ref = t.pack.Reown(of.ref, gap)
			of.number = gap
			gap++
		}
		of.form = numbers[of.form]
		if err := s.restoreSlot(t, of, saved.namespaces[of.namespace], saved.labels[of.labels]); err != nil {
			return err
		}
	}
	for _, ref := range unnamed {
		t.pack.Drop(ref)
	}
	for t.tidy() {
	}
	return nil
}

func (s *Store) restoreSlot(t *table, saved *savedSlot, namespace, labels string) error {
	if !isHead(t.pack.Head(saved.ref), saved.flags&hasNumber != 0) || !isLabelText(labels) {
		return fmt.Errorf("%w: an object has no name or labels", errSnapshot)
	}
	n := saved.number
	t.born++
	of := t.slots.at(n)
	*of = slot{ref: saved.ref, number: saved.slot.number, uid: saved.uid, form: saved.form, born: t.born, flags: saved.flags&hasNumber | staged}
	of.namespace, of.labels = t.namespaces.use(namespace), t.labels.use(labels)
	key := t.key(n)
	if inKey, _ := splitKey(key); inKey != namespace || t.find(key, live) != 0 {
		return fmt.Errorf("%w: %q is there twice", errSnapshot, key)
	}
	of.hash = t.hash(key)
	t.keys.add(&t.slots, n)
	values := s.valuesIn(t.indexes, key, func() (runtime.Object, error) { return s.handleIn(t, n).Decode() })
	for name, x := range t.indexes {
		x.set(n, values[name])
	}
	t.link(n)
	return nil
}

// isHead reports whether splitHead can read head.
func isHead(head []byte, hasNumber bool) bool {
	if hasNumber {
		return true
	}
	length, n := binary.Uvarint(head)
	return n > 0 && length <= uint64(len(head)-n)
}

// isLabelText reports whether a text is one of labels.
func isLabelText(text string) bool {
	texts := 0
	for ; text != ""; texts++ {
		head := []byte(text[:min(len(text), binary.MaxVarintLen64)])
		length, n := binary.Uvarint(head)
		if n <= 0 || length > uint64(len(text)-n) {
			return false
		}
		text = text[n+int(length):]
	}
	return texts%2 == 0
}

// input reads and sums. Its first error stays, and then it returns zeros.
type input struct {
	r   byteReader
	sum uint32
	err error
	one [1]byte
}

func (in *input) fail(format string, args ...any) {
	if in.err == nil {
		in.err = fmt.Errorf("%w: %s", errSnapshot, fmt.Sprintf(format, args...))
	}
}

func (in *input) failed(err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		in.fail("it ends too early")
	} else if in.err == nil {
		in.err = err
	}
}

func (in *input) byte() byte {
	if in.err != nil {
		return 0
	}
	b, err := in.r.ReadByte()
	if err != nil {
		in.failed(err)
		return 0
	}
	in.one[0] = b
	in.sum = crc32.Update(in.sum, castagnoli, in.one[:])
	return b
}

// take returns the next n bytes. Memory is taken for those that come, whatever n claims.
func (in *input) take(n uint64) []byte {
	if in.err != nil || n == 0 {
		return nil
	}
	if n > math.MaxInt64 {
		in.fail("a text of %d bytes", n)
		return nil
	}
	var b strings.Builder
	if _, err := io.CopyN(&b, in.r, int64(n)); err != nil {
		in.failed(err)
		return nil
	}
	bytes := []byte(b.String())
	in.sum = crc32.Update(in.sum, castagnoli, bytes)
	return bytes
}

func (in *input) text() string { return string(in.take(in.number())) }

func (in *input) number() (n uint64) {
	for shift := 0; ; shift += 7 {
		b := in.byte()
		if shift > 63 || shift == 63 && b > 1 {
			in.fail("a number is too long")
			return 0
		}
		if n |= uint64(b&0x7f) << shift; b < 0x80 {
			return n
		}
	}
}

// fixed returns a number of four bytes. It is summed, too.
func (in *input) fixed() uint32 {
	b := in.take(4)
	if len(b) < 4 {
		return 0
	}
	return binary.LittleEndian.Uint32(b)
}

// each calls f as often as a number says.
func (in *input) each(f func()) {
	for n := in.number(); n > 0 && in.err == nil; n-- {
		f()
	}
}
