package sqlsink

import (
	"encoding/json"
	"fmt"

	"github.com/rvinformer/informer"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/cache"
)

// row is an object as a table has it, or is to have it.
type row struct {
	event           int  // the index of the event that brought it
	gone            bool // the object is deleted: the row is to be removed
	namespace, name string
	uid             string
	version         string // of the API, where the row was read
	resourceVersion string
	object          []byte // JSON; lent by the event until its handler returns
	standIn         []byte // for a database that does not take the object as what it is; nil where it does
}

// rowOf is what an event, the one of a batch with index i, means for the table.
func rowOf(i int, e informer.Event, canonical bool) (row, error) {
	name, err := cache.ParseObjectName(e.Key)
	if err != nil {
		return row{}, err
	}
	r := row{event: i, namespace: name.Namespace, name: name.Name, resourceVersion: e.ResourceVersion}
	if e.Type == informer.Deleted {
		r.gone = true
		return r, nil
	}
	about, err := meta.Accessor(e.Object)
	if err != nil {
		return row{}, err
	}
	r.uid = string(about.GetUID())
	r.object, err = textOf(e.Object, canonical)
	return r, err
}

// textOf is an object as JSON. If canonical is set, its keys are sorted, so that equal objects are
// equal texts.
func textOf(object runtime.Object, canonical bool) ([]byte, error) {
	switch object := object.(type) {
	case *unstructured.Unstructured:
		return json.Marshal(object.Object)
	case *informer.RawObject:
		if canonical {
			decoded, err := object.Unstructured()
			if err != nil {
				return nil, err
			}
			return json.Marshal(decoded.Object)
		}
		if object.ContentType() != runtime.ContentTypeJSON {
			return nil, fmt.Errorf("it came as %s, not as JSON", object.ContentType())
		}
		return object.Bytes(), nil
	default:
		return json.Marshal(object)
	}
}

// decode reads a stored object, with int64 as on its way in.
func (r row) decode() (*unstructured.Unstructured, error) {
	var object unstructured.Unstructured
	if err := utiljson.Unmarshal(r.object, &object.Object); err != nil {
		return nil, fmt.Errorf("the row of %s: %w", cache.ObjectName{Namespace: r.namespace, Name: r.name}, err)
	}
	return &object, nil
}
