package harness

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
)

// Bubble runs test in a synctest bubble with a simulated server in memory: time
// is virtual, and synctest.Wait waits until everything that can happen without
// time passing has happened.
func Bubble(t *testing.T, opts informertest.Options, test func(t *testing.T, w *World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &World{T: t}
		wrap := opts.Wrap
		opts.Wrap = func(server http.Handler) http.Handler {
			if wrap != nil {
				server = wrap(server)
			}
			return w.gate(server)
		}
		opts.InMemory = true
		w.Server = informertest.NewServer(opts)
		t.Cleanup(w.Close) // after the informers that Run runs, which end first
		test(t, w)
	})
}

// BubbleRun runs test as the subtest of a name, in a bubble of its own.
func BubbleRun(t *testing.T, name string, opts informertest.Options, test func(t *testing.T, w *World)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { Bubble(t, opts, test) })
}

// SynctestRun runs test as the subtest of a name, in a synctest bubble without a server.
func SynctestRun(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// Sleep lets virtual time pass, and waits until all is quiet.
func Sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// World is a server, and what a test does to it.
type World struct {
	T *testing.T
	*informertest.Server

	// Blocked refuses new requests while it is locked.
	Blocked sync.RWMutex
	// Watching is the number of watches that are open.
	Watching atomic.Int64
}

func (w *World) gate(server http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !w.Blocked.TryRLock() {
			http.Error(rw, "down", http.StatusServiceUnavailable)
			return
		}
		w.Blocked.RUnlock()
		if r.URL.Query().Has("watch") {
			w.Watching.Add(1)
			defer w.Watching.Add(-1)
		}
		server.ServeHTTP(rw, r)
	})
}

// RequireOneWatch waits for the next watch where one ends at this very moment, as its time has
// come.
func (w *World) RequireOneWatch() {
	w.T.Helper()
	for range 3 {
		if synctest.Wait(); w.Watching.Load() > 0 {
			break
		}
		time.Sleep(time.Second)
	}
	require.EqualValues(w.T, 1, w.Watching.Load())
}

// CreatePods creates the pods of keys ("namespace/name").
func (w *World) CreatePods(keys ...string) {
	w.T.Helper()
	for _, key := range keys {
		_, err := w.Create(Pods, Object(Pods, key, "created"))
		require.NoError(w.T, err)
	}
}

// UpdatePod changes the pod of a key.
func (w *World) UpdatePod(key, value string) {
	w.T.Helper()
	_, err := w.Update(Pods, Object(Pods, key, value))
	require.NoError(w.T, err)
}

// DeletePods deletes the pods of keys.
func (w *World) DeletePods(keys ...string) {
	w.T.Helper()
	for _, key := range keys {
		name, err := cache.ParseObjectName(key)
		require.NoError(w.T, err)
		require.NoError(w.T, w.Delete(Pods, name.Namespace, name.Name))
	}
}

// Factory makes what lists and watches resources of the server through a real client.
func (w *World) Factory() informer.DynamicListerWatcherFactory {
	w.T.Helper()
	factory, err := informer.NewDynamicListerWatcherFactory(w.Config())
	require.NoError(w.T, err)
	return factory
}

// Lister lists and watches the pods through a real client.
func (w *World) Lister() cache.ListerWatcher { return w.Factory().ForResource("", Pods) }

// ListerOf lists and watches the pods through a client of a configuration.
func ListerOf(t require.TestingT, config *rest.Config) cache.ListerWatcher {
	factory, err := informer.NewDynamicListerWatcherFactory(config)
	require.NoError(t, err)
	return factory.ForResource("", Pods)
}

// Verbs returns what was asked of the server, as "list limit=2 continue rv=7" or
// "watch rv=8". Single objects are left out, which are asked for to know the server.
func (w *World) Verbs() (verbs []string) {
	for _, r := range w.Requests() {
		if r.Verb == "get" {
			continue
		}
		text := r.Verb
		if ptr.Deref(r.Options.SendInitialEvents, false) {
			text += "-list"
		}
		if r.Options.Limit != 0 {
			text += fmt.Sprintf(" limit=%d", r.Options.Limit)
		}
		if r.Options.Continue != "" {
			text += " continue"
		}
		if r.Options.ResourceVersion != "" {
			text += " rv=" + r.Options.ResourceVersion
		}
		verbs = append(verbs, text)
	}
	return verbs
}

// Versions is the resource version of every pod of the server, by key.
func (w *World) Versions() map[string]string {
	w.T.Helper()
	versions, err := w.ResourceVersions(Pods, "")
	require.NoError(w.T, err)
	return versions
}

// RequireState checks that what each handler was told, folded, is what the
// server has.
func (w *World) RequireState(handlers ...*Recorder) {
	w.T.Helper()
	versions := w.Versions()
	for _, r := range handlers {
		require.Equal(w.T, versions, r.State(), "the handler's state is not the server's; it was told:\n%s", strings.Join(r.Events(), "\n"))
	}
}

// Lists are the requests that were lists, watch-lists included, and not those that ask
// for one object only to know whether the server has a version.
func (w *World) Lists() (lists []string) {
	for _, verb := range w.Verbs() {
		if strings.HasPrefix(verb, "list limit=1 rv=") {
			continue
		}
		if strings.HasPrefix(verb, "list") || strings.HasPrefix(verb, "watch-list") {
			lists = append(lists, verb)
		}
	}
	return lists
}

// Namespaces is a resource of every simulated server.
var Namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// CreateKubeSystem creates the namespace by whose UID a cluster is known.
func (w *World) CreateKubeSystem() {
	w.T.Helper()
	_, err := w.Create(Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}})
	require.NoError(w.T, err)
}

// Protobuf has a client ask for protobuf, and returns its configuration.
func Protobuf(config *rest.Config) *rest.Config {
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config
}

// Simulated is a cluster with pods of the namespace "default", and what lists and watches
// them. A program has a rest.Config instead of that of the server.
func Simulated(names ...string) (*informertest.Server, cache.ListerWatcher) {
	server := informertest.NewServer(informertest.Options{})
	for _, name := range names {
		if _, err := server.Create(Pods, Object(Pods, "default/"+name, "")); err != nil {
			panic(err)
		}
	}
	factory, err := informer.NewDynamicListerWatcherFactory(server.Config())
	if err != nil {
		panic(err)
	}
	return server, factory.ForResource("default", Pods)
}
