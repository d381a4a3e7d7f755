package typed_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/factory/typed"
)

func TestBadInputSaysWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		does func()
		says string
	}{
		"nil client": {
			func() { typed.NewSharedInformerFactory(nil, 0).Core().V1().Pods().Informer() },
			"informer of v1/pods, standard: the client is nil",
		},
		"nil pointer of a client": {
			func() {
				f := typed.NewFilteredSharedInformerFactory((*kubernetes.Clientset)(nil), time.Minute, "shop", nil)
				f.Apps().V1().Deployments().Lister()
			},
			"informer of apps/v1/deployments, namespace shop, standard/resync 1m0s: the client is nil",
		},
		"nil config": {
			func() { typed.New(fake.NewClientset(), 0, typed.WithRESTConfig(nil)) },
			"typed: WithRESTConfig: the rest.Config is nil",
		},
		"config beside a fake client": {
			func() { typed.New(fake.NewClientset(), 0, typed.WithRESTConfig(&rest.Config{Host: "example.com"})) },
			"typed: WithRESTConfig beside a client without connections (*fake.Clientset): its objects are not those of the server",
		},
		"nil object": {
			func() { typed.New(fake.NewClientset(), 0).InformerFor(nil, nil) },
			"typed: InformerFor: the object is nil: its type says what the informer is of",
		},
		"newFunc returns nil": {
			func() {
				typed.New(fake.NewClientset(), 0, typed.WithCluster("east"), typed.WithTransform(func(obj any) (any, error) { return obj, nil })).
					InformerFor(&metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return nil })
			},
			"informer of v1/pods, cluster east, metadata/of typed factory ",
		},
		"selector": {
			func() {
				typed.New(fake.NewClientset(), 0, typed.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "a=(" })).Core().V1().Pods().Informer()
			},
			`informer of v1/pods, labels a=(, standard: label selector "a=(": `,
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				switch value := recover().(type) {
				case error:
					var request *factory.RequestError
					require.ErrorAs(t, value, &request)
					require.ErrorContains(t, value, c.says)
				case string:
					require.Equal(t, c.says, value)
				default:
					require.Fail(t, "no panic")
				}
			}()
			c.does()
		})
	}
	require.PanicsWithValue(t, "typed: WithRESTConfig: client for dynamic listing and watching: parse \"http://::\": invalid port \"::\" after host", func() {
		typed.New(nil, 0, typed.WithRESTConfig(&rest.Config{Host: "::"}))
	})
}

// An option that is nil changes nothing, and the last of two counts.
func TestOptions(t *testing.T) {
	f := typed.New(fake.NewClientset(), 0, nil, typed.WithNamespace("a"), typed.WithNamespace("b"),
		typed.WithCustomResyncConfig(map[metav1.Object]time.Duration{&corev1.Pod{}: time.Minute, &corev1.Node{}: time.Hour}),
		typed.WithCustomResyncConfig(map[metav1.Object]time.Duration{&corev1.Pod{}: time.Second}),
		typed.WithFactory(nil), typed.WithInformerName(nil))
	defer f.Shutdown()
	key, err := f.KeyFor(pods)
	require.NoError(t, err)
	require.Equal(t, factory.Key{Resource: pods, Namespace: "b", Variant: "resync 1s"}, key)
	require.Nil(t, f.InformerName())
	_, err = f.KeyFor(key.Resource.GroupResource().WithVersion("v9"))
	require.ErrorIs(t, err, typed.ErrNoInformer)
	_, err = f.Acquire(key.Resource.GroupResource().WithVersion("v9"))
	require.ErrorIs(t, err, typed.ErrNoInformer)
}
