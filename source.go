package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/keytable"
	"github.com/rvinformer/informer/internal/wire"
)

// place is where an object was read: its index in its page or its watch.
type place struct {
	watch bool
	index int
}

// item is one object that was read from the server: decoded by a ListerWatcher,
// or as it came off the wire.
type item struct {
	key     string
	version keytable.Version
	place   place
	// object is the object, or nil where lent holds it.
	object runtime.Object
	// lent is the object in the reader's buffers. It, and then key and version too,
	// live until the item was handed on: who keeps them longer asks for a copy.
	lent *lentObject
}

// lentObject is an object as a wire reader lends it.
type lentObject struct {
	wire.Item
	// listed is what the list says of its items. It counts for an item that says
	// nothing itself.
	listed metav1.TypeMeta
	form   *form
	// scratch is where pruning writes to. It is used again for the next object.
	scratch []byte
	// last is the kind of the object that was copied last.
	last metav1.TypeMeta
}

// copy returns the object with memory of its own, or of the pool, and without what
// is to be pruned.
func (l *lentObject) copy(it item, pool *rawPool) (*RawObject, error) {
	encoded := l.Item
	prunes, prune := l.form.prune, l.form.prune.AppendJSON
	if l.Format == wire.Protobuf {
		prunes, prune = l.form.pruneProtobuf, l.form.pruneProtobuf.AppendProtobuf
	}
	if len(prunes) > 0 {
		var err error
		if l.scratch, err = prune(l.scratch[:0], l.Bytes); err != nil {
			return nil, err
		}
		encoded.Bytes = l.scratch
	}
	// One kind follows the other: their strings are shared.
	if kind := l.kind(); kind != l.last {
		l.last = metav1.TypeMeta{APIVersion: strings.Clone(kind.APIVersion), Kind: strings.Clone(kind.Kind)}
	}
	kind := l.last
	const envelope = 64 // of protobuf, or the kind in JSON: about
	raw := pool.get(len(encoded.Bytes) + envelope + len(kind.APIVersion) + len(kind.Kind))
	raw.kind, raw.format, raw.place = kind, l.Format, it.place
	raw.key, raw.version = it.identity()
	raw.encoding = encoded.AppendObject(raw.encoding, kind.APIVersion, kind.Kind)
	if l.Format == wire.Protobuf {
		raw.message.from, raw.message.to = wire.MessageIn(raw.encoding, len(encoded.Bytes))
	}
	return raw, nil
}

// identity returns key and version with memory of their own, all in one piece.
func (it item) identity() (key string, version keytable.Version) {
	// Not by +, which returns its only operand that is not empty, lent as it is.
	var b strings.Builder
	b.Grow(len(it.key) + len(it.version.ResourceVersion) + len(it.version.UID))
	b.WriteString(it.key)
	b.WriteString(it.version.ResourceVersion)
	b.WriteString(string(it.version.UID))
	all := b.String()
	key, all = all[:len(it.key)], all[len(it.key):]
	resourceVersion := all[:len(it.version.ResourceVersion)]
	return key, keytable.Version{ResourceVersion: resourceVersion, UID: types.UID(all[len(resourceVersion):])}
}

// kind is what the object is, as client-go takes it to be. It is lent where the
// object says it itself.
func (l *lentObject) kind() metav1.TypeMeta {
	if len(l.APIVersion) == 0 && len(l.Kind) == 0 {
		return l.listed
	}
	return metav1.TypeMeta{APIVersion: lentString(l.APIVersion), Kind: lentString(l.Kind)}
}

// lentString is a string over bytes that will be written again.
func lentString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// owned returns the item decoded, and with memory of its own.
func (it item) owned() (item, error) {
	if it.lent == nil {
		return it, nil
	}
	raw, err := it.lent.copy(it, nil)
	if err != nil {
		return item{key: strings.Clone(it.key), place: it.place}, it.unreadable(err)
	}
	own := item{key: raw.key, version: raw.version, place: raw.place, object: raw}
	if decode := it.lent.form.decode; decode != nil {
		if own.object, err = decode(raw); err != nil {
			return own, own.unreadable(err)
		}
	}
	return own, nil
}

// unreadable says what is wrong with the item.
func (it item) unreadable(err error) *ItemError {
	return &ItemError{Index: it.place.index, Watch: it.place.watch, Key: strings.Clone(it.key), Err: err}
}

// page is what a list request brought beside its objects.
type page struct {
	resourceVersion, next string
}

// read is told of one object of a list: of the item or of what is wrong with it.
// The item has the key if that could be read.
type read func(it item, unreadable error) error

// listPage does one list request and hands each object on.
func (s *session) listPage(ctx context.Context, opts metav1.ListOptions, each read) (page, error) {
	if s.wire != nil {
		return s.streamPage(ctx, opts, each)
	}
	list, err := s.listForeign(ctx, opts)
	if err != nil {
		return page{}, err
	}
	s.contact()
	if err := s.under.GoesOn(ctx); err != nil {
		return page{}, err
	}
	return s.readList(list, each)
}

// streamPage reads a page off its body, object by object.
func (s *session) streamPage(ctx context.Context, opts metav1.ListOptions, each read) (page, error) {
	body, err := s.open(ctx, opts, s.listPatience())
	if err != nil {
		return page{}, err
	}
	defer body.close()
	if s.lists[body.format] == nil {
		s.lists[body.format] = wire.NewListReader(body, body.format, wire.Options{})
	} else {
		s.lists[body.format].Reset(body)
	}
	p, err := s.readStream(s.lists[body.format], each)
	if err != nil {
		return page{}, bodyError(false, err)
	}
	return p, nil
}

func (s *session) readStream(reader wire.ListReader, each read) (page, error) {
	kind := kindCheck{Reflector: s.Reflector}
	for {
		encoded, err := reader.Next()
		if err == io.EOF {
			return endOfStream(reader.Meta(), &kind)
		}
		if err != nil {
			if err := lose(err, each); err != nil {
				return page{}, err
			}
			continue
		}
		m := reader.Meta()
		says := len(encoded.Kind) > 0
		if err := kind.item(m.Kind, says); err != nil {
			return page{}, err
		}
		it, unreadable := s.readLent(encoded, metav1.TypeMeta{APIVersion: m.APIVersion, Kind: m.ItemKind()}, place{index: encoded.Index})
		kind.proven = kind.proven || says && unreadable == nil
		if err := each(it, unreadable); err != nil {
			return page{}, err
		}
	}
}

// endOfStream checks that what was read to its end was a list.
func endOfStream(m wire.ListMeta, kind *kindCheck) (page, error) {
	if m.Kind == "" {
		return page{}, errors.New("the answer has items but no kind")
	}
	return page{m.ResourceVersion, m.Continue}, kind.end(m.Kind)
}

// lose tells of an object that the reader has lost, if err is that. What its key
// is, is not certain: it was not read to its end.
func lose(err error, each read) error {
	var lost *wire.ItemError
	if !errors.As(err, &lost) {
		return err
	}
	return each(item{place: place{index: lost.Index}}, lost)
}

// readLent is read for an object that a wire reader lends. Listed is what the
// list says of its items.
func (s *session) readLent(encoded wire.Item, listed metav1.TypeMeta, at place) (item, error) {
	if s.lent == nil {
		s.lent = &lentObject{form: &s.form}
	}
	lent := s.lent
	lent.Item, lent.listed = encoded, listed
	if len(encoded.Namespace) > 0 {
		s.key = append(append(append(s.key[:0], encoded.Namespace...), '/'), encoded.Name...)
	} else {
		s.key = append(s.key[:0], encoded.Name...)
	}
	it := item{
		key:     lentString(s.key),
		version: keytable.Version{ResourceVersion: lentString(encoded.ResourceVersion), UID: types.UID(lentString(encoded.UID))},
		place:   at,
		lent:    lent,
	}
	kind := lent.kind()
	if kind == (metav1.TypeMeta{}) {
		return it, errors.New("neither the object nor the list before it says its kind")
	}
	return it, s.expected.checkKind(kind)
}

// readList hands the objects of a list on, one by one and each with memory of
// its own, so that none keeps the list.
func (s *session) readList(list runtime.Object, each read) (page, error) {
	if list == nil {
		return page{}, fmt.Errorf("a list of %v is nil", s.expected)
	}
	if isTable(list) {
		return page{}, fmt.Errorf("a list of %v is a Table, which holds no objects", s.expected)
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return page{}, fmt.Errorf("a list of %v is a %T: %w", s.expected, list, err)
	}
	if err := s.checkListType(list); err != nil {
		return page{}, err
	}
	kind, check, index := list.GetObjectKind().GroupVersionKind().Kind, kindCheck{Reflector: s.Reflector}, 0
	err = meta.EachListItemWithAlloc(list, func(obj runtime.Object) error {
		says := obj != nil && obj.GetObjectKind().GroupVersionKind().Kind != ""
		if err := check.item(kind, says); err != nil {
			return err
		}
		it, unreadable := s.read(obj, place{index: index})
		check.proven = check.proven || says && unreadable == nil
		index++
		return each(it, unreadable)
	})
	if err == nil && kind != "" {
		err = check.end(kind)
	}
	return page{accessor.GetResourceVersion(), accessor.GetContinue()}, err
}

// isTable knows the form of a list that is made for people to read.
func isTable(list runtime.Object) bool {
	kind := list.GetObjectKind().GroupVersionKind()
	return kind.Group == metav1.GroupName && kind.Kind == "Table"
}

// read takes what the reflector needs from an object, and checks that it is
// what was expected. On error, the item has the key if that could be read.
func (s *session) read(obj runtime.Object, at place) (item, error) {
	if obj == nil {
		return item{place: at}, errors.New("no object")
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return item{place: at}, fmt.Errorf("%T: %w", obj, err)
	}
	if accessor.GetName() == "" {
		return item{place: at}, fmt.Errorf("%T without a name", obj)
	}
	it := item{
		key:     cache.MetaObjectToName(accessor).String(),
		version: keytable.Version{ResourceVersion: accessor.GetResourceVersion(), UID: accessor.GetUID()},
		place:   at,
		object:  obj,
	}
	return it, s.expected.check(obj)
}
