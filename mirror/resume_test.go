package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/rvinformer/informer/informertest"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// mirrored runs a mirror of all resources with a database at path, until that has each last change
// of each resource. It compares the database with the servers, and returns the rows.
func mirrored(t *testing.T, path string, of ...*demoCluster) map[string]row {
	t.Helper()
	db, err := openSQLite(t.Context(), path)
	require.NoError(t, err)
	return mirroredIn(t, db, of...)
}

// mirroredIn is mirrored with a database, which it closes.
func mirroredIn(t *testing.T, db database, of ...*demoCluster) map[string]row {
	t.Helper()
	defer func() { require.NoError(t, db.Close()) }()
	var endpoints []endpoint
	for _, c := range of {
		c.server.ResetRequests()
		endpoints = append(endpoints, c.endpoint())
	}
	r := start(t, mirrorConfig{endpoints: endpoints, database: db})
	r.settle(t)
	for _, c := range of {
		for _, s := range c.stock {
			r.reaches(t, c, s.kind.resource)
		}
		requireEqual(t, db, c)
	}
	require.NoError(t, r.stop())
	return r.byName()
}

// listed are the resources that the server was asked to list, be it as the beginning of a watch.
func listed(server *informertest.Server) sets.Set[schema.GroupVersionResource] {
	resources := sets.New[schema.GroupVersionResource]()
	for _, request := range server.Requests() {
		asksForOne := strings.Contains(request.Options.FieldSelector, "metadata.name=") // whether the server was restored
		if request.Verb == "list" && !asksForOne || request.Verb == "watch" && request.Options.SendInitialEvents != nil {
			resources.Insert(request.GroupVersionResource)
		}
	}
	return resources
}

// changeAll changes, deletes, recreates and creates objects of each kind.
func changeAll(t *testing.T, c *demoCluster) {
	for _, s := range c.stock {
		require.NoError(t, s.Delete())
		require.NoError(t, s.Recreate(1))
		require.NoError(t, s.Create())
		_, err := s.Update(2)
		require.NoError(t, err)
	}
}

// A start goes on where the last run has stopped: nothing is listed, and what has changed meanwhile
// is written.
func TestResume(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, "here", 400, informertest.Options{})
	path := filepath.Join(t.TempDir(), "test.db")
	mirrored(t, path, c)
	require.Len(t, listed(c.server), len(c.stock))

	changeAll(t, c)
	for name, row := range mirrored(t, path, c) {
		row.counts.handled = 0
		require.Equal(t, counts{added: 2, updated: 2, deleted: 2}, row.counts, name)
		require.True(t, row.resumed, name)
	}
	require.Empty(t, listed(c.server))

	for name, row := range mirrored(t, path, c) {
		require.Equal(t, counts{updated: 1, handled: 1}, row.counts, name) // the one that was waited for
		require.NotZero(t, row.rows, name)
	}
	require.Empty(t, listed(c.server))
}

// With --once everything is looked at, because otherwise it is not known when the database is up to
// date. The next start without it goes on from there.
func TestOnceLists(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, "here", 100, informertest.Options{})
	path := filepath.Join(t.TempDir(), "test.db")
	args := []string{"--once", "--kubeconfig", writeKubeconfig(t, c.endpoint()), "--db", path}
	for range 2 {
		c.server.ResetRequests()
		to := newOutput()
		require.Equal(t, exitOK, run(t.Context(), args, to.screen), to)
		require.Len(t, listed(c.server), len(c.stock))
	}
	mirrored(t, path, c)
	require.Empty(t, listed(c.server))
}

// A database that was restored from a backup goes on from what it was then, though later runs have
// gone further.
func TestRestoredDatabase(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		forgets bool // the server what has happened since the backup
	}{{"the server remembers", false}, {"the server has forgotten", true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newTestCluster(t, "here", 400, informertest.Options{})
			path := filepath.Join(t.TempDir(), "test.db")
			mirrored(t, path, c)
			backup, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, s := range c.stock { // which no other row could tell
				require.NoError(t, s.Delete())
			}
			mirrored(t, path, c)
			require.Empty(t, listed(c.server))

			require.NoError(t, os.WriteFile(path, backup, 0o600))
			if tt.forgets {
				c.server.Compact()
			}
			mirrored(t, path, c)
			require.Equal(t, tt.forgets, len(listed(c.server)) > 0)
		})
	}
}

// A database that is gone, and rows that are, are fetched again.
func TestLostRows(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, "here", 400, informertest.Options{})
	path := filepath.Join(t.TempDir(), "test.db")
	mirrored(t, path, c)
	require.NoError(t, os.Remove(path))
	mirrored(t, path, c)

	for _, where := range []string{"resource = 'pods'", "name LIKE '%3'"} {
		db, err := openSQLite(t.Context(), path)
		require.NoError(t, err)
		_, err = db.writing.Exec("DELETE FROM objects WHERE " + where)
		require.NoError(t, err)
		require.NoError(t, db.Close())
		mirrored(t, path, c)
		require.True(t, listed(c.server).Has(pods))
	}
}

// Another server under the name of a cluster writes nothing over the rows of that cluster, unless
// it is told to.
func TestAnotherServer(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	here := newTestCluster(t, "here", 400, informertest.Options{})
	mirrored(t, path, here)
	db, err := openSQLite(t.Context(), path)
	require.NoError(t, err)
	another := beginAnew(t, db, here)
	require.NoError(t, db.Close())
	mirrored(t, path, another)
	require.Empty(t, listed(another.server))
}

// beginAnew mirrors another server into a database with the rows of one, first as if by mistake and
// then on purpose.
func beginAnew(t *testing.T, db database, here *demoCluster) *demoCluster {
	t.Helper()
	another := newTestCluster(t, "here", 300, informertest.Options{})
	r := start(t, mirrorConfig{endpoints: []endpoint{another.endpoint()}, database: db})
	r.says(t, "checkpoint of another source: server is")
	require.NoError(t, r.stop())
	requireEqual(t, db, here)
	require.Empty(t, listed(another.server))

	r = start(t, mirrorConfig{endpoints: []endpoint{another.endpoint()}, database: db, beginAnew: true})
	r.settle(t)
	require.NoError(t, r.stop())
	requireEqual(t, db, another)
	require.Len(t, listed(another.server), len(another.stock))
	return another
}

// Neither does another cluster at the address of a server.
func TestAnotherCluster(t *testing.T) {
	t.Parallel()
	var clusters []*demoCluster
	for range 2 {
		c := newTestCluster(t, "here", 200, informertest.Options{})
		system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: types.UID(c.server.URL())}}
		_, err := c.server.Create(corev1.SchemeGroupVersion.WithResource("namespaces"), system)
		require.NoError(t, err)
		clusters = append(clusters, c)
	}
	way := newGate(t, clusters[0])
	db := openTestDatabase(t)
	for i, step := range []struct {
		cluster                 int
		beginAnew, lists, waits bool
	}{
		{cluster: 0, lists: true},
		{cluster: 0},
		{cluster: 1, waits: true},
		{cluster: 0},
		{cluster: 1, lists: true, beginAnew: true},
		{cluster: 1},
	} {
		c := clusters[step.cluster]
		c.server.ResetRequests()
		way.lead(c)
		r := start(t, mirrorConfig{endpoints: []endpoint{{"here", way.config()}}, database: db, resources: []string{"pods"}, beginAnew: step.beginAnew})
		if step.waits {
			r.says(t, "checkpoint of another source: cluster is")
			c = clusters[0]
		} else {
			r.settle(t)
			r.reaches(t, c, pods)
		}
		require.NoError(t, r.stop())
		requireEqual(t, db, c, pods)
		require.Equal(t, step.lists, listed(c.server).Has(pods), "start %d", i)
	}
}

// noCheckpoints is a store that cannot save any.
type noCheckpoints struct{ store }

func (noCheckpoints) SaveCheckpoint(context.Context, place, string, func(io.Writer) error) error {
	return errors.New("disk full")
}

// Where no checkpoint can be saved, that is told once, and costs a list at the next start; nothing
// else.
func TestCheckpointsCannotBeSaved(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, "here", 400, informertest.Options{})
	path := filepath.Join(t.TempDir(), "test.db")
	db, err := openSQLite(t.Context(), path)
	require.NoError(t, err)
	r := start(t, mirrorConfig{endpoints: []endpoint{c.endpoint()}, database: db, store: noCheckpoints{db}})
	r.settle(t)
	r.says(t, "cannot write: disk full")
	require.NoError(t, r.stop())
	require.Equal(t, 1, strings.Count(r.out.messages(), "\n"), r.out)
	requireEqual(t, db, c)
	require.NoError(t, db.Close())

	mirrored(t, path, c)
	require.Len(t, listed(c.server), len(c.stock))
}

// An index answers whether a checkpoint goes with the rows, however many there are, and its parts
// need not be sorted.
func TestLoadingACheckpointReadsLittle(t *testing.T) {
	db := openTestDatabase(t)
	plan := func(query string, args ...any) (text string) {
		rows, err := db.reading.Query(`EXPLAIN QUERY PLAN `+query, args...)
		require.NoError(t, err)
		defer rows.Close()
		for rows.Next() {
			var id, parent, unused int
			var detail string
			require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
			text += detail + "\n"
		}
		return text
	}
	versions := plan(ofVersions, "c", "g", "r", "v")
	require.Equal(t, 3, strings.Count(versions, "USING COVERING INDEX objects_versions (cluster=? AND group=? AND resource=? AND version"), versions)
	require.Equal(t, "SEARCH checkpoints USING INDEX sqlite_autoindex_checkpoints_1 (cluster=? AND group=? AND resource=?)\n",
		plan(loadParts, "c", "g", "r", "v"))
}

// breaking is a database whose connection breaks while checkpoints are loaded: for each place
// before the first answer, and then in the midst of the second.
type breaking struct {
	database
	mu    sync.Mutex
	loads map[place]int
}

func (b *breaking) LoadCheckpoint(ctx context.Context, of place) (io.ReadCloser, error) {
	b.mu.Lock()
	b.loads[of]++
	n := b.loads[of]
	b.mu.Unlock()
	lost := fmt.Errorf("connection lost: %w", io.ErrUnexpectedEOF)
	switch n {
	case 1:
		return nil, lost
	case 2:
		return io.NopCloser(io.MultiReader(strings.NewReader("\x89RVC"), iotest.ErrReader(lost))), nil
	}
	return b.database.LoadCheckpoint(ctx, of)
}

// The connection breaks while a checkpoint is loaded. The checkpoint is loaded again, and nothing
// is listed.
func TestConnectionBreaksWhileCheckpointIsLoaded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mirror.db")
	c := newTestCluster(t, "here", 400, informertest.Options{})
	mirrored(t, path, c)
	changeAll(t, c)
	db, err := openSQLite(t.Context(), path)
	require.NoError(t, err)
	mirroredIn(t, &breaking{database: db, loads: map[place]int{}}, c)
	require.Empty(t, listed(c.server))
}
