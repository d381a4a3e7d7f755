package factory_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/informertest"

	_ "github.com/rvinformer/informer/internal/testkit/rapidseed"
)

func TestMain(m *testing.M) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // client-go has much to say of dead servers
	utilruntime.ErrorHandlers = nil                   // one sleeps by the time since the last error, which in a bubble is decades
	goleak.VerifyTestMain(m)
}

var (
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	widgets    = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	kinds      = map[schema.GroupVersionResource]string{pods: "Pod", configMaps: "ConfigMap", widgets: "Widget"}

	widgetResource = informertest.Resource{GroupVersionResource: widgets, Kind: "Widget", Namespaced: true, Custom: true}
)

// stub is a cache.SharedIndexInformer that lists and watches nothing. It syncs when it is told to.
type stub struct {
	cache.SharedIndexInformer
	synced chan struct{}
	// began counts the calls of Run, and under those under way.
	began, under atomic.Int32
	// linger, unless it is nil, holds a Run back that is to end, until it is closed.
	linger chan struct{}
}

func newStub() *stub {
	return &stub{
		SharedIndexInformer: cache.NewSharedIndexInformer(&cache.ListWatch{}, &corev1.Pod{}, 0, nil),
		synced:              make(chan struct{}),
	}
}

func (s *stub) RunWithContext(ctx context.Context) {
	s.began.Add(1)
	s.under.Add(1)
	defer s.under.Add(-1)
	<-ctx.Done()
	if s.linger != nil {
		<-s.linger
	}
}

func (s *stub) HasSyncedChecker() cache.DoneChecker { return stubDone{s} }

type stubDone struct{ s *stub }

func (d stubDone) Name() string          { return "stub" }
func (d stubDone) Done() <-chan struct{} { return d.s.synced }

// versionsStub is a stub as an informer.ResourceVersionInformer.
type versionsStub struct {
	*stub
	noVersions
}

// noVersions has what an informer.ResourceVersionInformer has beside that of a stub.
type noVersions struct{}

func (noVersions) Status() informer.Status { return informer.Status{} }

func (noVersions) Audit(context.Context, informer.AuditOptions) (informer.AuditReport, error) {
	return informer.AuditReport{}, nil
}

func (noVersions) WaitUntil(context.Context, string) error { return nil }

func (noVersions) Redeliver(context.Context, informer.RedeliverOptions) error { return nil }

func (noVersions) DeadLetters() []informer.DeadLetter { return nil }

func alwaysVersions(s *stub) factory.NewResourceVersionInformerFunc {
	return func() informer.ResourceVersionInformer { return versionsStub{stub: s} }
}

// always makes a newFunc that returns i.
func always(i cache.SharedIndexInformer) factory.NewInformerFunc {
	return func() cache.SharedIndexInformer { return i }
}

func newStubFunc() cache.SharedIndexInformer { return newStub() }

// never is a newFunc that must not be called.
func never(t require.TestingT) factory.NewInformerFunc {
	return func() cache.SharedIndexInformer {
		require.FailNow(t, "newFunc is called")
		return nil
	}
}

// alone runs test in a synctest bubble, with a factory that is shut down at its end.
func alone(t *testing.T, test func(t *testing.T, f *factory.Factory)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := factory.New()
		defer f.Shutdown()
		test(t, f)
	})
}

// bubble is alone with a simulated server in memory.
func bubble(t *testing.T, opts informertest.Options, test func(t *testing.T, s *informertest.Server, f *factory.Factory)) {
	t.Helper()
	alone(t, func(t *testing.T, f *factory.Factory) {
		opts.InMemory = true
		s := informertest.NewServer(opts)
		defer s.Close()
		defer f.Shutdown()
		test(t, s, f)
	})
}

// dynamicFunc makes ordinary informers of a server.
func dynamicFunc(t require.TestingT, s *informertest.Server, gvr schema.GroupVersionResource) factory.NewInformerFunc {
	return func() cache.SharedIndexInformer {
		client, err := dynamic.NewForConfig(s.Config())
		require.NoError(t, err)
		return dynamicinformer.NewFilteredDynamicInformer(client, gvr, "", 0, cache.Indexers{}, nil).Informer()
	}
}

// versionsFunc makes informers of a server that keep resource versions.
func versionsFunc(t require.TestingT, s *informertest.Server, gvr schema.GroupVersionResource, told *tally) factory.NewResourceVersionInformerFunc {
	return func() informer.ResourceVersionInformer {
		return informer.NewResourceVersionInformer(gvr.Resource, versionsConfig(t, s, gvr, told))
	}
}

func versionsConfig(t require.TestingT, s *informertest.Server, gvr schema.GroupVersionResource, told *tally) informer.InformerConfig {
	lws, err := informer.NewDynamicListerWatcherFactory(s.Config())
	require.NoError(t, err)
	return informer.InformerConfig{
		ListerWatcher: lws.ForResource("", gvr),
		Handler:       told,
		ErrorHandler:  func(*informer.Reflector, error) {},
	}
}

// tally is a handler that counts.
type tally struct{ added, deleted, synced atomic.Int32 }

func (h *tally) OnAdd(interface{}, bool)   { h.added.Add(1) }
func (h *tally) OnUpdate(_, _ interface{}) {}
func (h *tally) OnDelete(interface{})      { h.deleted.Add(1) }
func (h *tally) OnSync(interface{})        { h.synced.Add(1) }

func create(t require.TestingT, s *informertest.Server, gvr schema.GroupVersionResource, name string) {
	_, err := s.Create(gvr, &unstructured.Unstructured{Object: map[string]interface{}{
		"apiVersion": gvr.GroupVersion().String(),
		"kind":       kinds[gvr],
		"metadata":   map[string]interface{}{"namespace": "default", "name": name},
	}})
	require.NoError(t, err)
}

// ends fails if the channel is not closed soon. In a bubble the time is virtual.
func ends(t require.TestingT, c <-chan struct{}, what string) {
	select {
	case <-c:
	case <-time.After(time.Minute):
		require.FailNow(t, what+" takes more than a minute")
	}
}

func isOpen(c <-chan struct{}) bool {
	select {
	case <-c:
		return false
	default:
		return true
	}
}

func closedChannel() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
