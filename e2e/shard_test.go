package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/e2e/cluster"
)

// belongs are the keys of those objects that are in a shard.
func belongs(ctx context.Context, t *testing.T, c *cluster.Cluster, pods *cluster.Objects, s informer.Shard) map[string]string {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Config())
	require.NoError(t, err)
	list, err := client.CoreV1().Pods(pods.Namespace).List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	versions := map[string]string{}
	for _, p := range list.Items {
		if s.Includes(p.Namespace, string(p.UID)) {
			versions[p.Namespace+"/"+p.Name] = p.ResourceVersion
		}
	}
	return versions
}

// follows waits until a storage has what the server has of a shard.
func follows(ctx context.Context, t *testing.T, c *cluster.Cluster, pods *cluster.Objects, s informer.Shard, storage *informer.ResourceVersionStorage) {
	t.Helper()
	require.Eventually(t, func() bool {
		want, have := belongs(ctx, t, c, pods, s), map[string]string{}
		for k, v := range storage.All() {
			have[k] = v
		}
		return fmt.Sprint(want) == fmt.Sprint(have)
	}, time.Minute, 200*time.Millisecond)
}

// A kube-apiserver with the feature gate sends the shard and says so in shardInfo; one without
// ignores the selector. With both, the informers of two shards have each pod once, at first and
// after changes.
func TestShardsWithTheFeatureGateAndWithout(t *testing.T) {
	for name, knows := range map[string]bool{"with": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := testContext(t)
			c := usual.Get(t) // also one that does not know the gate
			if knows {
				c = sharding.get(ctx, t)
			}
			pods := newPods(ctx, t, c, 300)
			client, err := kubernetes.NewForConfig(c.Config())
			require.NoError(t, err)
			halves := informer.Shard{}.Split(2)

			raw := func(selector string) (*metav1.PartialObjectMetadataList, error) {
				list := &metav1.PartialObjectMetadataList{}
				path := "/api/v1/namespaces/" + pods.Namespace + "/pods?shardSelector=" + url.QueryEscape(selector)
				text, err := client.RESTClient().Get().RequestURI(path).DoRaw(ctx)
				if err != nil {
					return nil, err
				}
				return list, json.Unmarshal(text, list)
			}
			list, err := raw(halves[0].String())
			require.NoError(t, err)
			if knows {
				require.Equal(t, &metav1.ShardInfo{Selector: halves[0].String()}, list.ShardInfo)
				require.Len(t, list.Items, len(belongs(ctx, t, c, pods, halves[0])))
			} else {
				require.Nil(t, list.ShardInfo)
				require.Len(t, list.Items, 300)
			}
			two := informer.Shard{Key: informer.ShardByUID, End: 1 << 62}.String() + " || " + informer.Shard{Key: informer.ShardByUID, Start: 3 << 62}.String()
			list, err = raw(two)
			require.NoError(t, err)
			if knows {
				require.Equal(t, two, list.ShardInfo.Selector)
			}
			_, err = raw("nonsense")
			require.Equal(t, knows, err != nil, "%v", err)

			for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeWatchList} {
				storages := make([]*informer.ResourceVersionStorage, 2)
				for n, s := range halves {
					storages[n] = informer.NewResourceVersionStorage()
					start(ctx, t, newMirror(nil), informer.InformerConfig{
						ListerWatcher: source(t, c.Config(), pods), Shard: s, Storage: storages[n], ListMode: mode, WatchListPageSize: 50,
					})
				}
				for n, s := range halves {
					follows(ctx, t, c, pods, s, storages[n])
				}
				require.Equal(t, 300, storages[0].Len()+storages[1].Len())
				zero := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
				for k := range belongs(ctx, t, c, pods, halves[1]) {
					require.NoError(t, client.CoreV1().Pods(pods.Namespace).Delete(ctx, k[len(pods.Namespace)+1:], zero))
					break
				}
				require.NoError(t, pods.Create(ctx, fmt.Sprintf("more-%v", mode)))
				for n, s := range halves {
					follows(ctx, t, c, pods, s, storages[n])
				}
			}
		})
	}
}
