//go:build wirepoison

package delivery_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// With the build tag, the bytes of a RawObject that a handler has kept are overwritten, and those
// of a copy are not.
func TestKeptRawObjectIsOverwritten(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		var kept, copied *informer.RawObject
		i := harness.Follow(w, informer.InformerConfig{
			ExampleObject: &informer.RawObject{},
			Handler: informer.ResourceEventHandlerFuncs{AddFunc: func(obj interface{}) {
				kept = obj.(*informer.RawObject)
				copied = kept.DeepCopyObject().(*informer.RawObject)
			}},
		})
		stop := harness.Synced(i)
		stop()
		require.NotEmpty(t, kept.Bytes())
		require.Equal(t, bytes.Repeat([]byte{0xDF}, len(kept.Bytes())), kept.Bytes())
		require.Contains(t, string(copied.Bytes()), `"name":"1"`)
	})
}
