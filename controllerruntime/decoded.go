package controllerruntime

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rvinformer/informer/objectcache"
)

// The informers of objectcache.Options.Decoded keep their objects in client-go's indexer, and have
// no objectcache.Store.

// decodedIndexers are the indexes that reads of decoded objects need, besides those of IndexField.
func decodedIndexers() toolscache.Indexers {
	return toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc}
}

// getDecoded returns the object of a key, which is shared.
func getDecoded(indexer toolscache.Indexer, key string) (obj runtime.Object, exists bool, err error) {
	kept, exists, err := indexer.GetByKey(key)
	if !exists || err != nil {
		return nil, false, err
	}
	obj, err = asObject(kept)
	return obj, err == nil, err
}

// selectDecoded returns the objects that a query selects, in no order. They are shared.
func selectDecoded(indexer toolscache.Indexer, q objectcache.Query) ([]client.Object, error) {
	var candidates []any
	var err error
	switch {
	case len(q.Indexed) > 0:
		candidates, err = indexer.ByIndex(q.Indexed[0].Name, q.Indexed[0].Value)
	case q.Namespace != "":
		candidates, err = indexer.ByIndex(toolscache.NamespaceIndex, q.Namespace)
	default:
		candidates = indexer.List()
	}
	if err != nil {
		return nil, err
	}
	var found []client.Object
	indexers := indexer.GetIndexers()
	for _, kept := range candidates {
		if q.Limit > 0 && len(found) == q.Limit {
			break
		}
		obj, err := asObject(kept)
		if err != nil {
			return nil, err
		}
		selected, err := isSelected(obj, q, indexers)
		if err != nil {
			return nil, err
		}
		if selected {
			found = append(found, obj)
		}
	}
	return found, nil
}

// isSelected reports whether a query selects an object.
func isSelected(obj client.Object, q objectcache.Query, indexers toolscache.Indexers) (bool, error) {
	if q.Namespace != "" && obj.GetNamespace() != q.Namespace {
		return false, nil
	}
	if q.Labels != nil && !q.Labels.Matches(labels.Set(obj.GetLabels())) {
		return false, nil
	}
	if len(q.Indexed) < 2 {
		return true, nil
	}
	for _, indexed := range q.Indexed[1:] {
		values := indexers[indexed.Name]
		if values == nil {
			return false, fmt.Errorf("index with name %s does not exist", indexed.Name)
		}
		has, err := values(obj)
		if err != nil {
			return false, err
		}
		if !slices.Contains(has, indexed.Value) {
			return false, nil
		}
	}
	return true, nil
}

// asObject returns what an indexer keeps, which a Transform may have made something else of.
func asObject(kept any) (client.Object, error) {
	obj, ok := kept.(client.Object)
	if !ok {
		return nil, fmt.Errorf("cache contained %T, which is not an Object", kept)
	}
	return obj, nil
}
