package typed_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/factory/typed"
	"github.com/rvinformer/informer/informertest"
)

// Code that was written for client-go's informers.
func ExampleNewSharedInformerFactory() {
	client := fake.NewClientset(pod("web"))

	f := typed.NewSharedInformerFactory(client, 10*time.Minute)
	pods := f.Core().V1().Pods()
	lister := pods.Lister()

	stop := make(chan struct{})
	f.Start(stop)
	for goType, ok := range f.WaitForCacheSync(stop) {
		fmt.Println(goType, ok)
	}
	found, err := lister.Pods("default").Get("web")
	fmt.Println(found.Name, err)
	close(stop)
	f.Shutdown()
	// Output:
	// *v1.Pod true
	// web <nil>
}

// One namespace, and a selector.
func ExampleNewFilteredSharedInformerFactory() {
	server := informertest.NewServer(informertest.Options{}) // for a cluster
	defer server.Close()
	create(failing{}, server, "web", "app", "web")
	create(failing{}, server, "db", "app", "db")

	f := typed.NewFilteredSharedInformerFactory(client(failing{}, server), 0, "default", func(o *metav1.ListOptions) {
		o.LabelSelector = "app=web"
	})
	generic, err := f.ForResource(corev1.SchemeGroupVersion.WithResource("pods"))
	if err != nil {
		panic(err)
	}
	lister := generic.Lister()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	f.StartWithContext(ctx)
	if err := f.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		panic(err) // it names the types that have not synced
	}
	found, err := lister.List(labels.Everything())
	for _, obj := range found {
		fmt.Println(obj.(*corev1.Pod).Name, err)
	}
	stop()
	f.Shutdown()
	// Output:
	// web <nil>
}

// Less memory: lists are read off the wire, and managed fields are dropped.
func ExampleNewSharedInformerFactoryWithOptions() {
	server := informertest.NewServer(informertest.Options{}) // for a cluster
	defer server.Close()
	create(failing{}, server, "web")

	f := typed.NewSharedInformerFactoryWithOptions(client(failing{}, server), 0,
		typed.WithRESTConfig(server.Config()),
		typed.WithTransform(func(obj any) (any, error) {
			obj.(metav1.Object).SetManagedFields(nil)
			return obj, nil
		}),
		typed.WithCustomResyncConfig(map[metav1.Object]time.Duration{&corev1.Pod{}: time.Hour}),
	)
	added := make(chan string)
	_, err := f.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { added <- obj.(*corev1.Pod).Name },
	})
	if err != nil {
		panic(err)
	}
	stop := make(chan struct{})
	f.Start(stop)
	fmt.Println(<-added)
	close(stop)
	f.Shutdown()
	// Output:
	// web
}

// Two parts of a program, each with a factory of its own, use one watch.
func ExampleNew() {
	server := informertest.NewServer(informertest.Options{}) // for a cluster
	defer server.Close()
	create(failing{}, server, "web")

	registry := factory.New()
	use := func() (f *typed.Factory, stop context.CancelFunc) {
		f = typed.New(nil, 0, typed.WithRESTConfig(server.Config()), typed.WithFactory(registry), typed.WithCluster("east"))
		f.Core().V1().Pods().Informer()
		ctx, stop := context.WithCancel(context.Background())
		f.StartWithContext(ctx)
		f.WaitForCacheSync(ctx.Done())
		return f, stop
	}
	one, stopOne := use()
	other, stopOther := use()
	for _, status := range registry.Statuses() {
		fmt.Println(status.Key, status.Phase, status.Leases)
	}
	stopOne()
	one.Shutdown()
	fmt.Println(len(registry.Statuses()), "informer goes on")
	stopOther()
	other.Shutdown()
	fmt.Println(len(registry.Statuses()), "informers")
	// Output:
	// v1/pods, cluster east, standard watching 2
	// 1 informer goes on
	// 0 informers
}

// One informer is stopped, and another one takes its place, while the rest goes on.
func ExampleFactory_KeyFor() {
	registry := factory.New()
	f := typed.New(fake.NewClientset(pod("web")), 0, typed.WithFactory(registry))
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	stop := make(chan struct{})
	for range 2 {
		informer := f.Core().V1().Pods().Informer()
		f.Start(stop)
		f.WaitForCacheSync(stop)
		fmt.Println(informer.GetStore().ListKeys(), informer.IsStopped())
		key, err := f.KeyFor(pods)
		if err != nil {
			panic(err)
		}
		<-registry.Stop(key)
		fmt.Println("stopped", key)
	}
	close(stop)
	f.Shutdown()
	// Output:
	// [default/web] false
	// stopped v1/pods, standard
	// [default/web] false
	// stopped v1/pods, standard
}

// failing is a test for examples, which have none.
type failing struct{}

func (failing) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (failing) FailNow()                          { panic("failed") }
