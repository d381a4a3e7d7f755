package objectcache_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/objectcache"
)

func Example() {
	store := objectcache.NewStore(&corev1.Pod{}, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		"node":               func(obj interface{}) ([]string, error) { return []string{obj.(*corev1.Pod).Spec.NodeName}, nil },
	}, objectcache.StoreOptions{})
	for _, pod := range []*corev1.Pod{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0", Labels: map[string]string{"app": "web"}}, Spec: corev1.PodSpec{NodeName: "n1"}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db-0", Labels: map[string]string{"app": "db"}}, Spec: corev1.PodSpec{NodeName: "n1"}},
	} {
		if err := store.Add(pod); err != nil {
			fmt.Println(err)
		}
	}

	// Only what matches is decoded.
	pods, err := objectcache.ListMatching(store, "default", labels.SelectorFromSet(labels.Set{"app": "web"}))
	if err != nil {
		fmt.Println(err)
	}
	for _, pod := range pods {
		fmt.Println(pod.(*corev1.Pod).Name, "runs on", pod.(*corev1.Pod).Spec.NodeName)
	}
	fmt.Println(store.Decoded(), "decoded")

	// Select finds objects without decoding any.
	found, err := store.Select(objectcache.Query{Indexed: []objectcache.IndexedValue{{Name: "node", Value: "n1"}}})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(len(found), "on n1")
	// Output:
	// web-0 runs on n1
	// 1 decoded
	// 2 on n1
}
