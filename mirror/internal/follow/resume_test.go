package follow

import (
	"database/sql"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/mirror/internal/clusters"
	"github.com/rvinformer/informer/mirror/internal/display"
	"github.com/rvinformer/informer/mirror/internal/mirrortest"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// mirroredIn is mirrored with a database that it opens and closes.
func mirroredIn(t *testing.T, address string, of ...mirrortest.Cluster) map[string]display.Row {
	t.Helper()
	db, err := sqlsink.Open(t.Context(), sqlsink.Config{Address: address})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	return mirrored(t, Sink{db}, db, of...)
}

// mirrored runs a mirror of all resources with a database, until that has each last change of each
// resource. It compares the database with the servers, and returns the rows.
func mirrored(t *testing.T, db Database, sink *sqlsink.Sink, of ...mirrortest.Cluster) map[string]display.Row {
	t.Helper()
	s := setting{Config: Config{Database: db}}
	for _, c := range of {
		c.Server.ResetRequests()
		s.endpoints = append(s.endpoints, c.Endpoint())
	}
	r := start(t, s)
	r.settle(t)
	for _, c := range of {
		for _, stock := range c.Stock {
			r.reaches(t, c, stock.Kind.Resource)
		}
		c.Equal(t, sink)
	}
	require.NoError(t, r.stop())
	return r.byName()
}

// A start goes on where the last run has stopped: nothing is listed, and what has changed meanwhile
// is written.
func TestResume(t *testing.T) {
	t.Parallel()
	c := mirrortest.NewCluster(t, "here", 400, informertest.Options{})
	path := filepath.Join(t.TempDir(), "test.db")
	mirroredIn(t, "sqlite:"+path, c)
	require.Len(t, c.Listed(), len(c.Stock))

	c.ChangeAll(t)
	for name, row := range mirroredIn(t, "sqlite:"+path, c) {
		require.Equal(t, display.Counts{Added: 2, Updated: 2, Deleted: 2}, row.Counts, name)
		require.True(t, row.Resumed, name)
	}
	require.Empty(t, c.Listed())

	for name, row := range mirroredIn(t, "sqlite:"+path, c) {
		require.Equal(t, display.Counts{Updated: 1}, row.Counts, name) // the one that was waited for
		require.NotZero(t, row.Objects, name)
	}
	require.Empty(t, c.Listed())
}

// With Relist everything is looked at. The next start without it goes on from there.
func TestRelist(t *testing.T) {
	t.Parallel()
	c := mirrortest.NewCluster(t, "here", 100, informertest.Options{})
	db := openFile(t)
	for range 2 {
		c.Server.ResetRequests()
		rowsByName(t, setting{Config: Config{Relist: true}, sink: db, endpoints: []clusters.Endpoint{c.Endpoint()}})
		require.Len(t, c.Listed(), len(c.Stock))
	}
	mirrored(t, Sink{db}, db, c)
	require.Empty(t, c.Listed())
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
			c := mirrortest.NewCluster(t, "here", 400, informertest.Options{})
			path := filepath.Join(t.TempDir(), "test.db")
			mirroredIn(t, "sqlite:"+path, c)
			backup, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, s := range c.Stock { // which no other row could tell
				require.NoError(t, s.Delete())
			}
			mirroredIn(t, "sqlite:"+path, c)
			require.Empty(t, c.Listed())

			require.NoError(t, os.WriteFile(path, backup, 0o600))
			if tt.forgets {
				c.Server.Compact()
			}
			mirroredIn(t, "sqlite:"+path, c)
			require.Equal(t, tt.forgets, len(c.Listed()) > 0)
		})
	}
}

// A database that is gone, and rows that are, are fetched again.
func TestLostRows(t *testing.T) {
	t.Parallel()
	c := mirrortest.NewCluster(t, "here", 400, informertest.Options{})
	path := filepath.Join(t.TempDir(), "test.db")
	mirroredIn(t, "sqlite:"+path, c)
	require.NoError(t, os.Remove(path))
	mirroredIn(t, "sqlite:"+path, c)

	for _, where := range []string{"resource = 'pods'", "name LIKE '%3'"} {
		db, err := sql.Open("sqlite", path)
		require.NoError(t, err)
		_, err = db.Exec("DELETE FROM objects WHERE " + where)
		require.NoError(t, err)
		require.NoError(t, db.Close())
		mirroredIn(t, "sqlite:"+path, c)
		require.True(t, c.Listed().Has(mirrortest.Pods))
	}
}

// Another server under the name of a cluster writes nothing over the rows of that cluster, unless
// it is told to.
func TestAnotherServer(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	here := mirrortest.NewCluster(t, "here", 400, informertest.Options{})
	mirroredIn(t, "sqlite:"+path, here)
	db, err := sqlsink.Open(t.Context(), sqlsink.Config{Address: "sqlite:" + path})
	require.NoError(t, err)
	another := beginAnew(t, db, here)
	require.NoError(t, db.Close())
	mirroredIn(t, "sqlite:"+path, another)
	require.Empty(t, another.Listed())
}

// beginAnew mirrors another server into a database with the rows of one, first as if by mistake and
// then on purpose.
func beginAnew(t *testing.T, db *sqlsink.Sink, here mirrortest.Cluster) mirrortest.Cluster {
	t.Helper()
	another := mirrortest.NewCluster(t, "here", 300, informertest.Options{})
	r := start(t, setting{endpoints: []clusters.Endpoint{another.Endpoint()}, sink: db})
	r.says(t, "checkpoint of another source: server is")
	require.NoError(t, r.stop())
	here.Equal(t, db)
	require.Empty(t, another.Listed())

	r = start(t, setting{endpoints: []clusters.Endpoint{another.Endpoint()}, sink: db, Config: Config{BeginAnew: true}})
	r.settle(t)
	require.NoError(t, r.stop())
	another.Equal(t, db)
	require.Len(t, another.Listed(), len(another.Stock))
	return another
}

// Neither does another cluster at the address of a server.
func TestAnotherCluster(t *testing.T) {
	t.Parallel()
	var both []mirrortest.Cluster
	for range 2 {
		c := mirrortest.NewCluster(t, "here", 200, informertest.Options{})
		system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: types.UID(c.Server.URL())}}
		_, err := c.Server.Create(corev1.SchemeGroupVersion.WithResource("namespaces"), system)
		require.NoError(t, err)
		both = append(both, c)
	}
	var behind atomic.Pointer[url.URL]
	way := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(behind.Load()) }, FlushInterval: -1})
	t.Cleanup(way.Close)
	db := openFile(t)
	for i, step := range []struct {
		cluster                         int
		beginAnew, relist, lists, waits bool
	}{
		{cluster: 0, lists: true},
		{cluster: 0},
		{cluster: 1, waits: true},
		{cluster: 1, waits: true, relist: true},
		{cluster: 0},
		{cluster: 1, lists: true, beginAnew: true},
		{cluster: 1},
	} {
		c := both[step.cluster]
		c.Server.ResetRequests()
		to, err := url.Parse(c.Server.URL())
		require.NoError(t, err)
		behind.Store(to)
		r := start(t, setting{endpoints: []clusters.Endpoint{{Name: "here", Client: &rest.Config{Host: way.URL}}}, sink: db, Config: Config{Resources: []string{"pods"}, BeginAnew: step.beginAnew, Relist: step.relist}})
		if step.waits {
			r.says(t, "checkpoint of another source: cluster is")
			c = both[0]
		} else {
			r.settle(t)
			r.reaches(t, c, mirrortest.Pods)
		}
		require.NoError(t, r.stop())
		c.Equal(t, db, mirrortest.Pods)
		require.Equal(t, step.lists, c.Listed().Has(mirrortest.Pods), "start %d", i)
	}
}
