package objectcache_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
)

func TestLookupTellsWhichStateCanBeRead(t *testing.T) {
	for name, example := range examples {
		test := func(opts objectcache.Options) func(t *testing.T) {
			return func(t *testing.T) { lookUp(t, example, opts) }
		}
		t.Run(name, test(objectcache.Options{}))
		t.Run(name+" decoded", test(objectcache.Options{Decoded: true}))
	}
}

func lookUp(t *testing.T, example runtime.Object, opts objectcache.Options) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1")
		i := newInformer(w.lister(), example, opts)
		_, found := i.Lookup("a/1")
		require.False(t, found)
		defer w.run(i)()
		pod, err := w.Get(pods, "a", "1")
		require.NoError(t, err)
		b, found := i.Lookup("a/1")
		require.True(t, found)
		require.False(t, b.Acknowledged.ReadBefore.IsZero())
		require.Equal(t, informer.Belief{Acknowledged: &informer.AcknowledgedState{
			ResourceVersion: pod.GetResourceVersion(), UID: pod.GetUID(), ReadBefore: b.Acknowledged.ReadBefore,
		}}, b)
		_, found = i.Lookup("a/2")
		require.False(t, found)
		require.Equal(t, 1, i.Status().Objects)
	})
}
