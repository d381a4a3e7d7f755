package controllerruntime

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// IndexField implements client.FieldIndexer.
func (c *objectCache) IndexField(ctx context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	informer, err := c.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	return informer.AddIndexers(toolscache.Indexers{indexName(field): indexFunc(extract)})
}

// indexFunc returns each value twice for an object with a namespace: for lists of it, and for lists
// of all.
func indexFunc(extract client.IndexerFunc) toolscache.IndexFunc {
	return func(raw any) ([]string, error) {
		obj, ok := raw.(client.Object)
		if !ok {
			return nil, fmt.Errorf("object of type %T is not an Object", raw)
		}
		values := extract(obj)
		namespace := obj.GetNamespace()
		indexed := make([]string, 0, 2*len(values))
		for _, value := range values {
			indexed = append(indexed, indexedValue("", value))
			if namespace != "" {
				indexed = append(indexed, indexedValue(namespace, value))
			}
		}
		return indexed, nil
	}
}

// indexName is the name of the index of a field.
func indexName(field string) string { return "field:" + field }

// indexedValue is a value in an index, for lists of a namespace; of all, if it is empty. No
// namespace has the name that stands for all.
func indexedValue(namespace, value string) string {
	if namespace == "" {
		namespace = "__all_namespaces"
	}
	return namespace + "/" + value
}
