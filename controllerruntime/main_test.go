package controllerruntime_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rvinformer/informer/controllerruntime"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
)

func TestMain(m *testing.M) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // failures are meant to happen
	log.SetLogger(klog.Background())
	utilruntime.ErrorHandlers = nil // one sleeps by the time since the last error, which in a bubble is decades
	goleak.VerifyTestMain(m)
}

var (
	podResource    = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodeResource   = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	widgetResource = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

	podKind    = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	widgetKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
)

// bench is a server with a cache of it.
type bench struct {
	*testing.T
	server *informertest.Server
	cache  cache.Cache
	// stop ends the cache.
	stop context.CancelFunc
}

// bubble runs a test in a synctest bubble with a server in memory.
func bubble(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, server: informertest.NewServer(informertest.Options{InMemory: true})}
		defer b.server.Close()
		defer func() {
			if b.stop != nil {
				b.stop()
			}
		}()
		test(t, b)
	})
}

// bubbleRun runs test as the subtest of a name, in a bubble of its own.
func bubbleRun(t *testing.T, name string, test func(t *testing.T, b *bench)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { bubble(t, test) })
}

// make makes the cache.
func (b *bench) make(opts cache.Options, own controllerruntime.Options) {
	b.Helper()
	var err error
	b.cache, err = controllerruntime.NewCacheWithOptions(own)(b.server.Config(), opts)
	require.NoError(b, err)
}

// start makes the cache and starts it.
func (b *bench) start(opts cache.Options, own controllerruntime.Options) {
	b.Helper()
	b.make(opts, own)
	b.run()
}

// run starts the cache until stop is called, and waits until it has synced.
func (b *bench) run() {
	b.begin()
	require.True(b, b.cache.WaitForCacheSync(b.Context()))
}

// begin starts the cache until stop is called.
func (b *bench) begin() {
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.cache.Start(ctx) }()
	b.stop = func() {
		cancel()
		require.NoError(b, <-ended)
		b.stop = nil
	}
}

// store is that of the only informer of a kind.
func (b *bench) store(obj client.Object) *objectcache.Store {
	i, err := b.cache.GetInformer(b.Context(), obj)
	require.NoError(b, err)
	return i.(*objectcache.Informer).Store()
}

func (b *bench) create(resource schema.GroupVersionResource, obj client.Object) {
	_, err := b.server.Create(resource, obj)
	require.NoError(b, err)
}

// inject has the server do what a fault says, until heal is called.
func (b *bench) inject(fault string) (heal func()) {
	f, err := informertest.ParseFault(fault)
	require.NoError(b, err)
	return b.server.Inject(f)
}

// pods creates pods in a namespace, pod-0 and so on, all with a label "n" of their own and every
// tenth with the label "team".
func (b *bench) pods(namespace string, n int) {
	for i := range n {
		p := pod(namespace, fmt.Sprintf("pod-%d", i))
		p.Labels["n"] = fmt.Sprint(i)
		if i%10 == 0 {
			p.Labels["team"] = "blue"
		}
		b.create(podResource, p)
	}
}

func pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"name": name}},
		Spec:       corev1.PodSpec{NodeName: "node-" + namespace},
	}
}

// names are those of the objects of a list, with their namespaces.
func names(pods corev1.PodList) (all []string) {
	for _, p := range pods.Items {
		all = append(all, p.Namespace+"/"+p.Name)
	}
	return all
}
