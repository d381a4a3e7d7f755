package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/e2e/cluster"
)

// someChanges is how many objects changeSome updates, deletes and creates.
const someChanges = 10

// firstCreated begins the numbers of the objects that changeSome creates, beyond those of
// all that tests fill.
const firstCreated = 900_000

// change numbers the changes, so that none repeats another.
var change atomic.Int64

// touch changes the first object, which must exist.
func touch(ctx context.Context, t *testing.T, objects *cluster.Objects) {
	t.Helper()
	require.NoError(t, objects.Update(ctx, cluster.Name(0), fmt.Sprint(change.Add(1))))
}

// changeSome updates some of the objects, deletes others and creates new ones,
// and returns when every list shows that.
func changeSome(ctx context.Context, t *testing.T, objects *cluster.Objects) {
	t.Helper()
	keys := slices.Sorted(maps.Keys(versions(ctx, t, objects)))
	require.GreaterOrEqual(t, len(keys), 2*someChanges)
	apart := len(keys) / (2 * someChanges)
	for i := range someChanges {
		require.NoError(t, objects.Update(ctx, nameOf(keys[2*i*apart]), fmt.Sprint(change.Add(1))))
		require.NoError(t, objects.Delete(ctx, nameOf(keys[(2*i+1)*apart])))
		require.NoError(t, objects.Create(ctx, cluster.Name(int(firstCreated+change.Add(1)))))
	}
	settle(ctx, t, objects)
}

// settle returns when every list shows the changes made so far. A list that
// need not be consistent is answered from the server's cache, which lags a
// little; a consistent one waits for the cache.
func settle(ctx context.Context, t *testing.T, objects *cluster.Objects) {
	t.Helper()
	versions(ctx, t, objects)
}

func nameOf(key string) string {
	_, name, _ := strings.Cut(key, "/")
	return name
}
