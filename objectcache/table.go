package objectcache

import (
	"encoding/binary"
	"hash/crc32"
	"hash/maphash"
	"reflect"
	"strings"
	"unsafe"

	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/pack"
)

// table has the objects and their indexes. Its owner guards it.
//
// An object has a slot, and its bytes in the pack. A change takes a new slot, which is staged until
// it is linked; then the old one is unlinked and released. Invariant: a key has at most one live
// slot and one staged slot.
type table struct {
	pack  *pack.Pack
	slots slots
	keys  keys
	seed  maphash.Seed
	// namespaces list their live slots. Labels are the texts of label sets.
	namespaces, labels names
	// indexers are all indexers, indexes those of them that are not answered from the key.
	indexers cache.Indexers
	indexes  map[string]*index
	// hot is the store's.
	hot *hot
	// live is the number of live slots, born that of slots that were taken so far.
	live int
	born uint32
	// moves counts how often live slots were moved.
	moves uint32
	// generation is the number of the newest generation.
	generation uint16
	// moved is what the pack is given to say that it has moved a record.
	moved func(n uint32, to pack.Ref)
}

func newTable(hot *hot) *table {
	t := &table{pack: pack.New(), seed: maphash.MakeSeed(), indexers: cache.Indexers{}, indexes: map[string]*index{}, hot: hot}
	t.moved = func(n uint32, to pack.Ref) { t.slots.at(n).ref = to }
	return t
}

// addIndex adds an index, whose values are set. X is not used if the index is answered from the
// key.
func (t *table) addIndex(name string, f cache.IndexFunc, x *index) {
	t.indexers[name] = f
	if !isNamespaceIndex(f) {
		t.indexes[name] = x
	}
}

// isNamespaceIndex reports whether f is cache.MetaNamespaceIndexFunc. Functions with the same code
// may differ only if they are closures, which that one is not.
func isNamespaceIndex(f cache.IndexFunc) bool {
	return reflect.ValueOf(f).Pointer() == reflect.ValueOf(cache.MetaNamespaceIndexFunc).Pointer()
}

// splitKey splits a key at its first slash. A key without a namespace is all name.
func splitKey(key string) (namespace, name string) {
	if i := strings.IndexByte(key, '/'); i > 0 {
		return key[:i], key[i+1:]
	}
	return "", key
}

func joinKey(namespace, name string) string {
	if namespace == "" {
		return strings.Clone(name)
	}
	return namespace + "/" + name
}

func (t *table) hash(text string) uint32 { return uint32(maphash.String(t.seed, text)) }

// hashUID is 0 for a UID that is not known only. It is the same in each process, because snapshots
// have it.
func hashUID(uid string) uint32 {
	if uid == "" {
		return 0
	}
	return max(1, crc32.Checksum(unsafe.Slice(unsafe.StringData(uid), len(uid)), castagnoli))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// find returns the slot of a key that is live or staged, as the flag says, or 0. It keeps nothing
// of key and allocates nothing.
func (t *table) find(key string, flag uint8) (found uint32) {
	namespace, name := splitKey(key)
	number := t.namespaces.find(namespace)
	if number == 0 {
		return 0
	}
	hash := t.hash(key)
	t.keys.all(hash, func(n uint32) bool {
		if s := t.slots.at(n); s.hash == hash && s.namespace == number && s.flags&flag != 0 && t.name(s) == name {
			found = n
		}
		return found == 0
	})
	return found
}

// twin returns the live slot with the key of a staged one, or 0.
func (t *table) twin(of uint32) (found uint32) {
	s := t.slots.at(of)
	name := t.name(s)
	t.keys.all(s.hash, func(n uint32) bool {
		if o := t.slots.at(n); o.hash == s.hash && o.namespace == s.namespace && o.flags&live != 0 && t.name(o) == name {
			found = n
		}
		return found == 0
	})
	return found
}

// key returns the key of a slot.
func (t *table) key(n uint32) string {
	s := t.slots.at(n)
	return joinKey(t.namespaces.list[s.namespace].text, t.name(s))
}

// name is lent by the pack.
func (t *table) name(s *slot) string {
	name, _ := splitHead(t.pack.Head(s.ref), s.flags&hasNumber != 0)
	return name
}

// appendHead appends what a record begins with: the name and, if it is no number, the resource
// version behind it.
func appendHead(dst []byte, name string, v *keytable.Binary) []byte {
	if v.IsNumber {
		return append(dst, name...)
	}
	return append(appendText(dst, name), v.Text...)
}

// splitHead returns strings that are lent.
func splitHead(head []byte, hasNumber bool) (name, resourceVersion string) {
	text := unsafe.String(unsafe.SliceData(head), len(head))
	if hasNumber {
		return text, ""
	}
	length, n := binary.Uvarint(head)
	return text[n:][:length], text[n:][length:]
}

// isVersion reports whether a slot has this version, as far as its UID is known. An empty resource
// version equals none.
func (t *table) isVersion(n uint32, v keytable.Version) bool {
	var b keytable.Binary
	b.SetResourceVersion(v.ResourceVersion)
	s := t.slots.at(n)
	if v.ResourceVersion == "" || b.IsNumber != (s.flags&hasNumber != 0) {
		return false
	}
	if b.IsNumber && b.Number != s.number {
		return false
	}
	if !b.IsNumber {
		if _, has := splitHead(t.pack.Head(s.ref), false); has != b.Text {
			return false
		}
	}
	uid := hashUID(string(v.UID))
	return uid == 0 || s.uid == 0 || uid == s.uid
}

// isSum reports whether a slot has an object that was read as bytes with this checksum.
func (t *table) isSum(n, sum uint32) bool { return sum != 0 && t.slots.at(n).sum == sum }

// stage takes a slot for an object, whose bytes are prepared, with its values in the indexes.
func (t *table) stage(e *encoded, bytes pack.Prepared, values map[string][]string) uint32 {
	var v keytable.Binary
	v.SetResourceVersion(e.version.ResourceVersion)
	namespace, name := splitKey(e.key)
	var buffer [128]byte
	n := t.slots.take()
	t.born++
	s := t.slots.at(n)
	s.ref = t.pack.Add(appendHead(buffer[:0], name, &v), n, bytes)
	s.number, s.flags = v.Number, staged
	if v.IsNumber {
		s.flags |= hasNumber
	}
	s.hash, s.uid = t.hash(e.key), hashUID(string(e.version.UID))
	s.namespace, s.labels = t.namespaces.use(namespace), t.labels.use(unsafe.String(unsafe.SliceData(e.labels), len(e.labels)))
	s.born, s.mark, s.form, s.sum = t.born, t.generation, e.form, e.sum
	t.keys.add(&t.slots, n)
	for name, x := range t.indexes {
		x.set(n, values[name])
	}
	return n
}

// link makes a staged slot live, which is in no list. There is no other live slot of its key.
func (t *table) link(n uint32) {
	s := t.slots.at(n)
	s.flags = s.flags&^staged | live
	t.namespaces.list[s.namespace].add(&t.slots, n)
	for _, x := range t.indexes {
		x.link(n)
	}
	t.live++
}

// unlink hides a live slot from readers.
func (t *table) unlink(n uint32) {
	s := t.slots.at(n)
	s.flags &^= live
	t.namespaces.list[s.namespace].remove(&t.slots, n)
	for _, x := range t.indexes {
		x.unlink(n)
	}
	t.hot.drop(n)
	t.live--
}

// release frees a slot that is not linked and in no list.
func (t *table) release(n uint32) {
	s := t.slots.at(n)
	t.keys.remove(&t.slots, n)
	for _, x := range t.indexes {
		x.forget(n)
	}
	t.namespaces.unuse(s.namespace)
	t.labels.unuse(s.labels)
	t.pack.Drop(s.ref)
	t.slots.giveBack(n)
	if t.keys.count == 0 {
		t.slots = slots{}
		for _, x := range t.indexes {
			*x = *newIndex(x.values)
		}
	}
}

// tidy lets the pack do a part of its work.
func (t *table) tidy() (more bool) { return t.pack.Tidy(t.moved) }

// sizeBytes is the memory of all that the table has.
func (t *table) sizeBytes() int64 {
	size := t.pack.SizeBytes() + t.slots.sizeBytes() + t.keys.sizeBytes() + t.namespaces.sizeBytes() + t.labels.sizeBytes() + t.hot.sizeBytes()
	for _, x := range t.indexes {
		size += x.sizeBytes()
	}
	return size + int64(unsafe.Sizeof(*t))
}
