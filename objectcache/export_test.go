package objectcache

import (
	"bytes"
	"io"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// Generation is a generation as the informer writes it.
type Generation struct {
	generation
	objects objects
}

// Kept is where an informer keeps its objects.
type Kept struct{ objects }

func (s *Store) Kept() Kept { return Kept{s} }

// KeptDecoded keeps objects decoded.
func KeptDecoded(indexers cache.Indexers) Kept { return Kept{newDecodedStore(nil, indexers)} }

func (k Kept) Begin() Generation { return Generation{k.begin(), k.objects} }

func (s *Store) Begin() Generation { return s.Kept().Begin() }

func (g Generation) Show(key, resourceVersion, uid string) bool {
	return g.show(key, keytable.Version{ResourceVersion: resourceVersion, UID: types.UID(uid)}, g.sum(key))
}

// ShowItem shows an object as it came off the wire.
func (g Generation) ShowItem(it object.Item) bool { return g.show(it.Key, it.Version, checksum(it)) }

// sum returns the checksum of what is staged or kept of a key. It is set where an object was put
// decoded.
func (g Generation) sum(key string) uint32 {
	switch of := g.generation.(type) {
	case *encodedGeneration:
		n := of.store.table.find(key, staged)
		if n == 0 {
			n = of.store.table.find(key, live)
		}
		if n != 0 {
			of := of.store.table.slots.at(n)
			of.sum = max(of.sum, readSum)
			return of.sum
		}
	case *decodedGeneration:
		if place, again := of.places[key]; again {
			return of.sums[of.staged[place]]
		}
		return of.store.sums[of.store.get(key)]
	}
	return 0
}

// readSum is the checksum of what these tests put decoded.
const readSum = 1

func (g Generation) Put(obj runtime.Object) error {
	e, err := g.objects.encodeObject(obj, metav1.TypeMeta{})
	if err == nil {
		e.sum = readSum
		g.put(e)
	}
	return err
}

// PutItem puts an object as it came off the wire.
func (g Generation) PutItem(it object.Item) error {
	if s, ok := g.objects.(*Store); ok {
		defer s.reportFailures()
	}
	e, err := g.objects.encodeItem(it)
	if err == nil {
		e.sum = checksum(it)
		g.put(e)
	}
	return err
}

func (g Generation) Keep(key string) { g.keep(key) }
func (g Generation) Drop(key string) { g.drop(key) }
func (g Generation) Abandon()        { g.abandon() }

func (g Generation) Known(key string) (resourceVersion, uid string, told, ok bool) {
	v, told, ok := g.known(key)
	return v.ResourceVersion, string(v.UID), told, ok
}

// End yields the old and the new state of each change.
func (g Generation) End(resourceVersion string, complete bool) iter.Seq2[Stored, Stored] {
	changes := g.end(resourceVersion, complete)
	return func(yield func(Stored, Stored) bool) {
		for c := range changes {
			if !yield(c.old, c.new) {
				return
			}
		}
	}
}

// Unchanged reports whether a generation would take an object for unchanged.
func (k Kept) Unchanged(key, resourceVersion, uid string) bool {
	return k.unchanged(key, keytable.Version{ResourceVersion: resourceVersion, UID: types.UID(uid)})
}

func (s *Store) Unchanged(key, resourceVersion, uid string) bool {
	return s.Kept().Unchanged(key, resourceVersion, uid)
}

// PutObject and Remove return the old and the new state.
func (k Kept) PutObject(obj runtime.Object) (old, new Stored, err error) {
	e, err := k.encodeObject(obj, metav1.TypeMeta{})
	if err != nil {
		return Stored{}, Stored{}, err
	}
	e.sum = readSum
	c := k.put(e)
	return c.old, c.new, nil
}

func (s *Store) PutObject(obj runtime.Object) (old, new Stored, err error) {
	return s.Kept().PutObject(obj)
}

func (k Kept) Remove(key string) (old Stored)   { return k.remove(key).old }
func (s *Store) Remove(key string) (old Stored) { return s.Kept().Remove(key) }

// StateOfVersion returns the resource version and the UID of a state.
func (o Stored) StateOfVersion() (resourceVersion, uid string, err error) {
	v, err := o.version()
	return v.ResourceVersion, string(v.UID), err
}

// LendKeys lends keys from a cursor on, and returns where to go on.
func (s *Store) LendKeys(cursor uint64, most int, visit func(key string)) (next uint64) {
	return uint64(s.lendFrom(keytable.Cursor(cursor), most, func(key string, _ *keytable.Binary) { visit(key) }))
}

// Check returns what is wrong in the table.
func (s *Store) Check() error { return s.table.check() }

func (k Kept) Check() error {
	if s, ok := k.objects.(*Store); ok {
		return s.Check()
	}
	return nil
}

// EncodedAs is an object that is not in the store, from bytes that may be anything, encoded as the
// store has example.
func (s *Store) EncodedAs(example runtime.Object, bytes []byte) (Stored, error) {
	e, err := s.encodeObject(example, metav1.TypeMeta{})
	if err != nil {
		return Stored{}, err
	}
	e.bytes = bytes
	return s.detached(e), nil
}

// PutEncoded stores bytes that may be anything as those of an object.
func (s *Store) PutEncoded(obj runtime.Object, bytes []byte) error {
	e, err := s.encodeObject(obj, metav1.TypeMeta{})
	if err != nil {
		return err
	}
	e.object, e.bytes = nil, bytes
	defer s.reportFailures()
	s.put(e)
	return nil
}

// WriteSnapshot writes one state, and ReadSnapshot reads it.
func (s *Store) WriteSnapshot(w io.Writer) (int64, error) {
	cw := checkpoint.NewSnapshotWriter(w)
	out := cw.Payload()
	s.snapshot().write(out)
	err := out.Close()
	return cw.Written(), err
}

func (s *Store) ReadSnapshot(r io.Reader) error {
	cr := checkpoint.NewSnapshotReader(r)
	if _, _, err := cr.Next(); err != io.EOF {
		return err
	}
	return s.restore(cr.Payload())
}

// SplitSnapshot returns the slots and the pack of a snapshot of a store like s.
func (s *Store) SplitSnapshot(text []byte) (slots, pack []byte) {
	all, rest := payload(text, func(*checkpoint.PayloadReader) {}), payload(text, func(in *checkpoint.PayloadReader) { s.readSlots(in) })
	return all[:len(all)-len(rest)], rest
}

// payload returns what skip leaves of the payload of a snapshot.
func payload(text []byte, skip func(*checkpoint.PayloadReader)) (rest []byte) {
	r := checkpoint.NewSnapshotReader(bytes.NewReader(text))
	_, _, _ = r.Next()
	in := r.Payload()
	skip(in)
	for b, err := in.ReadByte(); err == nil; b, err = in.ReadByte() {
		rest = append(rest, b)
	}
	return rest
}
