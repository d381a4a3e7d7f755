package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rvinformer/informer/informertest"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const soon = 2 * time.Minute

// running is a mirror that runs until the test stops it.
type running struct {
	*mirror
	out  *output
	stop func() error
}

func openTestDatabase(t *testing.T) *sqliteFile {
	db, err := openSQLite(t.Context(), filepath.Join(t.TempDir(), "test.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// start runs a mirror in the background. Its database is the store unless another one is given.
func start(t *testing.T, config mirrorConfig) *running {
	if config.store == nil {
		config.store = config.database
	}
	config.prune, config.board = options{}.prune(), newBoard()
	r := &running{out: newOutput()}
	r.mirror = newMirror(config, r.out.screen)

	ctx, cancel := context.WithCancel(t.Context())
	var going sync.WaitGroup
	var err error
	going.Go(func() {
		err = r.Run(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		})
	})
	r.stop = func() error {
		cancel()
		going.Wait()
		return err
	}
	t.Cleanup(func() { r.stop() })
	return r
}

// settle waits until everything has settled.
func (r *running) settle(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	require.NoError(t, r.Settled(ctx), r.out)
}

// reaches waits until the last write to the server is in the database, for these resources.
func (r *running) reaches(t *testing.T, c *demoCluster, resources ...schema.GroupVersionResource) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	for _, resource := range resources {
		f, found := r.Feed(place{cluster: c.name, resource: resource})
		require.True(t, found, resource)
		last, err := c.of(t, resource).Update(0)
		require.NoError(t, err)
		require.NoError(t, f.reach(ctx, last), r.out)
	}
}

func (r *running) says(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(r.out.messages(), text) }, soon, 20*time.Millisecond,
		"no message %q in:\n%s", text, r.out)
}

// rowsByName runs a mirror until it has settled and stops it. The rows are by cluster and resource.
func rowsByName(t *testing.T, config mirrorConfig) map[string]row {
	r := start(t, config)
	r.settle(t)
	require.NoError(t, r.stop())
	return r.byName()
}

func (r *running) byName() map[string]row {
	rows := make(map[string]row)
	for _, row := range r.Rows() {
		rows[row.place.String()] = row
	}
	return rows
}

// A second run that has to list, because the server has forgotten, writes only what has changed
// while none ran, deletions and recreations included.
func TestRestartWritesOnlyDifferences(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, "here", 400, informertest.Options{})
	config := mirrorConfig{endpoints: []endpoint{c.endpoint()}, database: openTestDatabase(t)}

	first := rowsByName(t, config)
	require.Len(t, first, len(demoKinds()))
	for name, row := range first {
		require.True(t, row.synced, name)
		require.Equal(t, int64(row.rows), row.counts.added, name)
		require.Zero(t, row.counts.unchanged, name)
	}
	requireEqual(t, config.database, c)

	changed := c.of(t, pods)
	before := changed.next - changed.first
	require.NoError(t, changed.Delete())
	require.NoError(t, changed.Delete())
	require.NoError(t, changed.Recreate(10))
	for i := range 3 {
		_, err := changed.Update(20 + i)
		require.NoError(t, err)
	}
	require.NoError(t, changed.Fill(t.Context(), 4))
	c.server.Compact()

	second := rowsByName(t, config)
	for name, row := range second {
		want := counts{unchanged: int64(row.rows)}
		if row.place.resource == pods {
			// The recreated one is a deletion and an addition: its UID was in the database.
			want = counts{added: 4 + 1, updated: 3, deleted: 2 + 1, unchanged: int64(before - 2 - 1 - 3)}
		}
		row.counts.handled = 0
		require.Equal(t, want, row.counts, name)
	}
	requireEqual(t, config.database, c)
}

// Changes are followed after the first sync.
func TestFollowsChanges(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, "here", 200, informertest.Options{})
	db := openTestDatabase(t)
	r := start(t, mirrorConfig{endpoints: []endpoint{c.endpoint()}, database: db, resources: []string{"pods", "widgets.example.com"}})
	r.settle(t)
	for _, resource := range []schema.GroupVersionResource{pods, widgets} {
		s := c.of(t, resource)
		for i := range 5 {
			require.NoError(t, s.Create())
			require.NoError(t, s.Delete())
			require.NoError(t, s.Recreate(i))
		}
	}
	r.reaches(t, c, pods, widgets)
	requireEqual(t, db, c, pods, widgets)
	stored, err := db.Resources(t.Context(), "here")
	require.NoError(t, err)
	require.Len(t, stored, 2)
	require.NoError(t, r.stop())
	require.Empty(t, r.out.messages())
}

// A cluster that goes away is named, once, and the others go on. When it is back, it is caught up
// with.
func TestClusterGoesAwayAndReturns(t *testing.T) {
	t.Parallel()
	near := newTestCluster(t, "near", 200, informertest.Options{})
	far := newTestCluster(t, "far", 200, informertest.Options{})
	way := newGate(t, far)
	db := openTestDatabase(t)
	r := start(t, mirrorConfig{endpoints: []endpoint{near.endpoint(), {"far", way.config()}}, database: db})
	r.settle(t)

	way.Shut()
	r.says(t, "connection refused")
	require.NoError(t, near.of(t, pods).Create())
	r.reaches(t, near, pods)
	requireEqual(t, db, near)

	lost := far.of(t, pods)
	require.NoError(t, lost.Delete())
	require.NoError(t, lost.Recreate(3))
	require.NoError(t, lost.Create())
	way.Open()
	r.reaches(t, far, pods, widgets)
	r.says(t, "well again")
	requireEqual(t, db, far)
	require.NoError(t, r.stop())

	for line := range strings.Lines(r.out.messages()) {
		require.True(t, strings.HasPrefix(line, "mirror: far "), line)
	}
	require.Less(t, strings.Count(r.out.messages(), "\n"), 20, "each state is told once:\n%s", r.out)
}

// A cluster that is down at the start is waited for.
func TestClusterIsDownAtTheStart(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, "far", 100, informertest.Options{})
	way := newGate(t, c)
	way.Shut()
	db := openTestDatabase(t)
	r := start(t, mirrorConfig{endpoints: []endpoint{{"far", way.config()}}, database: db})
	r.says(t, "mirror: far: ")
	r.says(t, "connection refused")
	way.Open()
	r.settle(t)
	requireEqual(t, db, c)
	r.says(t, "far: discovered")
}

// With --once, what is refused and what is down is reported, and the rest is done.
func TestOnceReportsWhatFailed(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, "here", 200, informertest.Options{Wrap: forbid("secrets")})
	kubeconfig := writeKubeconfig(t, c.endpoint(), endpoint{"gone", unreachable(t)})
	path := filepath.Join(t.TempDir(), "mirror.db")
	to := newOutput()
	args := []string{"--once", "--kubeconfig", kubeconfig, "--context=here", "--context=gone", "--db", path, "--timeout=30s"}

	require.Equal(t, exitFailed, run(t.Context(), args, to.screen), to)
	require.Contains(t, to.String(), "6 synced, 2 failed")
	require.Regexp(t, `here +secrets .*FAILED: 403 Forbidden: secrets is forbidden: not for you`, to.String())
	require.Regexp(t, `gone +\(discovery\) .*FAILED: .*connection refused`, to.String())
	require.Contains(t, to.messages(), "here secrets: 403 Forbidden")

	db, err := openSQLite(t.Context(), path)
	require.NoError(t, err)
	defer db.Close()
	requireEqual(t, db, c, pods, configmaps, widgets)
}

// With --once, an unknown resource is one failure among others.
func TestOnceReportsAnUnknownResource(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, "here", 100, informertest.Options{})
	to := newOutput()
	args := []string{"--once", "--kubeconfig", writeKubeconfig(t, c.endpoint()), "--resources=pods,gadgets.example.com",
		"--db", filepath.Join(t.TempDir(), "mirror.db")}
	require.Equal(t, exitFailed, run(t.Context(), args, to.screen), to)
	require.Contains(t, to.String(), "--resources gadgets.example.com: ")
	require.Contains(t, to.String(), "1 synced, 1 failed")
}

// A server that answers nothing at all is given up after the timeout.
func TestOnceGivesUpASilentServer(t *testing.T) {
	t.Parallel()
	silent := ignore("configmaps")
	c := newTestCluster(t, "here", 100, informertest.Options{Wrap: silent})
	rows := rowsByName(t, mirrorConfig{endpoints: []endpoint{c.endpoint()}, database: openTestDatabase(t), timeout: 10 * time.Second})
	require.True(t, rows["here configmaps"].failed)
	require.Contains(t, rows["here configmaps"].problem, "no progress for 10s")
	require.True(t, rows["here pods"].synced)
}

// A full disk stops the mirror, not the program: the message says what and where, and once there is
// room it goes on.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, "here", 600, informertest.Options{})
	db := openTestDatabase(t)
	var pages int
	require.NoError(t, db.writing.QueryRow("PRAGMA page_count").Scan(&pages))
	_, err := db.writing.Exec(fmt.Sprintf("PRAGMA max_page_count = %d", pages+100))
	require.NoError(t, err)

	r := start(t, mirrorConfig{endpoints: []endpoint{c.endpoint()}, database: db})
	r.says(t, "mirror: database "+db.path+": cannot write: database or disk is full")
	_, err = db.writing.Exec("PRAGMA max_page_count = 1073741823")
	require.NoError(t, err)
	r.settle(t)
	r.says(t, "writing again")
	requireEqual(t, db, c)
	require.NoError(t, r.stop())
	require.Equal(t, 2, strings.Count(r.out.messages(), "\n"), r.out)
}

// A stop while nothing can be written ends, and says what is missing. The next start repairs it.
func TestStopWhileNothingCanBeWritten(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, "here", 200, informertest.Options{})
	db := openTestDatabase(t)
	r := start(t, mirrorConfig{endpoints: []endpoint{c.endpoint()}, database: db, store: &cutStore{}})
	r.says(t, "cannot write: power is gone; the informers wait")
	require.ErrorContains(t, r.stop(), "are not written, the next start fetches them again: power is gone")

	rowsByName(t, mirrorConfig{endpoints: []endpoint{c.endpoint()}, database: db})
	requireEqual(t, db, c)
}

// With --once and nothing that can be written, the run ends all the same.
func TestOnceGivesUpAFullDisk(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, "here", 100, informertest.Options{})
	config := mirrorConfig{endpoints: []endpoint{c.endpoint()}, database: openTestDatabase(t), store: &cutStore{}, timeout: 10 * time.Second}
	r := start(t, config)
	r.settle(t)
	for _, row := range r.Rows() {
		require.True(t, row.failed, row)
		require.Contains(t, row.problem, "no progress for 10s")
	}
	require.ErrorContains(t, r.stop(), "power is gone")
}

// A crash in the midst of the first sync leaves rows that are right, if not all of them. The next
// start adds the others.
func TestCutOffInTheMidst(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, "here", 1500, informertest.Options{}) // about half are pods, more than a batch
	db := openTestDatabase(t)
	config := mirrorConfig{endpoints: []endpoint{c.endpoint()}, database: db, resources: []string{"pods"}}
	config.store = &cutStore{store: db, batches: 1}
	r := start(t, config)
	r.says(t, "power is gone")
	require.Error(t, r.stop())

	rows, differences, err := compare(t.Context(), db, place{cluster: "here", resource: pods}, c.server)
	require.NoError(t, err)
	require.NotZero(t, rows)
	require.NotEmpty(t, differences)
	for _, difference := range differences {
		require.ErrorContains(t, difference, "is on the server only")
	}

	config.store = db
	second := rowsByName(t, config)["here pods"].counts
	second.handled = 0
	require.Equal(t, counts{added: int64(len(differences)), unchanged: int64(rows)}, second)
	requireEqual(t, db, c, pods)
}

// Objects that another version of the resource has left behind are fetched again, and not lost
// meanwhile.
func TestAnotherVersion(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, "here", 100, informertest.Options{})
	db := openTestDatabase(t)
	old := place{cluster: "here", resource: schema.GroupVersionResource{Group: "example.com", Version: "v1beta1", Resource: "widgets"}}
	left := change{kind: putRow, place: old, namespace: "tenant-00", name: "gone", uid: "1", resourceVersion: "1", object: "{}"}
	require.NoError(t, db.Apply(t.Context(), []change{left}))

	rows := rowsByName(t, mirrorConfig{endpoints: []endpoint{c.endpoint()}, database: db})
	require.Zero(t, rows["here widgets.example.com"].counts.unchanged)
	requireEqual(t, db, c)
}

// The rows of a resource that the cluster does not serve any more go away, but not because the user
// did not name it.
func TestResourceIsGone(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, "here", 100, informertest.Options{})
	db := openTestDatabase(t)
	gadgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
	left := change{kind: putRow, place: place{cluster: "here", resource: gadgets}, name: "gone", uid: "1", resourceVersion: "1", object: "{}"}
	require.NoError(t, db.Apply(t.Context(), []change{left}))

	rowsByName(t, mirrorConfig{endpoints: []endpoint{c.endpoint()}, database: db, resources: []string{"pods"}})
	stored, err := db.Resources(t.Context(), "here")
	require.NoError(t, err)
	require.True(t, slices.Contains(stored, gadgets))

	rowsByName(t, mirrorConfig{endpoints: []endpoint{c.endpoint()}, database: db})
	stored, err = db.Resources(t.Context(), "here")
	require.NoError(t, err)
	require.False(t, slices.Contains(stored, gadgets))
	requireEqual(t, db, c)
}
