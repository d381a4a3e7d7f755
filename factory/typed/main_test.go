package typed_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/rvinformer/informer/factory/typed"
	"github.com/rvinformer/informer/informertest"
)

func TestMain(m *testing.M) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // client-go logs every failure
	utilruntime.ErrorHandlers = nil                   // one sleeps by the time since the last error, which in a bubble is decades
	goleak.VerifyTestMain(m)
}

var (
	pods  = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodes = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
)

// bubble runs test in a synctest bubble with a simulated server in memory.
func bubble(t *testing.T, opts informertest.Options, test func(t *testing.T, s *informertest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		opts.InMemory = true
		s := informertest.NewServer(opts)
		defer s.Close()
		test(t, s)
	})
}

// bubbleRun runs test as the subtest of a name, in a bubble of its own.
func bubbleRun(t *testing.T, name string, opts informertest.Options, test func(t *testing.T, s *informertest.Server)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { bubble(t, opts, test) })
}

// client is a real client of the server.
func client(t require.TestingT, s *informertest.Server) kubernetes.Interface {
	c, err := kubernetes.NewForConfig(s.Config())
	require.NoError(t, err)
	return c
}

// over returns a factory that lists over the server's own connections.
func over(s *informertest.Server, options ...typed.SharedInformerOption) *typed.Factory {
	return typed.New(nil, 0, append([]typed.SharedInformerOption{typed.WithRESTConfig(s.Config())}, options...)...)
}

func pod(name string, labels ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{}}}
	for i := 0; i < len(labels); i += 2 {
		p.Labels[labels[i]] = labels[i+1]
	}
	return p
}

func create(t require.TestingT, s *informertest.Server, name string, labels ...string) {
	_, err := s.Create(pods, pod(name, labels...))
	require.NoError(t, err)
}

// change gives a pod of the server other labels.
func change(t require.TestingT, s *informertest.Server, name string, labels ...string) {
	_, err := s.Update(pods, pod(name, labels...))
	require.NoError(t, err)
}

// synced fails if the informers of f have not synced soon. In a bubble the time is virtual.
func synced(t require.TestingT, f typed.SharedInformerFactory) {
	late := make(chan struct{})
	timer := time.AfterFunc(time.Minute, func() { close(late) })
	defer timer.Stop()
	for goType, ok := range f.WaitForCacheSync(late) {
		require.True(t, ok, "%v", goType)
	}
}

// started starts a factory and waits until it has synced. Stop ends it, and waits for its end.
func started(t require.TestingT, f typed.SharedInformerFactory) (stop func()) {
	stopped := make(chan struct{})
	f.Start(stopped)
	synced(t, f)
	return func() {
		close(stopped)
		f.Shutdown()
	}
}

// follows starts a factory and waits until it has synced. Cancel ends it, and does not wait for its
// end.
func follows(t *testing.T, f typed.SharedInformerFactory) (cancel context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	f.StartWithContext(ctx)
	synced(t, f)
	return cancel
}

// keys are those of the objects of an informer.
func keys(i cache.SharedIndexInformer) []string { return i.GetStore().ListKeys() }
