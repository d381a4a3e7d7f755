package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/keytable"
	"github.com/rvinformer/informer/internal/wire"
)

// item is one object that was read from the server.
type item struct {
	key     string
	version keytable.Version
	// object is the object, or nil where encoded holds it.
	object runtime.Object
	// encoded is the object as it came off the wire. It is lent: it lives until the
	// item was handed on.
	encoded *encodedObject
}

// decoded returns the object. It is decoded only if someone asks.
func (it item) decoded() (runtime.Object, error) {
	if it.encoded == nil {
		return it.object, nil
	}
	obj, err := it.encoded.decode()
	if err != nil {
		return nil, &ItemError{Key: it.key, Err: err}
	}
	return obj, nil
}

// encodedObject is an unstructured object in JSON.
type encodedObject struct {
	wire.Item
	// listed is what the list says of its items. It counts for an item that says
	// nothing itself.
	listed schema.GroupVersionKind
}

// kind is what the object is, as client-go takes it to be.
func (e *encodedObject) kind() schema.GroupVersionKind {
	if len(e.APIVersion) == 0 && len(e.Kind) == 0 {
		return e.listed
	}
	return schema.FromAPIVersionAndKind(string(e.APIVersion), string(e.Kind))
}

func (e *encodedObject) decode() (runtime.Object, error) {
	obj := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(e.Bytes, &obj.Object); err != nil {
		return nil, err
	}
	if obj.GetAPIVersion() == "" && obj.GetKind() == "" {
		obj.SetGroupVersionKind(e.listed)
	}
	return obj, nil
}

// page is what a list request brought beside its objects.
type page struct {
	resourceVersion, next string
}

// read is told of one object of a list: of the item or of what is wrong with it.
// The item has the key if that could be read.
type read func(index int, it item, unreadable error) error

// listStreamer is a ListerWatcher that lends the body of a list while it arrives.
type listStreamer interface {
	// streamList returns the body of a list of objects in JSON, to be closed.
	streamList(ctx context.Context, opts metav1.ListOptions) (io.ReadCloser, error)
}

// listPage does one list request and hands each object on.
func (s *session) listPage(ctx context.Context, opts metav1.ListOptions, each read) (page, error) {
	if streamer, ok := s.source.(listStreamer); ok {
		body, err := streamer.streamList(ctx, opts)
		if err != nil {
			return page{}, err
		}
		defer body.Close()
		s.contact()
		return s.readStream(body, each)
	}
	list, err := s.source.ListWithContext(ctx, opts)
	if err != nil {
		return page{}, err
	}
	s.contact()
	return s.readList(list, each)
}

// readStream reads a list off its body, object by object.
func (s *session) readStream(body io.Reader, each read) (page, error) {
	reader := s.reader
	if reader == nil {
		reader = wire.NewListReader(body, wire.JSON, wire.Options{})
		s.reader = reader
	} else {
		reader.Reset(body)
	}
	for {
		encoded, err := reader.Next()
		var lost *wire.ItemError
		switch {
		case err == io.EOF:
			return s.endOfStream(reader.Meta())
		case errors.As(err, &lost):
			// What its key is, is not certain: the item was not read to its end.
			if err := each(lost.Index, item{}, lost); err != nil {
				return page{}, err
			}
			continue
		case err != nil:
			return page{}, fmt.Errorf("list of %v: %w", s.expected, err)
		}
		it, err := s.readEncoded(encoded, reader.Meta())
		if err := each(encoded.Index, it, err); err != nil {
			return page{}, err
		}
	}
}

// endOfStream checks that what was read to its end was a list.
func (s *session) endOfStream(m wire.ListMeta) (page, error) {
	if m.Kind == "" {
		return page{}, fmt.Errorf("list of %v: the answer has items but no kind", s.expected)
	}
	return page{m.ResourceVersion, m.Continue}, nil
}

func (s *session) readEncoded(encoded wire.Item, list wire.ListMeta) (item, error) {
	e := &encodedObject{Item: encoded, listed: schema.FromAPIVersionAndKind(list.APIVersion, strings.TrimSuffix(list.Kind, "List"))}
	it := item{
		key:     cache.NewObjectName(string(e.Namespace), string(e.Name)).String(),
		version: keytable.Version{ResourceVersion: string(e.ResourceVersion), UID: types.UID(e.UID)},
		encoded: e,
	}
	if e.kind().Empty() {
		return it, errors.New("neither the object nor the list before it says its kind")
	}
	return it, s.expected.checkEncoded(e)
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
	index := 0
	err = meta.EachListItemWithAlloc(list, func(obj runtime.Object) error {
		it, unreadable := s.read(obj)
		err := each(index, it, unreadable)
		index++
		return err
	})
	return page{accessor.GetResourceVersion(), accessor.GetContinue()}, err
}

// isTable knows the form of a list that is made for people to read.
func isTable(list runtime.Object) bool {
	kind := list.GetObjectKind().GroupVersionKind()
	return kind.Group == metav1.GroupName && kind.Kind == "Table"
}

// read takes what the reflector needs from an object, and checks that it is
// what was expected. On error, the item has the key if that could be read.
func (s *session) read(obj runtime.Object) (item, error) {
	if obj == nil {
		return item{}, errors.New("no object")
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return item{}, fmt.Errorf("%T: %w", obj, err)
	}
	if accessor.GetName() == "" {
		return item{}, fmt.Errorf("%T without a name", obj)
	}
	it := item{
		key:     cache.MetaObjectToName(accessor).String(),
		version: keytable.Version{ResourceVersion: accessor.GetResourceVersion(), UID: accessor.GetUID()},
		object:  obj,
	}
	return it, s.expected.check(obj)
}
