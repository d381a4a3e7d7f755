package main

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/rvinformer/informer/e2e/cluster"
)

// config is that of the server.
var config *rest.Config

// inCluster are the tests, with the server that they need.
type inCluster struct{ *testing.M }

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.NewKlogr())
	goleak.VerifyTestMain(inCluster{m},
		// Client-go ends these only when a transport is collected.
		goleak.IgnoreAnyFunction("k8s.io/client-go/transport.(*dynamicClientCert).run"),
		goleak.IgnoreAnyFunction("k8s.io/client-go/util/workqueue.(*delayingType[...]).waitingLoop"),
	)
}

func (m inCluster) Run() int {
	ctx := context.Background()
	binaries, err := cluster.Build(ctx, "")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	c, err := cluster.Start(ctx, cluster.Options{Binaries: binaries})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	config = c.Config()
	code := 1
	if _, err = envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{"crd.yaml"}, ErrorIfPathMissing: true}); err == nil {
		code = m.M.Run()
	}
	if err != nil || c.Close() != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// bench is a namespace with an operator.
type bench struct {
	client.Client
	namespace string
	newCache  cache.NewCacheFunc
	stop      func()
}

// overEachCache runs a test with each of the caches.
func overEachCache(t *testing.T, test func(t *testing.T, b *bench)) {
	for name, newCache := range caches {
		t.Run(name, func(t *testing.T) {
			scheme, err := newScheme()
			require.NoError(t, err)
			direct, err := client.New(config, client.Options{Scheme: scheme})
			require.NoError(t, err)
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "operator-"}}
			require.NoError(t, direct.Create(t.Context(), namespace))
			b := &bench{Client: direct, namespace: namespace.Name, newCache: newCache}
			b.start(t)
			test(t, b)
		})
	}
}

// start runs the operator until the test or stop ends it.
func (b *bench) start(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	unchecked := true // the names of controllers are in metrics, which two operators in one process would share
	go func() { ended <- run(ctx, config, b.newCache, controller.Options{SkipNameValidation: &unchecked}) }()
	stopped := false
	b.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		require.NoError(t, <-ended)
	}
	t.Cleanup(b.stop)
}

func (b *bench) put(t *testing.T, name string, data map[string]string) {
	part := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}, Data: data}
	err := b.Update(t.Context(), part)
	if client.IgnoreNotFound(err) == nil && err != nil {
		err = b.Create(t.Context(), part)
	}
	require.NoError(t, err)
}

func (b *bench) remove(t *testing.T, name string) {
	require.NoError(t, b.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}))
}

func (b *bench) bundle(t *testing.T, name string, parts ...string) {
	require.NoError(t, b.Create(t.Context(), &Bundle{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name},
		Spec:       BundleSpec{Parts: parts},
	}))
}

// becomes waits until a bundle's ConfigMap and its status are these.
func (b *bench) becomes(t *testing.T, name string, data map[string]string, status BundleStatus) {
	t.Helper()
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		key := client.ObjectKey{Namespace: b.namespace, Name: name}
		var bundle Bundle
		require.NoError(t, b.Get(context.Background(), key, &bundle))
		bundle.Status.ObservedGeneration = 0
		require.Equal(t, status, bundle.Status)
		var result corev1.ConfigMap
		require.NoError(t, b.Get(context.Background(), key, &result))
		require.Equal(t, data, result.Data)
	}, time.Minute, 20*time.Millisecond)
}

func TestBundleFollowsItsParts(t *testing.T) {
	overEachCache(t, func(t *testing.T, b *bench) {
		b.put(t, "one", map[string]string{"a": "1", "b": "1"})
		b.put(t, "two", map[string]string{"b": "2"})
		b.bundle(t, "all", "one", "two", "three")
		b.becomes(t, "all", map[string]string{"a": "1", "b": "2"},
			BundleStatus{Keys: 2, Missing: []string{"three"}, Problem: "some parts do not exist"})

		b.put(t, "three", map[string]string{"c": "3"})
		b.becomes(t, "all", map[string]string{"a": "1", "b": "2", "c": "3"}, BundleStatus{Keys: 3})
		b.put(t, "two", map[string]string{"b": "two"})
		b.becomes(t, "all", map[string]string{"a": "1", "b": "two", "c": "3"}, BundleStatus{Keys: 3})
		b.remove(t, "one")
		b.becomes(t, "all", map[string]string{"b": "two", "c": "3"},
			BundleStatus{Keys: 2, Missing: []string{"one"}, Problem: "some parts do not exist"})
	})
}

func TestResultIsRepaired(t *testing.T) {
	overEachCache(t, func(t *testing.T, b *bench) {
		b.put(t, "part", map[string]string{"a": "1"})
		b.bundle(t, "all", "part")
		b.becomes(t, "all", map[string]string{"a": "1"}, BundleStatus{Keys: 1})

		var result corev1.ConfigMap
		require.NoError(t, b.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "all"}, &result))
		result.Data = map[string]string{"a": "changed"}
		require.NoError(t, b.Update(t.Context(), &result))
		b.becomes(t, "all", map[string]string{"a": "1"}, BundleStatus{Keys: 1})
		b.remove(t, "all")
		b.becomes(t, "all", map[string]string{"a": "1"}, BundleStatus{Keys: 1})
	})
}

func TestChangesDuringARestartAreNoticed(t *testing.T) {
	overEachCache(t, func(t *testing.T, b *bench) {
		b.put(t, "part", map[string]string{"a": "1"})
		b.bundle(t, "all", "part")
		b.becomes(t, "all", map[string]string{"a": "1"}, BundleStatus{Keys: 1})

		b.stop()
		b.put(t, "part", map[string]string{"a": "2"})
		b.start(t)
		b.becomes(t, "all", map[string]string{"a": "2"}, BundleStatus{Keys: 1})
	})
}

func TestForeignConfigMapIsLeftAlone(t *testing.T) {
	overEachCache(t, func(t *testing.T, b *bench) {
		b.put(t, "all", map[string]string{"precious": "yes"})
		b.put(t, "part", map[string]string{"a": "1"})
		b.bundle(t, "all", "part")
		b.becomes(t, "all", map[string]string{"precious": "yes"}, BundleStatus{Problem: `a ConfigMap "all" exists that is not this bundle's`})
	})
}
