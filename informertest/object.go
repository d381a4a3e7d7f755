package informertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// object is one state of one API object. It is shared between the store, the history and every
// response under way, so nothing in it changes after encode returned it.
type object struct {
	identity
	namespace, name string
	labels          labels.Set
	rv              uint64
	versions        versions

	// The JSON text around the resource version. One state is shown under several of them (a
	// deletion repeats the last state under a newer one), and keeping the text in two halves spares
	// a second copy of it. Built-in types leave out kind and apiVersion here, as they do inside a
	// list.
	head, tail []byte
}

// identity is what an object keeps through all its updates.
type identity struct {
	uid     types.UID
	created time.Time
}

// noVersion is the resource version of an object that does not say its own.
const noVersion = 0

// at is the same state under another resource version.
func (o *object) at(rv uint64) *object {
	c := *o
	c.rv = rv
	return &c
}

// unversioned is the same state without a resource version.
func (o *object) unversioned() *object {
	c := o.at(noVersion)
	c.head = bytes.TrimSuffix(o.head, []byte(`"resourceVersion":"`))
	if len(c.head) == len(o.head) {
		return c
	}
	c.tail = bytes.TrimPrefix(o.tail, []byte(`"`))
	if rest, found := bytes.CutPrefix(c.tail, []byte(",")); found {
		c.tail = rest
	} else {
		c.head = bytes.TrimSuffix(c.head, []byte(","))
	}
	return c
}

func (o *object) appendJSON(b []byte) []byte {
	b = append(b, o.head...)
	if o.rv != noVersion {
		b = o.versions.append(b, o.rv)
	}
	return append(b, o.tail...)
}

func (o *object) metadataJSON() (json.RawMessage, error) {
	var parts struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(o.appendJSON(nil), &parts); err != nil {
		return nil, fmt.Errorf("reading the metadata of %s/%s: %w", o.namespace, o.name, err)
	}
	return parts.Metadata, nil
}

// decode returns a copy that is the caller's own.
func (o *object) decode(r Resource) (*unstructured.Unstructured, error) {
	content := map[string]any{}
	if err := utiljson.Unmarshal(o.appendJSON(nil), &content); err != nil {
		return nil, fmt.Errorf("decoding %s %s/%s: %w", r.Kind, o.namespace, o.name, err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetAPIVersion(r.apiVersion())
	u.SetKind(r.Kind)
	return u, nil
}

// sameContent reports whether the two states differ in nothing but their resource version. The
// texts may still differ in the order of their fields, when one came from a Go struct and the other
// from a map, but never in their length.
func (o *object) sameContent(other *object) bool {
	if bytes.Equal(o.head, other.head) && bytes.Equal(o.tail, other.tail) {
		return true
	}
	if len(o.head)+len(o.tail) != len(other.head)+len(other.tail) {
		return false
	}
	var a, b map[string]any
	if utiljson.Unmarshal(o.at(1).appendJSON(nil), &a) != nil || utiljson.Unmarshal(other.at(1).appendJSON(nil), &b) != nil {
		return false
	}
	return reflect.DeepEqual(a, b)
}

// encode turns a caller's object, which it only reads, into a state with no resource version yet.
func encode(r Resource, obj runtime.Object, id identity) (*object, error) {
	// No caller can know this text before the object exists, so its only occurrence is the one
	// written here.
	placeholder := "resource-version-of-" + string(id.uid)
	u, isMap := obj.(*unstructured.Unstructured)
	if !isMap && r.Custom {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return nil, fmt.Errorf("converting %T: %w", obj, err)
		}
		u, isMap = &unstructured.Unstructured{Object: content}, true
	}
	var (
		draft runtime.Object
		text  []byte
	)
	if isMap {
		draft = shallowCopy(u)
	} else {
		draft = obj.DeepCopyObject()
		draft.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	m, err := meta.Accessor(draft)
	if err != nil {
		return nil, fmt.Errorf("%T has no object metadata: %w", obj, err)
	}
	m.SetUID(id.uid)
	m.SetCreationTimestamp(metav1.NewTime(id.created))
	m.SetResourceVersion(placeholder)
	o := &object{identity: id, namespace: m.GetNamespace(), name: m.GetName(), labels: maps.Clone(m.GetLabels()), versions: r.versions}

	if isMap {
		text, err = encodeMap(r, draft.(*unstructured.Unstructured))
	} else {
		text, err = json.Marshal(draft)
	}
	if err != nil {
		return nil, fmt.Errorf("encoding %s %s/%s: %w", r.Kind, o.namespace, o.name, err)
	}
	before, after, found := bytes.Cut(text, []byte(placeholder))
	if !found {
		return nil, fmt.Errorf("encoding %T: its JSON form has no metadata.resourceVersion", obj)
	}
	o.head, o.tail = before, after
	return o, nil
}

// shallowCopy copies the two maps that encode writes to.
func shallowCopy(u *unstructured.Unstructured) *unstructured.Unstructured {
	content := maps.Clone(u.Object)
	if m, ok := content["metadata"].(map[string]any); ok {
		content["metadata"] = maps.Clone(m)
	}
	return &unstructured.Unstructured{Object: content}
}

// encodeMap writes an object and leaves its map unfit for anything else.
func encodeMap(r Resource, u *unstructured.Unstructured) ([]byte, error) {
	if r.Custom {
		u.SetAPIVersion(r.apiVersion())
		u.SetKind(r.Kind)
		return json.Marshal(u.Object)
	}
	delete(u.Object, "apiVersion")
	delete(u.Object, "kind")
	metadata, err := appendFields(nil, u.Object["metadata"].(map[string]any),
		"name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp")
	if err != nil {
		return nil, err
	}
	u.Object["metadata"] = json.RawMessage(metadata)
	return appendFields(nil, u.Object, "metadata")
}

// appendFields writes a map with some of its fields ahead of the others, the way Go structs of the
// API order them.
func appendFields(b []byte, fields map[string]any, ahead ...string) ([]byte, error) {
	names := slices.Sorted(maps.Keys(fields))
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(ahead, name) })
	b = append(b, '{')
	first := true
	for _, name := range slices.Concat(ahead, names) {
		value, ok := fields[name]
		if !ok {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		for i, part := range []any{name, value} {
			text, err := json.Marshal(part)
			if err != nil {
				return nil, fmt.Errorf("field %q: %w", name, err)
			}
			if i == 1 {
				b = append(b, ':')
			}
			b = append(b, text...)
		}
	}
	return append(b, '}'), nil
}
