package typed_test

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/informertest"
)

// An error answer whose body stalls ends the list or the watch in time.
func TestStalledErrorBodyDoesNotHoldTheInformerUp(t *testing.T) {
	var lists, watches atomic.Int32
	stall := func(server http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			count := &lists
			if r.URL.Query().Has("watch") {
				count = &watches
			}
			if count.Add(1) > 1 {
				server.ServeHTTP(w, r)
				return
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, "down")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
	}
	bubble(t, informertest.Options{Wrap: stall}, func(t *testing.T, s *informertest.Server) {
		create(t, s, "one")
		f := over(s)
		informer := f.Core().V1().Pods().Informer()
		defer started(t, f)()
		create(t, s, "two")
		time.Sleep(time.Minute)
		require.ElementsMatch(t, []string{"default/one", "default/two"}, keys(informer))
	})
}
