package typed_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	theirs "k8s.io/client-go/informers"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"

	informers "github.com/rvinformer/informer/factory/typed"
)

// What follows is code that was written for client-go, but for one import above.

type existingController struct {
	factory  informers.SharedInformerFactory
	lister   appslisters.DeploymentLister
	synced   cache.InformerSynced
	generic  informers.GenericInformer
	deployed chan string
}

func newExistingController(factory informers.SharedInformerFactory, deployments appsinformers.DeploymentInformer) (*existingController, error) {
	c := &existingController{factory: factory, lister: deployments.Lister(), synced: deployments.Informer().HasSynced, deployed: make(chan string, 10)}
	_, err := deployments.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		c.deployed <- obj.(*appsv1.Deployment).Name
	}})
	if err != nil {
		return nil, err
	}
	c.generic, err = factory.ForResource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"})
	return c, err
}

func existingOptions(namespace string) []informers.SharedInformerOption {
	return []informers.SharedInformerOption{
		informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "app" }),
		informers.WithTransform(func(obj any) (any, error) { return obj, nil }),
		informers.WithCustomResyncConfig(map[metav1.Object]time.Duration{&corev1.Pod{}: time.Hour}),
		informers.WithInformerName(nil),
	}
}

func TestExistingCodeChangesOneImport(t *testing.T) {
	client := fake.NewClientset(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: map[string]string{"app": "web"}}})
	for name, open := range map[string]func(kubernetes.Interface, time.Duration) informers.SharedInformerFactory{
		"plain": informers.NewSharedInformerFactory,
		"filtered": func(c kubernetes.Interface, resync time.Duration) informers.SharedInformerFactory {
			return informers.NewFilteredSharedInformerFactory(c, resync, metav1.NamespaceDefault, nil)
		},
		"options": func(c kubernetes.Interface, resync time.Duration) informers.SharedInformerFactory {
			return informers.NewSharedInformerFactoryWithOptions(c, resync, existingOptions("default")...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(client, time.Minute)
			c, err := newExistingController(f, f.Apps().V1().Deployments())
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			f.StartWithContext(ctx)
			require.Equal(t, map[reflect.Type]bool{reflect.TypeFor[*appsv1.Deployment](): true}, f.WaitForCacheSync(ctx.Done()))
			require.True(t, cache.WaitForCacheSync(ctx.Done(), c.synced))
			require.Equal(t, "web", <-c.deployed)
			_, err = c.lister.Deployments("default").Get("web")
			require.NoError(t, err)
			_, err = c.generic.Lister().ByNamespace("default").Get("web")
			require.NoError(t, err)
			cancel()
			f.Shutdown()
		})
	}
	var _ theirs.SharedInformerFactory = informers.New(client, 0) // it is client-go's interface
}
