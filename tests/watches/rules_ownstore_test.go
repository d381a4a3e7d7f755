package watches_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
	"github.com/rvinformer/informer/tests/harness"
)

// ownStore is a server whose pods are in a store of their own, with versions of their own, as those of
// an aggregated server are. A watch from a version that the store does not have yet is silent, or has
// bookmarks of the version of the store.
type ownStore struct {
	pods      *informertest.Server
	handler   http.Handler
	bookmarks bool
	questions atomic.Int32
}

func newOwnStore(bookmarks bool) *ownStore {
	s := &ownStore{bookmarks: bookmarks}
	s.pods = informertest.NewServer(informertest.Options{InMemory: true, Wrap: func(h http.Handler) http.Handler {
		s.handler = h
		return h
	}})
	return s
}

func (s *ownStore) wrap(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.HasSuffix(r.URL.Path, "/pods"):
			server.ServeHTTP(w, r)
		case s.bookmarks && harness.IsWatch(r) && s.isFuture(r):
			s.tellOldBookmarks(w, r)
		default:
			if r.URL.Query().Get("limit") == "1" {
				s.questions.Add(1)
			}
			s.handler.ServeHTTP(w, r)
		}
	})
}

func (s *ownStore) isFuture(r *http.Request) bool {
	asked, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	now, _ := strconv.Atoi(s.pods.ResourceVersion())
	return asked > now
}

func (s *ownStore) tellOldBookmarks(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-time.After(time.Minute):
		}
		version, _ := json.Marshal(s.pods.ResourceVersion())
		fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":%s}}}`+"\n", version)
	}
}

// restore takes the pods back to a backup, and changes one.
func (s *ownStore) restore(t *testing.T, b *informertest.Backup) {
	t.Helper()
	s.pods.Restore(b)
	_, err := s.pods.Update(harness.Pods, harness.Object(harness.Pods, "a/1", "restored"))
	require.NoError(t, err)
}

func (s *ownStore) requireState(t *testing.T, recorders ...*harness.Recorder) {
	t.Helper()
	versions, err := s.pods.ResourceVersions(harness.Pods, "")
	require.NoError(t, err)
	for _, r := range recorders {
		require.Equal(t, versions, r.State(), "%v", r.Events())
	}
}

// A resource whose own etcd was restored is noticed by its bookmarks, or as there are none any more,
// although the namespace kube-system has the version to go on from.
func TestStoreOfTheResourceGoesBack(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T, w *harness.World) (recorders []*harness.Recorder, status func() informer.Status){
		"alone": func(t *testing.T, w *harness.World) ([]*harness.Recorder, func() informer.Status) {
			r := &harness.Recorder{}
			return []*harness.Recorder{r}, harness.Running(w, informer.InformerConfig{Handler: r}).Status
		},
		"watch-list": func(t *testing.T, w *harness.World) ([]*harness.Recorder, func() informer.Status) {
			r := &harness.Recorder{}
			return []*harness.Recorder{r}, harness.RunningAuto(w, informer.InformerConfig{Handler: r}).Status
		},
		"shared": func(t *testing.T, w *harness.World) ([]*harness.Recorder, func() informer.Status) {
			s := harness.Share(w, informer.InformerConfig{})
			all := []*harness.Recorder{{}, {}, {}}
			for _, r := range all {
				harness.AddHandler(t, s, r)
			}
			t.Cleanup(harness.Start(s.RunWithContext))
			return all, s.Status
		},
		"objectcache": func(t *testing.T, w *harness.World) ([]*harness.Recorder, func() informer.Status) {
			i := objectcache.NewSharedIndexInformerWithOptions(w.Lister(), &unstructured.Unstructured{}, objectcache.Options{})
			r := &harness.Recorder{}
			_, err := i.AddEventHandler(r)
			require.NoError(t, err)
			t.Cleanup(harness.Start(func(ctx context.Context) { i.RunWithContext(ctx) }))
			return []*harness.Recorder{r}, i.Status
		},
	} {
		for _, bookmarks := range []bool{true, false} {
			t.Run(fmt.Sprint(name, "/bookmarks ", bookmarks), func(t *testing.T) {
				var s *ownStore
				wrap := func(server http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.wrap(server).ServeHTTP(w, r) })
				}
				harness.Bubble(t, informertest.Options{Wrap: wrap}, func(t *testing.T, w *harness.World) {
					s = newOwnStore(bookmarks)
					t.Cleanup(s.pods.Close)
					w.CreateKubeSystem()
					w.SetResourceVersion(100000)
					for _, key := range []string{"a/1", "a/2", "a/3"} {
						_, err := s.pods.Create(harness.Pods, harness.Object(harness.Pods, key, "created"))
						require.NoError(t, err)
					}
					all, status := begin(t, w)
					time.Sleep(time.Minute)
					w.CloseClientConnections()  // the cluster becomes known
					time.Sleep(3 * time.Minute) // bookmarks have come
					backup := s.pods.Backup()
					for n := range 50 {
						_, err := s.pods.Update(harness.Pods, harness.Object(harness.Pods, "a/1", fmt.Sprint(n)))
						require.NoError(t, err)
					}
					_, err := s.pods.Create(harness.Pods, harness.Object(harness.Pods, "a/4", "lost"))
					require.NoError(t, err)
					time.Sleep(2 * time.Minute)
					s.requireState(t, all...)
					s.restore(t, backup)
					if time.Sleep(3 * time.Minute); !bookmarks {
						time.Sleep(35 * time.Minute) // the time of a watch
					}
					s.requireState(t, all...)
					require.NotZero(t, status().Counts.Restores)
					s.questions.Store(0)
					_, err = s.pods.Update(harness.Pods, harness.Object(harness.Pods, "a/2", "changed"))
					require.NoError(t, err)
					time.Sleep(5 * time.Hour)
					s.requireState(t, all...)
					require.LessOrEqual(t, s.questions.Load(), int32(len(all)), "a watch that is in order raises no questions")
				})
			})
		}
	}
}
