package informer_test

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
)

// Objects that have neither a resource version nor a UID, as aggregated APIs serve
// them, keep keys of their own: Go's concatenation copies nothing where all operands
// but one are empty, so identity() returned the lent key itself.
func TestBreakObjectsWithoutVersionAndUID(t *testing.T) {
	answer := before(func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		if isWatch(r) {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return false
		}
		_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[`+
			`{"metadata":{"namespace":"a","name":"1"}},{"metadata":{"namespace":"a","name":"2"}},{"metadata":{"namespace":"a","name":"3"}}]}`)
		return false
	})
	for name, example := range map[string]runtime.Object{"raw": &informer.RawObject{}, "unstructured": nil} {
		t.Run(name, func(t *testing.T) {
			bubble(t, informertest.Options{Wrap: answer}, func(t *testing.T, w *world) {
				storage := informer.NewResourceVersionStorage()
				var r recorder
				r.before = func(string) { time.Sleep(time.Second) }
				i := follow(w, informer.InformerConfig{Handler: &r, Storage: storage, ExampleObject: example})
				defer start(i.RunWithContext)()
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Equal(t, []string{"add a/1 initial", "add a/2 initial", "add a/3 initial"}, r.events())
				require.ElementsMatch(t, []string{"a/1", "a/2", "a/3"}, storage.ListKeys())
			})
		})
	}
}
