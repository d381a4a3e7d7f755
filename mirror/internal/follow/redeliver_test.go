package follow

import (
	"database/sql"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/mirror/internal/clusters"
	"github.com/rvinformer/informer/mirror/internal/mirrortest"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A removal and an addition that the database has refused are tried again when a user asks for it,
// once the reason is gone. A removal is tried again after a start, too: nothing else brings it.
func TestRefusedRowsAreTriedAgain(t *testing.T) {
	t.Parallel()
	c := mirrortest.NewCluster(t, "here", 1000, informertest.Options{})
	nodes := schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	path := filepath.Join(t.TempDir(), "test.db")
	user, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, user.Close()) })
	execute := func(statement string) {
		_, err := user.Exec(statement)
		require.NoError(t, err)
	}
	begin := func() *running {
		db, err := sqlsink.Open(t.Context(), sqlsink.Config{Address: "sqlite:" + path})
		require.NoError(t, err)
		r := start(t, setting{Config: Config{Resources: []string{"nodes"}}, sink: db, endpoints: []clusters.Endpoint{c.Endpoint()}})
		r.settle(t)
		end := r.stop
		r.stop = func() error { defer func() { require.NoError(t, db.Close()) }(); return end() }
		return r
	}
	dead := func(r *running, n int) {
		require.Eventually(t, func() bool {
			letters := 0
			for _, i := range r.informers() {
				letters += len(i.DeadLetters())
			}
			return letters == n
		}, soon, 20*time.Millisecond)
	}
	rows := func() (n int) {
		require.NoError(t, user.QueryRow(`SELECT count(*) FROM objects`).Scan(&n))
		return n
	}
	redeliver := func(r *running) string {
		w := httptest.NewRecorder()
		r.ServeRedeliver(w, httptest.NewRequest(http.MethodPost, "/redeliver", nil))
		require.Equal(t, http.StatusOK, w.Code)
		return w.Body.String()
	}

	r := begin()
	all := rows()
	execute(`CREATE TRIGGER bills BEFORE DELETE ON objects BEGIN SELECT RAISE(ABORT, 'it has a bill'); END`)
	require.NoError(t, c.Server.Delete(nodes, "", "node-000000"))
	dead(r, 1)
	require.Equal(t, "1 row tried again; 1 refused now\n", redeliver(r))
	execute(`DROP TRIGGER bills`)
	require.Equal(t, "1 row tried again; 0 refused now\n", redeliver(r))
	require.Equal(t, all-1, rows())
	require.Equal(t, "0 rows tried again; 0 refused now\n", redeliver(r))

	execute(`CREATE TRIGGER bills BEFORE DELETE ON objects BEGIN SELECT RAISE(ABORT, 'it has a bill'); END`)
	require.NoError(t, c.Server.Delete(nodes, "", "node-000001"))
	dead(r, 1)
	require.NoError(t, r.stop())
	execute(`DROP TRIGGER bills`)
	r = begin()
	dead(r, 0)
	require.Equal(t, all-2, rows())
	require.NoError(t, r.stop())
}
