package compat_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
)

// The scene of client-go's TestReflectorListExtract, driven through Run: the pages of a list have
// one continue token, everything listed is in the store when the watch is asked for, and an object
// that leaves the store is freed alone.
func TestWatchOpensAfterListIsStored(t *testing.T) {
	const pages, size = 5, 3
	for _, streamed := range []bool{false, true} {
		for _, forced := range []bool{false, true} {
			t.Run(fmt.Sprintf("streamed=%t/forced=%t", streamed, forced), func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				store := cache.NewStore(func(obj any) (string, error) { return obj.(*corev1.Pod).Name, nil })
				var fetched, watched atomic.Int32
				lw := &cache.ListWatch{
					ListFunc: func(metav1.ListOptions) (kruntime.Object, error) {
						n := int(fetched.Add(1))
						list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "10"}}
						if n < pages {
							list.Continue = "true"
						}
						for i := range size {
							list.Items = append(list.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", n*size+i), ResourceVersion: "1"}})
						}
						return list, nil
					},
					WatchFunc: func(metav1.ListOptions) (watch.Interface, error) {
						if watched.Add(1) > 1 {
							return watch.NewFake(), nil
						}
						defer stop()
						require.Len(t, store.ListKeys(), pages*size)
						requireFreedAlone(t, store, size)
						return watch.NewFake(), nil
					},
				}
				r := informer.NewReflector(lw, &corev1.Pod{}, store, 0)
				r.WatchListPageSize, r.StreamHandleForPaginatedList, r.ForcePaginatedList = size, streamed, forced
				r.RunWithContext(ctx)
				require.EqualValues(t, pages, fetched.Load(), "lists")
				require.EqualValues(t, 1, watched.Load(), "watches")
			})
		}
	}
}

// requireFreedAlone deletes all objects but the second one of each page, and requires that the
// first ones are freed.
func requireFreedAlone(t *testing.T, store cache.Store, size int) {
	t.Helper()
	var first []weak.Pointer[corev1.Pod]
	for _, name := range store.ListKeys() {
		var n int
		_, err := fmt.Sscanf(name, "pod-%d", &n)
		require.NoError(t, err)
		if n%size == 1 {
			continue
		}
		obj, _, err := store.GetByKey(name)
		require.NoError(t, err)
		if n%size == 0 {
			first = append(first, weak.Make(obj.(*corev1.Pod)))
		}
		require.NoError(t, store.Delete(obj))
	}
	runtime.GC()
	for _, pod := range first {
		require.Nil(t, pod.Value(), "an object that left the store is kept")
	}
}
