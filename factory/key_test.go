package factory_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
)

func TestSelectorsAreComparedByWhatTheySay(t *testing.T) {
	for _, same := range [][]string{
		{"", " "},
		{"a=1,b=2", "b=2,a=1", "a==1, b in (2)", " a = 1 ,b=2,a=1", "b in (2,2),a in (1)"},
		{"a!=1", "a notin (1)"},
		{"a in (1,2)", "a in (2,1)"},
		{"a", " a "},
		{"!a", "! a"},
		{"a>3", "a > 3"},
	} {
		for _, text := range same {
			require.Equal(t, key(t, factory.InformerOptions{LabelSelector: same[0]}), key(t, factory.InformerOptions{LabelSelector: text}), "%q", text)
		}
	}
	for _, same := range [][]string{
		{"metadata.name=x,status.phase!=Failed", "status.phase!=Failed,metadata.name==x", "metadata.name=x,metadata.name=x,status.phase!=Failed"},
		{`a=b\,c`, `a==b\,c`},
	} {
		for _, text := range same {
			require.Equal(t, key(t, factory.InformerOptions{FieldSelector: same[0]}), key(t, factory.InformerOptions{FieldSelector: text}), "%q", text)
		}
	}
	different := map[factory.Key]string{}
	for _, text := range []string{"", "a", "!a", "a=", "a=1", "a!=1", "a>1", "a<1", "a in (1,2)", "a notin (1,2)", "a=1,b=1"} {
		k := key(t, factory.InformerOptions{LabelSelector: text})
		require.NotContains(t, different, k, "%q", text)
		different[k] = text
	}
}

func key(t *testing.T, opts factory.InformerOptions) factory.Key {
	k, err := factory.NewKey(pods, opts)
	require.NoError(t, err)
	return k
}

// requests are what there can be no informer for, and what the error says.
var requests = []struct {
	name     string
	resource schema.GroupVersionResource
	opts     factory.InformerOptions
	newFunc  factory.NewInformerFunc
	says     string
}{
	{name: "no resource", newFunc: newStubFunc, opts: factory.InformerOptions{Cluster: "east"},
		says: "informer of /, cluster east, standard: the resource has no name"},
	{name: "no version", resource: schema.GroupVersionResource{Resource: "pods"}, newFunc: newStubFunc,
		says: "informer of /pods, standard: the resource has no version"},
	{name: "label selector", resource: pods, opts: factory.InformerOptions{LabelSelector: "a=(", Namespace: "shop"}, newFunc: newStubFunc,
		says: `informer of v1/pods, namespace shop, labels a=(, standard: label selector "a=(": `},
	{name: "field selector", resource: widgets, opts: factory.InformerOptions{FieldSelector: "a"}, newFunc: newStubFunc,
		says: `informer of example.com/v1/widgets, fields a, standard: field selector "a": `},
	{name: "shard", resource: pods, opts: factory.InformerOptions{Shard: informer.Shard{Start: 1}}, newFunc: newStubFunc,
		says: "informer of v1/pods, shard  0000000000000001-ffffffffffffffff, standard: a shard with a range needs a key"},
	{name: "type", resource: pods, opts: factory.InformerOptions{InformerType: 7}, newFunc: newStubFunc,
		says: "informer of v1/pods, InformerType(7): there is no such InformerType"},
	{name: "resource-version type", resource: pods, opts: factory.InformerOptions{InformerType: factory.ResourceVersionInformer}, newFunc: newStubFunc,
		says: "informer of v1/pods, resource-version: informers of this type are asked for with AcquireResourceVersion"},
	{name: "nil newFunc", resource: pods, opts: factory.InformerOptions{InformerType: factory.DynamicInformer},
		says: "informer of v1/pods, dynamic: newFunc is nil"},
	{name: "newFunc returns nil", resource: pods, newFunc: always(nil),
		says: "informer of v1/pods, standard: newFunc returned nil"},
	{name: "newFunc returns a nil pointer", resource: pods, newFunc: always((*stub)(nil)),
		says: "informer of v1/pods, standard: newFunc returned nil"},
}

func TestBadRequestsNameTheResource(t *testing.T) {
	for _, c := range requests {
		t.Run(c.name, func(t *testing.T) {
			f := factory.New()
			_, err := f.Acquire(c.resource, c.opts, c.newFunc)
			var request *factory.RequestError
			require.ErrorAs(t, err, &request)
			require.ErrorContains(t, err, c.says)
			_, err = f.TryInformerFor(c.resource, c.opts, c.newFunc)
			require.ErrorContains(t, err, c.says)
			require.PanicsWithError(t, err.Error(), func() { f.InformerFor(c.resource, c.opts, c.newFunc) })
			require.Empty(t, f.Statuses())
		})
	}
}

func TestBadResourceVersionRequestsNameTheResource(t *testing.T) {
	f := factory.New()
	_, err := f.AcquireResourceVersion(pods, factory.InformerOptions{}, nil)
	require.EqualError(t, err, "informer of v1/pods, resource-version: newFunc is nil")
	_, err = f.AcquireResourceVersion(pods, factory.InformerOptions{}, func() informer.ResourceVersionInformer { return nil })
	require.EqualError(t, err, "informer of v1/pods, resource-version: newFunc returned nil")
	_, err = f.AcquireResourceVersion(pods, factory.InformerOptions{LabelSelector: "("}, nil)
	require.ErrorContains(t, err, "informer of v1/pods, labels (, resource-version: label selector")
}

func TestVariantsAreDifferentInformers(t *testing.T) {
	require.NotEqual(t, key(t, factory.InformerOptions{}), key(t, factory.InformerOptions{Variant: "resync 30s"}))
	require.Equal(t, "v1/pods, standard/resync 30s", key(t, factory.InformerOptions{Variant: "resync 30s"}).String())
}

func TestShardsAreDifferentInformers(t *testing.T) {
	all := key(t, factory.InformerOptions{})
	require.Equal(t, all, key(t, factory.InformerOptions{Shard: informer.Shard{Key: informer.ShardByUID}}), "a shard of all is the whole")
	halves := informer.Shard{}.Split(2)
	require.NotEqual(t, key(t, factory.InformerOptions{Shard: halves[0]}), key(t, factory.InformerOptions{Shard: halves[1]}))

	f := factory.New()
	lw := &cache.ListWatch{}
	lease, err := f.AcquireSharedResourceVersion(pods, factory.InformerOptions{Shard: halves[0]}, informer.InformerConfig{ListerWatcher: lw})
	require.NoError(t, err)
	lease.Release()
	_, err = f.AcquireSharedResourceVersion(pods, factory.InformerOptions{Shard: halves[0]}, informer.InformerConfig{ListerWatcher: lw, Shard: halves[1]})
	require.ErrorContains(t, err, "the configuration has another shard: "+halves[1].String())
	for _, half := range halves { // also where only the configuration says so
		lease, err := f.AcquireSharedResourceVersion(pods, factory.InformerOptions{}, informer.InformerConfig{ListerWatcher: lw, Shard: half})
		require.NoError(t, err)
		defer lease.Release()
		require.Equal(t, half, lease.Key().Shard)
		registration, err := lease.Informer.AddEventHandler(informer.ResourceEventHandlerFuncs{})
		require.NoError(t, err)
		require.Equal(t, half, registration.Status().Shard)
	}
	f.Shutdown()
}
