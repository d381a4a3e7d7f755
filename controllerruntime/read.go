package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/rvinformer/informer/objectcache"
)

// Get implements client.Reader. The object is decoded into out.
func (c *objectCache) Get(ctx context.Context, key client.ObjectKey, out client.Object, opts ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(out, c.scheme)
	if err != nil {
		return err
	}
	k, err := c.kindToRead(kindKey{gvk, formOf(out)})
	if err != nil {
		return err
	}
	if !k.namespaced {
		key.Namespace = ""
	}
	name, ok := k.holds(key.Namespace)
	if !ok {
		return fmt.Errorf("unable to get: %v because of unknown namespace for the cache", key)
	}
	m, err := c.toRead(ctx, k, name)
	if err != nil {
		return err
	}
	if err := checkType(reflect.TypeOf(k.example), out); err != nil {
		return err
	}
	var options client.GetOptions
	options.ApplyOptions(opts)
	exists, err := m.get(storeKey(key), out, ptr.Deref(options.UnsafeDisableDeepCopy, false))
	switch {
	case err != nil:
		return err
	case !exists:
		// The kind stands for the resource, as in controller-runtime's errors.
		return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name)
	default:
		return nil
	}
}

// storeKey is the key of an object in a store.
func storeKey(key client.ObjectKey) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.Namespace + "/" + key.Name
}

// get fills out with the object of a key, if there is one. Shared is for a reader that promises to
// change nothing in it.
func (m *member) get(key string, out runtime.Object, shared bool) (exists bool, err error) {
	shared = shared || m.shared
	store := m.informer.Store()
	if store == nil {
		obj, exists, err := getDecoded(m.informer.GetIndexer(), key)
		if !exists || err != nil {
			return exists, err
		}
		return true, m.show(obj, out, shared)
	}
	if !shared {
		if exists, err = store.GetInto(key, out); exists && err == nil {
			m.setKind(out)
		}
		return exists, err
	}
	obj, exists, err := store.Shared(key)
	if !exists || err != nil {
		return exists, err
	}
	return true, m.show(obj, out, shared)
}

// find returns the objects that a query selects.
func (m *member) find(q objectcache.Query) ([]item, error) {
	store := m.informer.Store()
	if store == nil {
		found, err := selectDecoded(m.informer.GetIndexer(), q)
		items := make([]item, len(found))
		for i, obj := range found {
			items[i] = item{member: m, object: obj}
		}
		return items, err
	}
	found, err := store.Select(q)
	items := make([]item, len(found))
	for i, stored := range found {
		items[i] = item{member: m, stored: stored}
	}
	return items, err
}

// show fills out with an object of the store: a shallow copy if it is shared, else a deep one.
func (m *member) show(obj, out runtime.Object, shared bool) error {
	if err := checkType(reflect.TypeOf(obj), out); err != nil { // a Transform may have made another type of it
		return err
	}
	if !shared {
		obj = obj.DeepCopyObject()
	}
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(obj).Elem())
	if !shared || m.kind.form != unstructuredForm { // a shared one has its kind in a map, which is not copied
		m.setKind(out)
	}
	return nil
}

func (m *member) setKind(out runtime.Object) {
	out.GetObjectKind().SetGroupVersionKind(m.kind.gvk)
}

// List implements client.Reader. Objects that match are decoded into the items of out, and no other
// object is decoded.
func (c *objectCache) List(ctx context.Context, out client.ObjectList, opts ...client.ListOption) error {
	gvk, err := apiutil.GVKForObject(out, c.scheme)
	if err != nil {
		return err
	}
	var options client.ListOptions
	options.ApplyOptions(opts)
	if options.Continue != "" {
		return errors.New("continue list option is not supported by the cache")
	}
	k, err := c.kindToRead(kindKey{itemKind(gvk), formOf(out)})
	if err != nil {
		return err
	}
	query, err := queryOf(options)
	if err != nil {
		return err
	}
	names, err := k.toList(options.Namespace)
	if err != nil {
		return err
	}
	var items []item
	for _, name := range names {
		m, err := c.toRead(ctx, k, name)
		if err != nil {
			return err
		}
		found, err := m.find(query)
		if err != nil {
			return err
		}
		items = append(items, found...)
		if query.Limit > 0 {
			if query.Limit -= len(found); query.Limit == 0 {
				break
			}
		}
	}
	if err := fill(out, k.example, items, ptr.Deref(options.UnsafeDisableDeepCopy, false)); err != nil {
		return err
	}
	out.SetContinue("continue-not-supported")
	return nil
}

// toList returns the names in the selection that objects of a namespace are under; of all
// namespaces, if it is empty.
func (k *kind) toList(namespace string) ([]string, error) {
	if namespace == metav1.NamespaceAll {
		return slices.Sorted(maps.Keys(k.selection)), nil
	}
	name, ok := k.holds(namespace)
	if !ok {
		return nil, fmt.Errorf("unable to list: %v because of unknown namespace for the cache", namespace)
	}
	return []string{name}, nil
}

// queryOf returns what a list asks of a store.
func queryOf(options client.ListOptions) (objectcache.Query, error) {
	query := objectcache.Query{Namespace: options.Namespace, Labels: options.LabelSelector, Limit: int(max(options.Limit, 0))}
	if options.FieldSelector == nil {
		return query, nil
	}
	requirements := options.FieldSelector.Requirements()
	inexact := func(r fields.Requirement) bool {
		return r.Operator != selection.Equals && r.Operator != selection.DoubleEquals
	}
	if len(requirements) == 0 || slices.ContainsFunc(requirements, inexact) {
		return objectcache.Query{}, errors.New("non-exact field matches are not supported by the cache")
	}
	for _, r := range requirements {
		query.Indexed = append(query.Indexed, objectcache.IndexedValue{Name: indexName(r.Field), Value: indexedValue(options.Namespace, r.Value)})
	}
	return query, nil
}

// item is an object of a list.
type item struct {
	member *member
	// object is the object where the store keeps it decoded, and stored the encoded one where it
	// does not.
	object client.Object
	stored objectcache.Stored
}

// decode fills out with the object. Shared is as for get.
func (i *item) decode(out runtime.Object, shared bool) error {
	m := i.member
	shared = shared || m.shared
	switch {
	case i.object != nil:
		return m.show(i.object, out, shared)
	case shared:
		obj, err := i.stored.Shared()
		if err != nil {
			return err
		}
		return m.show(obj, out, shared)
	}
	if err := i.stored.DecodeInto(out); err != nil {
		return err
	}
	m.setKind(out)
	return nil
}

// fill makes items the items of a list.
func fill(list client.ObjectList, example runtime.Object, items []item, shared bool) error {
	into, err := meta.GetItemsPtr(list)
	if err != nil {
		return err
	}
	cached := reflect.TypeOf(example)
	slice := reflect.ValueOf(into).Elem()
	switch of := slice.Type().Elem(); of {
	case cached.Elem():
		filled := reflect.MakeSlice(slice.Type(), len(items), len(items))
		for i, item := range items {
			if err := item.decode(filled.Index(i).Addr().Interface().(runtime.Object), shared); err != nil {
				return err
			}
		}
		slice.Set(filled)
		return nil
	default: // pointers, or whatever else meta.SetList can fill
		objs := make([]runtime.Object, len(items))
		for i, item := range items {
			objs[i] = reflect.New(cached.Elem()).Interface().(runtime.Object)
			if err := item.decode(objs[i], shared); err != nil {
				return err
			}
		}
		return meta.SetList(list, objs)
	}
}
