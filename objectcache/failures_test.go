package objectcache_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/objectcache"
)

// within fails the test if f does not return soon.
func within(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it waits for a lock that its caller holds")
	}
}

// An ErrorHandler may use the informer and its store in any way, also while the values of an index
// are found out.
func TestErrorHandlerIsCalledWithoutLocks(t *testing.T) {
	pod, damaged := damagedPod(t)
	for name, put := range map[string]func(context.Context, *objectcache.Informer, runtime.Object, []byte) error{
		"of a watch": objectcache.PutEncoded,
		"of a list":  objectcache.ListEncoded,
	} {
		t.Run(name, func(t *testing.T) {
			var i *objectcache.Informer
			reported := 0
			i = newInformer(decoding{}, &corev1.Pod{}, objectcache.Options{
				Indexers: cache.Indexers{"version": byVersion},
				ErrorHandler: func(*informer.Reflector, error) {
					if reported++; reported > 1 {
						return // there is one for each call here
					}
					r, err := i.AddEventHandler(&told{})
					require.NoError(t, err)
					require.NoError(t, i.RemoveEventHandler(r))
					i.Status()
					i.Store().List()
					require.NoError(t, i.Store().Add(podOf("a", "other", "u", "1")))
					require.NoError(t, i.AddIndexers(cache.Indexers{"again": byVersion}))
				},
			})
			within(t, func() { require.NoError(t, put(t.Context(), i, pod, damaged)) })
			require.Positive(t, reported)
		})
	}
}

// So may that of a store, in each call that has index values found out.
func TestErrorHandlerOfStoreIsCalledWithoutLocks(t *testing.T) {
	var reported int
	var s *objectcache.Store
	options := objectcache.StoreOptions{ErrorHandler: func(error) {
		if reported++; reported == 1 {
			require.NoError(t, s.Add(podOf("a", "other", "u", "1")))
			require.NoError(t, s.Replace(s.List(), "7"))
		}
	}}
	s = objectcache.NewStore(&corev1.Pod{}, nil, options)
	require.NoError(t, s.PutEncoded(damagedPod(t)))
	require.Zero(t, reported, "there is no index")
	within(t, func() { require.NoError(t, s.AddIndexers(cache.Indexers{"version": byVersion})) })
	require.Positive(t, reported)

	s = objectcache.NewStore(&corev1.Pod{}, nil, objectcache.StoreOptions{})
	require.NoError(t, s.PutEncoded(damagedPod(t)))
	snapshot := snapshotOf(t, s)
	reported = 0
	s = objectcache.NewStore(&corev1.Pod{}, cache.Indexers{"version": byVersion}, options)
	within(t, func() { require.NoError(t, s.ReadSnapshot(bytes.NewReader(snapshot))) })
	require.Zero(t, reported, "the informer reports when it has let go of its locks")
	within(t, func() { require.NoError(t, s.Add(podOf("a", "other", "u", "1"))) })
	require.Positive(t, reported)
}
