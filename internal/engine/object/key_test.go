package object_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/engine/object"
)

func TestAppendedKeyIsThatOfClientGo(t *testing.T) {
	named := func(namespace, name string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	for _, obj := range []interface{}{
		named("team", "web"), named("", "node"), named("team", ""), named("", ""),
		cache.DeletedFinalStateUnknown{Key: "team/web", Obj: named("other", "web")}, cache.DeletedFinalStateUnknown{},
		cache.ExplicitKey("team/web"), "no object", nil,
	} {
		want, wantErr := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
		key, err := object.AppendKey([]byte("before "), obj)
		if wantErr != nil {
			require.Equal(t, cache.KeyError{Obj: obj, Err: wantErr}, err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "before "+want, string(key))
	}
}
