package follow

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/mirror/internal/clusters"
	"github.com/rvinformer/informer/mirror/internal/display"
	"github.com/rvinformer/informer/mirror/internal/mirrortest"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// soon is for how long a test waits for what comes within seconds on an idle machine.
const soon = 2 * time.Minute

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := mirrortest.StopPostgres(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	}))
}

// openFile opens a new SQLite file until the test ends.
func openFile(t *testing.T) *sqlsink.Sink {
	return mirrortest.Open(t, sqlsink.Config{Address: "sqlite:" + filepath.Join(t.TempDir(), "test.db")})
}

// setting is what a test mirrors.
type setting struct {
	Config
	endpoints []clusters.Endpoint
	sink      *sqlsink.Sink // the Database, if that is not set
}

// running is a mirror that runs until the test stops it.
type running struct {
	*Mirror
	out  *mirrortest.Output
	stop func() error
}

// start runs a mirror in the background, with a display.
func start(t *testing.T, s setting) *running {
	r := &running{out: mirrortest.NewOutput()}
	s.Say, s.Prune = r.out.Screen.Say, []string{"metadata.managedFields"}
	if s.Database == nil {
		s.Database = Sink{s.sink}
	}
	var err error
	r.Mirror, err = New(s.Config)
	require.NoError(t, err)
	for _, e := range s.endpoints {
		require.NoError(t, r.Add(e.Name, e.Client))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var going sync.WaitGroup
	going.Go(func() {
		err = r.Run(ctx, r.Follow, func(ctx context.Context) error {
			display.New(r.out.Screen, r.Rows, time.Now()).Run(ctx)
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
func (r *running) reaches(t *testing.T, c mirrortest.Cluster, resources ...schema.GroupVersionResource) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	for _, resource := range resources {
		all := r.members.Members()
		i := slices.IndexFunc(all, func(m factory.Member) bool { return m.Key().Cluster == c.Name && m.Key().Resource == resource })
		require.GreaterOrEqual(t, i, 0, resource)
		require.NoError(t, c.Of(t, resource).Update(0))
		last := c.Server.ResourceVersion()
		require.NoError(t, all[i].Informer().(informer.ResourceVersionInformer).WaitUntil(ctx, last), r.out)
	}
}

func (r *running) says(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(r.out.Messages(), text) }, soon, 20*time.Millisecond,
		"no message %q in:\n%s", text, r.out)
}

// rowsByName runs a mirror until it has settled and stops it. The rows are by cluster and resource.
func rowsByName(t *testing.T, s setting) map[string]display.Row {
	t.Helper()
	r := start(t, s)
	r.settle(t)
	require.NoError(t, r.stop())
	return r.byName()
}

func (r *running) byName() map[string]display.Row {
	rows := make(map[string]display.Row)
	for _, row := range r.Rows() {
		rows[row.Place.String()] = row
	}
	return rows
}

// versions are the resource versions of the rows of a place.
func versions(t *testing.T, db *sqlsink.Sink, cluster string, resource schema.GroupVersionResource) map[string]string {
	storage, err := db.Place(cluster, resource).Storage(t.Context())
	require.NoError(t, err)
	return maps.Collect(storage.All())
}
