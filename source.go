package informer

import (
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/keytable"
	"github.com/rvinformer/informer/internal/object"
	"github.com/rvinformer/informer/internal/wire"
)

// page is what a list request brought beside its objects.
type page struct {
	resourceVersion, next string
}

// read is told of one object of a list: of the item or of what is wrong with it.
// The item has the key if that could be read.
type read func(it object.Item, unreadable error) error

// listPage does one list request and hands each object on.
func (s *session) listPage(ctx context.Context, opts metav1.ListOptions, each read) (page, error) {
	if s.resource != nil {
		return s.streamPage(ctx, opts, each)
	}
	list, err := s.listForeign(ctx, opts)
	if err != nil {
		return page{}, err
	}
	s.report.Contact()
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
	return s.readStream(s.lists[body.format], each)
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
		it, unreadable := s.readLent(encoded, metav1.TypeMeta{APIVersion: m.APIVersion, Kind: m.ItemKind()}, object.Place{Index: encoded.Index})
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
	return each(object.Item{Place: object.Place{Index: lost.Index}}, lost)
}

// readLent is read for an object that a wire reader lends. Listed is what the
// list says of its items.
func (s *session) readLent(encoded wire.Item, listed metav1.TypeMeta, at object.Place) (object.Item, error) {
	if s.lent == nil {
		s.lent = &object.Lent{Form: &s.form}
	}
	lent := s.lent
	lent.Item, lent.Listed = encoded, listed
	if len(encoded.Namespace) > 0 {
		s.key = append(append(append(s.key[:0], encoded.Namespace...), '/'), encoded.Name...)
	} else {
		s.key = append(s.key[:0], encoded.Name...)
	}
	it := object.Item{
		Key:     object.LentString(s.key),
		Version: keytable.Version{ResourceVersion: object.LentString(encoded.ResourceVersion), UID: types.UID(object.LentString(encoded.UID))},
		Place:   at,
		Lent:    lent,
	}
	kind := lent.TypeMeta()
	if kind == (metav1.TypeMeta{}) {
		return it, errors.New("neither the object nor the list before it says its kind")
	}
	return it, s.expected.CheckKind(kind)
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
		it, unreadable := s.read(obj, object.Place{Index: index})
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
func (s *session) read(obj runtime.Object, at object.Place) (object.Item, error) {
	if obj == nil {
		return object.Item{Place: at}, errors.New("no object")
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return object.Item{Place: at}, fmt.Errorf("%T: %w", obj, err)
	}
	if accessor.GetName() == "" {
		return object.Item{Place: at}, fmt.Errorf("%T without a name", obj)
	}
	it := object.Item{
		Key:     cache.MetaObjectToName(accessor).String(),
		Version: keytable.Version{ResourceVersion: accessor.GetResourceVersion(), UID: accessor.GetUID()},
		Place:   at,
		Object:  obj,
	}
	return it, s.expected.Check(obj)
}
