package objectcache

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"sort"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/leaf/pack"
)

// restore fills an empty store with the objects of a snapshot. Objects are decoded only if there
// are indexes that need them, because an index function may have changed since. On an error, which
// is that of in if the snapshot is why, the store stays empty. It panics if an index function fails.
func (s *Store) restore(in *checkpoint.PayloadReader) error {
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
	saved := s.readSlots(in)
	var err error
	if t.pack, err = pack.Read(in); err != nil {
		return err
	}
	if in.End(); in.Err() != nil {
		return in.Err()
	}
	if err := s.fillTable(t, saved); err != nil {
		in.Fail("%v", err)
		return in.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table, s.resourceVersion = t, saved.resourceVersion
	return nil
}

// savedSlots are what a snapshot has beside the pack.
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
func (s *Store) readSlots(in *checkpoint.PayloadReader) (saved *savedSlots) {
	saved = &savedSlots{resourceVersion: string(in.Bytes())}
	if name := string(in.Bytes()); name != typeName(s.goType) {
		in.Fail("it has objects like a %s", name)
	}
	in.Each(func(int) {
		if saved.forms = append(saved.forms, s.readForm(in)); len(saved.forms) > maxSavedForms {
			in.Fail("it has more than %d types and kinds", maxSavedForms)
		}
	})
	in.Each(func(int) { saved.namespaces = append(saved.namespaces, string(in.Bytes())) })
	in.Each(func(int) { saved.labels = append(saved.labels, string(in.Bytes())) })
	in.Each(func(number int) {
		if flags := in.Byte(); flags&live != 0 {
			saved.read(in, uint64(number), flags)
		}
	})
	return saved
}

// read reads the rest of a live slot.
func (s *savedSlots) read(in *checkpoint.PayloadReader, number uint64, flags byte) {
	if number == 0 || number > math.MaxUint32 {
		in.Fail("a slot has the number %d", number)
	}
	of := s.append()
	of.flags, of.number = flags, uint32(number)
	of.slot.number = in.Number()
	var uid [4]byte
	in.Fill(uid[:])
	of.uid = binary.LittleEndian.Uint32(uid[:])
	of.namespace, of.labels = uint32(in.Below(len(s.namespaces))), uint32(in.Below(len(s.labels)))
	of.form = uint8(in.Below(len(s.forms)))
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

// readForm reads a form, whose type is the store's or one that all stores know.
func (s *Store) readForm(in *checkpoint.PayloadReader) (f form) {
	name := string(in.Bytes())
	for _, t := range []reflect.Type{s.goType, unstructuredType, partialType} {
		if typeName(t) == name {
			f.goType = t
		}
	}
	flags := in.Byte()
	if flags&^(formProtobuf|formImplied) != 0 {
		in.Fail("a form has the flags %d", flags)
	}
	f.protobuf, f.implied = flags&formProtobuf != 0, flags&formImplied != 0
	f.kind.APIVersion, f.kind.Kind = string(in.Bytes()), string(in.Bytes())
	if f.goType == nil || f.protobuf && !isMessage(f.goType) {
		in.Fail("it has objects of the type %s", name)
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
			return err
		}
	}
	count := saved.live.len
	t.slots.grow(count + 1)
	gap, kept := uint32(1), uint32(0)
	for k := range count {
		of := saved.live.at(k)
		if of.ref == 0 {
			return errors.New("an object is missing")
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
		return errors.New("an object has no name or labels")
	}
	n := saved.number
	t.born++
	of := t.slots.at(n)
	*of = slot{ref: saved.ref, number: saved.slot.number, uid: saved.uid, form: saved.form, born: t.born, flags: saved.flags&hasNumber | staged}
	of.namespace, of.labels = t.namespaces.use(namespace), t.labels.use(labels)
	key := t.key(n)
	if inKey, _ := splitKey(key); inKey != namespace || t.find(key, live) != 0 {
		return fmt.Errorf("%q is there twice", key)
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
