package informer_test

import (
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
)

// A server that was restored from a backup does not refuse a watch from a version
// that it will have in the future: it is silent until it has come to that. An informer
// that goes on from a checkpoint asks it before.
func TestRule8AServerRestoredWhileDown(t *testing.T) {
	for name, forbidden := range map[string]bool{"kube-system can be read": false, "kube-system is forbidden": true} {
		t.Run(name, func(t *testing.T) {
			var w *world
			restored := false
			likeAKubeAPIServer := before(func(rw http.ResponseWriter, r *http.Request) bool {
				asked, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
				now, _ := strconv.Atoi(w.ResourceVersion())
				future := restored && asked > now
				kubeSystem := strings.HasSuffix(r.URL.Path, "/namespaces/kube-system")
				switch {
				case kubeSystem && forbidden:
					http.Error(rw, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`, http.StatusForbidden)
				case future && r.URL.Query().Get("watch") != "":
					rw.Header().Set("Content-Type", "application/json")
					rw.(http.Flusher).Flush()
					<-r.Context().Done()
				case future:
					rw.Header().Set("Content-Type", "application/json")
					rw.WriteHeader(http.StatusGatewayTimeout)
					_, _ = rw.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Timeout","code":504,"message":"Timeout: Too large resource version","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]}}`))
				default:
					return true
				}
				return false
			})
			bubble(t, informertest.Options{Wrap: likeAKubeAPIServer}, func(t *testing.T, world *world) {
				w = world
				file := filepath.Join(t.TempDir(), "pods")
				w.create("a/1", "a/2", "a/3")
				before, err := strconv.Atoi(w.ResourceVersion())
				require.NoError(t, err)
				w.update("a/1", "lost")
				var r recorder
				run := func() (i informer.ResourceVersionInformer, stop func()) {
					i = follow(w, informer.InformerConfig{Handler: &r, Checkpoint: informer.FileCheckpoint(file)})
					return i, start(i.RunWithContext)
				}
				_, stop := run()
				synctest.Wait()
				stop()

				w.remove("a/2")
				w.SetResourceVersion(uint64(before - 2))
				w.update("a/1", "restored")
				restored = true
				r.forget()
				i, stop := run()
				defer stop()
				time.Sleep(10 * time.Second)
				synctest.Wait()
				require.True(t, i.HasSynced())
				w.requireState(&r)
				require.Contains(t, r.events(), "delete a/2 unknown")
			})
		})
	}
}
