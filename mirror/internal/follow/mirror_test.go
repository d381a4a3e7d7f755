package follow

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/mirror/internal/clusters"
	"github.com/rvinformer/informer/mirror/internal/demo"
	"github.com/rvinformer/informer/mirror/internal/display"
	"github.com/rvinformer/informer/mirror/internal/mirrortest"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A second run that has to list, because the server has forgotten, writes only what has changed
// while none ran, deletions and recreations included.
func TestRestartWritesOnlyDifferences(t *testing.T) {
	t.Parallel()
	c := mirrortest.NewCluster(t, "here", 400, informertest.Options{})
	config := setting{endpoints: []clusters.Endpoint{c.Endpoint()}, sink: openFile(t)}

	first := rowsByName(t, config)
	require.Len(t, first, len(demo.Kinds()))
	for name, row := range first {
		require.True(t, row.Synced, name)
		require.Equal(t, int64(row.Objects), row.Counts.Added, name)
		require.Zero(t, row.Counts.Unchanged, name)
	}
	c.Equal(t, config.sink)

	changed := c.Of(t, mirrortest.Pods)
	before := changed.Len()
	require.NoError(t, changed.Delete())
	require.NoError(t, changed.Delete())
	require.NoError(t, changed.Recreate(10))
	for i := range 3 {
		require.NoError(t, changed.Update(20+i))
	}
	require.NoError(t, changed.Fill(t.Context(), 4))
	c.Server.Compact()

	second := rowsByName(t, config)
	for name, row := range second {
		want := display.Counts{Unchanged: int64(row.Objects)}
		if row.Place.Name() == "pods" {
			// The recreated one is a deletion and an addition: its UID was in the database.
			want = display.Counts{Added: 4 + 1, Updated: 3, Deleted: 2 + 1, Unchanged: int64(before - 2 - 1 - 3)}
		}
		require.Equal(t, want, row.Counts, name)
	}
	c.Equal(t, config.sink)
}

// Changes are followed after the first sync.
func TestFollowsChanges(t *testing.T) {
	t.Parallel()
	c := mirrortest.NewCluster(t, "here", 200, informertest.Options{})
	db := openFile(t)
	r := start(t, setting{endpoints: []clusters.Endpoint{c.Endpoint()}, sink: db, Config: Config{Resources: []string{"pods", "widgets.example.com"}}})
	r.settle(t)
	for _, resource := range []schema.GroupVersionResource{mirrortest.Pods, mirrortest.Widgets} {
		s := c.Of(t, resource)
		for i := range 5 {
			require.NoError(t, s.Create())
			require.NoError(t, s.Delete())
			require.NoError(t, s.Recreate(i))
		}
	}
	r.reaches(t, c, mirrortest.Pods, mirrortest.Widgets)
	c.Equal(t, db, mirrortest.Pods, mirrortest.Widgets)
	stored, err := db.Known(t.Context(), fleet.Unit{Cluster: "here"})
	require.NoError(t, err)
	require.Len(t, stored, 2)
	require.NoError(t, r.stop())
	require.Empty(t, r.out.Messages())
}

// A cluster that goes away is named, once, and the others go on. When it is back, it is caught up
// with.
func TestClusterGoesAwayAndReturns(t *testing.T) {
	t.Parallel()
	near := mirrortest.NewCluster(t, "near", 200, informertest.Options{})
	far := mirrortest.NewCluster(t, "far", 200, informertest.Options{InMemory: true})
	db := openFile(t)
	r := start(t, setting{endpoints: []clusters.Endpoint{near.Endpoint(), far.Endpoint()}, sink: db})
	r.settle(t)

	far.Server.Inject(informertest.Fault{Effect: informertest.Refuse()})
	r.says(t, "connection refused")
	require.NoError(t, near.Of(t, mirrortest.Pods).Create())
	r.reaches(t, near, mirrortest.Pods)
	near.Equal(t, db)

	lost := far.Of(t, mirrortest.Pods)
	require.NoError(t, lost.Delete())
	require.NoError(t, lost.Recreate(3))
	require.NoError(t, lost.Create())
	far.Server.Heal()
	r.reaches(t, far, mirrortest.Pods, mirrortest.Widgets)
	r.says(t, "well again")
	far.Equal(t, db)
	require.NoError(t, r.stop())

	for line := range strings.Lines(r.out.Messages()) {
		require.True(t, strings.HasPrefix(line, "mirror: far "), line)
	}
	require.Less(t, strings.Count(r.out.Messages(), "\n"), 20, "each state is told once:\n%s", r.out)
}

// A cluster that is down at the start is waited for.
func TestClusterIsDownAtTheStart(t *testing.T) {
	t.Parallel()
	c := mirrortest.NewCluster(t, "far", 100, informertest.Options{InMemory: true})
	c.Server.Inject(informertest.Fault{Effect: informertest.Refuse()})
	db := openFile(t)
	r := start(t, setting{endpoints: []clusters.Endpoint{c.Endpoint()}, sink: db})
	r.says(t, "mirror: far: ")
	r.says(t, "connection refused")
	c.Server.Heal()
	r.settle(t)
	c.Equal(t, db)
	// Between the answer and the last informer, the cluster has a row without a problem, which a
	// display may see.
	over := regexp.MustCompile(`(?m)^mirror: far: (that is over|well again)$`)
	require.Eventually(t, func() bool { return over.MatchString(r.out.Messages()) }, soon, 20*time.Millisecond, r.out)
}

// A server that answers nothing at all is given up after the timeout.
func TestOnceGivesUpASilentServer(t *testing.T) {
	t.Parallel()
	c := mirrortest.NewCluster(t, "here", 100, informertest.Options{})
	c.Server.Inject(informertest.Fault{Match: informertest.Match{Resource: mirrortest.ConfigMaps}, Effect: informertest.Hang()})
	rows := rowsByName(t, setting{endpoints: []clusters.Endpoint{c.Endpoint()}, sink: openFile(t), Config: Config{Patience: Patience(10 * time.Second)}})
	require.True(t, rows["here configmaps"].Failed)
	require.Contains(t, rows["here configmaps"].Problem, "no progress for 10s")
	require.True(t, rows["here pods"].Synced)
}

// Objects that another version of the resource has left behind are fetched again, and not lost
// meanwhile.
func TestAnotherVersion(t *testing.T) {
	t.Parallel()
	c := mirrortest.NewCluster(t, "here", 100, informertest.Options{})
	db := openFile(t)
	leave(t, db, schema.GroupVersionResource{Group: "example.com", Version: "v1beta1", Resource: "widgets"})

	rows := rowsByName(t, setting{endpoints: []clusters.Endpoint{c.Endpoint()}, sink: db})
	require.Zero(t, rows["here widgets.example.com"].Counts.Unchanged)
	c.Equal(t, db)
}

// leave leaves a row of a resource behind.
func leave(t *testing.T, db *sqlsink.Sink, resource schema.GroupVersionResource) {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": resource.GroupVersion().String(), "kind": "Any"}}
	object.SetNamespace("tenant-00")
	object.SetName("gone")
	object.SetUID("1")
	object.SetResourceVersion("1")
	event := informer.Event{Type: informer.Added, Key: "tenant-00/gone", Object: object, ResourceVersion: "1"}
	require.NoError(t, db.Handler("here", resource).OnBatch(t.Context(), []informer.Event{event}))
}

// The rows of a resource that the cluster does not serve any more are gone when all has settled.
func TestResourceIsGone(t *testing.T) {
	t.Parallel()
	c := mirrortest.NewCluster(t, "here", 100, informertest.Options{})
	db := openFile(t)
	gadgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
	leave(t, db, gadgets)

	rowsByName(t, setting{endpoints: []clusters.Endpoint{c.Endpoint()}, sink: db})
	stored, err := db.Known(t.Context(), fleet.Unit{Cluster: "here"})
	require.NoError(t, err)
	require.NotContains(t, stored, gadgets)
	require.Len(t, stored, len(c.Stock))
	c.Equal(t, db)
}
