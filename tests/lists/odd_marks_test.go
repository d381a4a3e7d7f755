package lists_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// restarting is an aggregated server whose store is memory. It has a pod until it begins anew: then it
// has none, and its versions begin again. It knows watch-lists, and forgets all else.
type restarting struct{ anew atomic.Bool }

func (s *restarting) wrap(server http.Handler) http.Handler {
	return harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/pods") {
			return true
		}
		version, item := "100", harness.ItemJSON("a", "u1", 90, "")
		if s.anew.Load() {
			version, item = "1", ""
		}
		w.Header().Set("Content-Type", "application/json")
		switch {
		case !harness.IsWatch(r):
			fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":%q},"items":[%s]}`, version, item)
			return false
		case !harness.IsWatchList(r):
			fmt.Fprintln(w, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`)
			return false
		}
		if item != "" {
			fmt.Fprintf(w, `{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod",%s}`+"\n", item[1:])
		}
		fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":%q,"annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n", version)
		_ = http.NewResponseController(w).Flush()
		time.Sleep(time.Minute)
		return false
	})(server)
}

// A server that ends watch-lists without objects, in a version that is odd, is asked for lists, because
// only these can insist.
func TestServerWithOddMarksAndWithoutObjectsIsBelievedInTheEnd(t *testing.T) {
	var s restarting
	harness.Bubble(t, informertest.Options{Wrap: s.wrap}, func(t *testing.T, w *harness.World) {
		w.CreateKubeSystem()
		w.SetResourceVersion(1000)
		var r harness.Recorder
		i := harness.RunningAuto(w, informer.InformerConfig{Handler: &r})
		time.Sleep(30 * time.Second)
		s.anew.Store(true)
		time.Sleep(50 * time.Minute)
		require.Equal(t, map[string]string{"d/a": "90"}, r.State())
		require.ErrorContains(t, i.Status().LastError, "the list has version 1, which is older than 100")
		time.Sleep(15 * time.Minute)
		require.Empty(t, r.State())
		require.NoError(t, i.Status().LastError)
	})
}
