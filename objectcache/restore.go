package objectcache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// restore fills an empty store with the objects of a snapshot. Objects are decoded only if there are indexes that need them, because
// an index function may have changed since. On an error, which is that of r or errSnapshot, the store stays empty. It panics
// if an index function fails.
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
	resourceVersion, slots := s.readSlots(in)
	if in.err != nil {
		return in.err
	}
	var err error
	if t.pack, err = pack.Read(r); err != nil {
		return fmt.Errorf("%w: %w", errSnapshot, err)
	}
	if err := s.fillTable(t, slots); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table, s.resourceVersion = t, resourceVersion
	return nil
}

// savedSlot is a slot as a snapshot has it.
type savedSlot struct {
	slot
	namespaceText, labelText string
}

// readSlots reads all but the pack.
func (s *Store) readSlots(in *input) (resourceVersion string, slots []savedSlot) {
	if magic := in.take(uint64(len(snapshotMagic))); string(magic) != snapshotMagic {
		in.fail("it does not begin as one")
	}
	resourceVersion = in.text()
	if name := in.text(); name != typeName(s.goType) {
		in.fail("it has objects like a %s", name)
	}
	var forms []uint8
	in.each(func() { forms = append(forms, s.readForm(in)) })
	var namespaces, labels []string
	in.each(func() { namespaces = append(namespaces, in.text()) })
	in.each(func() { labels = append(labels, in.text()) })
	in.each(func() {
		var of savedSlot
		if of.flags = in.byte(); of.flags&live != 0 {
			of.number = in.number()
			of.uid = in.fixed()
			of.namespaceText, of.labelText = readText(in, namespaces), readText(in, labels)
			if form := int(in.byte()); form < len(forms) {
				of.form = forms[form]
			} else {
				in.fail("it has no form %d", form)
			}
		}
		slots = append(slots, of)
	})
	if sum := in.sum; in.fixed() != sum {
		in.fail("its checksum is another")
	}
	return resourceVersion, slots
}

// readText reads the number of a text.
func readText(in *input, texts []string) string {
	n := in.number()
	if n >= uint64(len(texts)) {
		in.fail("it has no text %d", n)
		return ""
	}
	return texts[n]
}

// readForm reads a form, whose type is the store's or one that all stores know.
func (s *Store) readForm(in *input) (number uint8) {
	var f form
	name := in.text()
	for _, t := range []reflect.Type{s.goType, unstructuredType, reflect.TypeFor[*metav1.PartialObjectMetadata]()} {
		if typeName(t) == name {
			f.goType = t
		}
	}
	f.protobuf = in.byte() != 0
	f.kind.APIVersion, f.kind.Kind = in.text(), in.text()
	if f.goType == nil || f.protobuf && !isMessage(f.goType) {
		in.fail("it has objects of the type %s", name)
	}
	if in.err != nil {
		return 0
	}
	number, err := s.forms.number(f)
	if err != nil {
		in.fail("%v", err)
	}
	return number
}

// fillTable makes the slots live whose records the pack has.
func (s *Store) fillTable(t *table, saved []savedSlot) error {
	t.slots.grow(uint32(len(saved)))
	var unnamed []pack.Ref
	for owner, ref := range t.pack.All() {
		if owner == 0 || owner >= uint32(len(saved)) || saved[owner].flags&live == 0 || saved[owner].ref != 0 {
			unnamed = append(unnamed, ref)
			continue
		}
		saved[owner].ref = ref
	}
	for n := uint32(len(saved)); n > 1; {
		n--
		if of := &saved[n]; of.flags&live == 0 {
			t.slots.giveBack(n)
		} else if err := s.restoreSlot(t, n, of); err != nil {
			return err
		}
	}
	// The records of staged slots.
	for _, ref := range unnamed {
		t.pack.Drop(ref)
	}
	for t.tidy() {
	}
	return nil
}

func (s *Store) restoreSlot(t *table, n uint32, saved *savedSlot) error {
	if saved.ref == 0 {
		return fmt.Errorf("%w: an object is missing", errSnapshot)
	}
	if !isHead(t.pack.Head(saved.ref), saved.flags&hasNumber != 0) || !isLabelText(saved.labelText) {
		return fmt.Errorf("%w: an object has no name or labels", errSnapshot)
	}
	t.born++
	of := t.slots.at(n)
	*of = slot{ref: saved.ref, number: saved.number, uid: saved.uid, form: saved.form, born: t.born, flags: saved.flags&hasNumber | staged}
	of.namespace, of.labels = t.namespaces.use(saved.namespaceText), t.labels.use(saved.labelText)
	key := t.key(n)
	if namespace, _ := splitKey(key); namespace != saved.namespaceText || t.find(key, live) != 0 {
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
	in.sum = crc32.Update(in.sum, castagnoli, []byte{b})
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
