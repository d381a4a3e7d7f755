package podserver

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer/api"
)

// The shards of a set have each of its pods once, in every form, and lists say which shard they are
// of.
func TestShards(t *testing.T) {
	set := Options{Pods: testPods, Sharded: true}
	s := started(t, set)
	for _, key := range []api.ShardKey{api.ShardByUID, api.ShardByNamespace} {
		for _, r := range readers(t, s.Config()) {
			t.Run(string(key)+"/"+r.name, func(t *testing.T) {
				pods := seen{}
				for _, part := range (api.Shard{Key: key}).Split(3) {
					size, err := set.InShard(part.String())
					require.NoError(t, err)
					if key == api.ShardByUID {
						require.InEpsilon(t, testPods/3, size, 0.1) // the hashes of namespaces with like names are close to each other
					}
					known := len(pods)
					r.pages(t, set, metav1.ListOptions{Limit: 500, ShardSelector: part.String()}, func(list runtime.Object, items []runtime.Object) {
						about, err := meta.ListAccessor(list)
						require.NoError(t, err)
						require.Nil(t, about.GetRemainingItemCount())
						if typed, ok := list.(interface{ GetShardInfo() *metav1.ShardInfo }); ok {
							require.Equal(t, part.String(), typed.GetShardInfo().Selector)
						}
						for _, item := range items {
							requireInShard(t, part, item)
							pods.add(t, item)
						}
						if about.GetContinue() != "" {
							require.Len(t, items, 500, "pages are full")
						}
					})
					require.Len(t, pods, known+size)
				}
				require.Len(t, pods, testPods)
			})
		}
	}
}

// A watch-list begins with the pods of the shard.
func TestShardOfWatchList(t *testing.T) {
	set := Options{Pods: testPods, Sharded: true}
	part := api.Shard{}.Split(2)[1]
	size, err := set.InShard(part.String())
	require.NoError(t, err)
	s := started(t, set)
	for _, r := range readers(t, s.Config())[:2] {
		pods := seen{}
		r.watchList(t, t.Context(), set, metav1.ListOptions{ShardSelector: part.String()}, size, func(obj runtime.Object) {
			requireInShard(t, part, obj)
			pods.add(t, obj)
		}).Stop()
		require.Len(t, pods, size)
	}
}

func requireInShard(t *testing.T, part api.Shard, obj runtime.Object) {
	m, err := meta.Accessor(obj)
	require.NoError(t, err)
	require.True(t, part.Includes(m.GetNamespace(), string(m.GetUID())))
}

func TestShardsAreRefusedOrIgnored(t *testing.T) {
	list := readers(t, started(t, Options{Pods: 3, Sharded: true}).Config())[0].list
	_, err := list(t.Context(), metav1.ListOptions{ShardSelector: "half"})
	require.True(t, apierrors.IsInternalError(err), err)
	require.ErrorContains(t, err, "invalid shard selector")
	part := api.Shard{Key: api.ShardByUID, Start: 1, End: 2}
	empty, err := list(t.Context(), metav1.ListOptions{ShardSelector: part.String()})
	require.NoError(t, err)
	require.Zero(t, meta.LenList(empty))
	whole, err := readers(t, started(t, Options{Pods: 3}).Config())[0].list(t.Context(), metav1.ListOptions{ShardSelector: part.String()})
	require.NoError(t, err)
	require.Equal(t, 3, meta.LenList(whole), "a server without shards ignores the selector")
	_, err = Start(Options{Pods: 3, Sharded: true, Events: 1})
	require.ErrorContains(t, err, "no changes")
}
