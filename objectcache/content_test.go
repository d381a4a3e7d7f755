package objectcache_test

import (
	"bytes"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
)

// newContent is a server that serves its objects with another content in the same version, as a
// kube-apiserver does after a definition has got a default.
type newContent struct{ on atomic.Bool }

func (c *newContent) wrap(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.on.Load() {
			r.Header.Del("Accept-Encoding")
			w = replacing{w}
		}
		server.ServeHTTP(w, r)
	})
}

type replacing struct{ http.ResponseWriter }

func (w replacing) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write writes b with a value of the same length, so that JSON and protobuf stay valid.
func (w replacing) Write(b []byte) (int, error) {
	return w.ResponseWriter.Write(bytes.ReplaceAll(b, []byte("created"), []byte("default")))
}

func TestRelistShowsNewContentOfTheSameVersion(t *testing.T) {
	same := func(obj interface{}) (interface{}, error) { return obj, nil }
	for name, c := range map[string]struct {
		example apiruntime.Object
		opts    objectcache.Options
	}{
		"unstructured":         {nil, objectcache.Options{}},
		"typed":                {&corev1.Pod{}, objectcache.Options{}},
		"metadata":             {&metav1.PartialObjectMetadata{}, objectcache.Options{}},
		"transformed":          {&corev1.Pod{}, objectcache.Options{Transform: same}},
		"pruned":               {&corev1.Pod{}, objectcache.Options{Prune: []string{"metadata.managedFields"}}},
		"unstructured decoded": {nil, objectcache.Options{Decoded: true}},
		"typed decoded":        {&corev1.Pod{}, objectcache.Options{Decoded: true}},
	} {
		content := &newContent{}
		bubbleRun(t, name, informertest.Options{Wrap: content.wrap}, func(t *testing.T, w *world) {
			w.create("a/1", "a/2")
			i := newInformer(w.lister(), c.example, c.opts)
			h, _ := handle(t, i)
			defer w.run(i)()
			w.update("a/2", "newer")
			w.create("a/3")
			sleep(time.Second)
			h.take()
			relist(w)
			require.Empty(t, h.take())

			content.on.Store(true)
			relist(w)
			require.Equal(t, []string{"update a/1 default was created", "update a/3 default was created"}, h.sorted())
			require.Equal(t, 1, w.lists())
			obj, exists, err := i.GetIndexer().GetByKey("a/1")
			require.NoError(t, err)
			require.True(t, exists)
			require.Equal(t, "default", value(obj))
			relist(w)
			require.Empty(t, h.take())
			require.NoError(t, i.Status().LastError)
		})
	}
}

func TestSnapshotTakesNewContentOfTheSameVersion(t *testing.T) {
	for name, example := range map[string]apiruntime.Object{"unstructured": nil, "typed": &corev1.Pod{}} {
		content := &newContent{}
		bubbleRun(t, name, informertest.Options{Wrap: content.wrap}, func(t *testing.T, w *world) {
			w.create("a/1", "a/2")
			w.update("a/2", "newer")
			file := w.lived(example)
			content.on.Store(true)
			w.create("a/3")
			w.remove("a/3")
			w.Compact()
			i := newInformer(w.lister(), example, objectcache.Options{Snapshot: informer.FileCheckpoint(file)})
			h, _ := handle(t, i)
			defer w.run(i)()
			sleep(time.Minute)
			require.ElementsMatch(t, []string{"add a/1 created initial", "add a/2 newer initial", "update a/1 default was created"}, h.take())
		})
	}
}
