package factory_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/registry"
)

func TestMembersAreAllInformersOfAFactory(t *testing.T) {
	f := factory.New()
	defer f.Shutdown()
	require.Empty(t, f.Members())
	newFunc := func() informer.ResourceVersionInformer {
		return informer.NewResourceVersionInformer("widgets", informer.InformerConfig{ListerWatcher: &cache.ListWatch{}, Handler: informer.ResourceEventHandlerFuncs{}})
	}
	for _, cluster := range []string{"east", "west"} {
		lease, err := f.AcquireResourceVersion(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, factory.InformerOptions{Cluster: cluster}, newFunc)
		require.NoError(t, err)
		defer lease.Release()
	}
	clusters := map[string]bool{}
	for _, m := range f.Members() {
		clusters[m.Key().Cluster] = true
		require.NotNil(t, m.Informer())
		s, ok := f.Status(m.Key())
		require.True(t, ok)
		require.Equal(t, s, m.Status())
	}
	require.Equal(t, map[string]bool{"east": true, "west": true}, clusters)
}

func TestLabelsTellKeysApart(t *testing.T) {
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	all := map[registry.Labels]bool{}
	for _, c := range []struct {
		opts factory.InformerOptions
		want registry.Labels
	}{
		{factory.InformerOptions{}, registry.Labels{Informer: "standard"}},
		{factory.InformerOptions{Cluster: "east", InformerType: factory.DynamicInformer}, registry.Labels{Cluster: "east", Informer: "dynamic"}},
		{factory.InformerOptions{InformerType: factory.DynamicInformer}, registry.Labels{Informer: "dynamic"}},
		{factory.InformerOptions{Shard: informer.Shard{Key: informer.ShardByUID, End: 1 << 63}}, registry.Labels{Informer: "standard (shard uid 0000000000000000-7fffffffffffffff)"}},
		{factory.InformerOptions{Shard: informer.Shard{Key: informer.ShardByNamespace, Start: 1 << 63}}, registry.Labels{Informer: "standard (shard namespace 8000000000000000-ffffffffffffffff)"}},
		{factory.InformerOptions{Namespace: "shop", LabelSelector: "app=web", FieldSelector: "a=b", Variant: "mine"}, registry.Labels{Informer: "standard/mine (namespace shop, labels app=web, fields a=b)"}},
	} {
		key, err := factory.NewKey(pods, c.opts)
		require.NoError(t, err)
		c.want.Version, c.want.Resource = "v1", "pods"
		require.Equal(t, c.want, key.Labels())
		require.False(t, all[key.Labels()])
		all[key.Labels()] = true
	}
}
