//go:build wirepoison

package tests_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
)

// With the build tag, the bytes of a RawObject that a handler has kept are overwritten, and those
// of a copy are not.
func TestKeptRawObjectIsOverwritten(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		w.create("a/1")
		var kept, copied *informer.RawObject
		i := follow(w, informer.InformerConfig{
			ExampleObject: &informer.RawObject{},
			Handler: informer.ResourceEventHandlerFuncs{AddFunc: func(obj interface{}) {
				kept = obj.(*informer.RawObject)
				copied = kept.DeepCopyObject().(*informer.RawObject)
			}},
		})
		stop := start(i.RunWithContext)
		<-i.HasSyncedChecker().Done()
		stop()
		require.NotEmpty(t, kept.Bytes())
		require.Equal(t, bytes.Repeat([]byte{0xDF}, len(kept.Bytes())), kept.Bytes())
		require.Contains(t, string(copied.Bytes()), `"name":"1"`)
	})
}
