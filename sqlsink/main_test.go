package sqlsink_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/rvinformer/informer/sqlsink/pgtest"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// soon is for how long a test waits for what comes within milliseconds on an idle machine.
const soon = 30 * time.Second

var (
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	configmaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

func TestMain(m *testing.M) {
	if os.Getenv(asSyncer) != "" {
		os.Exit(syncer())
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if server, err := sharedPostgres(); err == nil {
			if err := server.Stop(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}
		os.Exit(code)
	}))
}

// sharedPostgres is one PostgreSQL server for all tests that do nothing to the server itself.
var sharedPostgres = sync.OnceValues(func() (*pgtest.Server, error) { return pgtest.New() })

// postgresAddress creates a database, and returns its address. On a busy machine a connection may
// take longer than usual.
func postgresAddress(t testing.TB) string {
	server, err := sharedPostgres()
	if errors.Is(err, pgtest.ErrMissing) {
		pgtest.Skip(t)
	}
	require.NoError(t, err)
	return server.NewDatabase(t) + "&connect_timeout=60"
}

// overBoth runs a test with the address of an empty database of each kind.
func overBoth(t *testing.T, test func(t *testing.T, address string)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, "sqlite:"+filepath.Join(t.TempDir(), "test.db"))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, postgresAddress(t))
	})
}

// open opens a database, which the test closes.
func open(t testing.TB, config sqlsink.Config) *sqlsink.Sink {
	t.Helper()
	sink, err := sqlsink.Open(t.Context(), config)
	require.NoError(t, err)
	return sink
}

// opened opens a database until the test ends.
func opened(t testing.TB, config sqlsink.Config) *sqlsink.Sink {
	t.Helper()
	sink := open(t, config)
	t.Cleanup(func() { require.NoError(t, sink.Close()) })
	return sink
}

// put is the event of an object in the namespace ns, whose UID is its name.
func put(name, resourceVersion string) informer.Event { return with(name, resourceVersion, nil) }

// with is put with fields beside the metadata.
func with(name, resourceVersion string, fields map[string]any) informer.Event {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
	for field, value := range fields {
		object.Object[field] = value
	}
	object.SetNamespace("ns")
	object.SetName(name)
	object.SetUID(types.UID(name))
	object.SetResourceVersion(resourceVersion)
	return informer.Event{Type: informer.Added, Key: "ns/" + name, Object: object, ResourceVersion: resourceVersion}
}

// gone is the event of an object that was deleted.
func gone(name string) informer.Event {
	e := put(name, "1")
	e.Type = informer.Deleted
	return e
}

// write hands events to the handler of a place.
func write(ctx context.Context, at sqlsink.Place, events ...informer.Event) error {
	return at.Handler().OnBatch(ctx, events)
}

// stored is what a start knows of a place: resource versions by key.
func stored(t testing.TB, at sqlsink.Place) map[string]string {
	t.Helper()
	storage, err := at.Storage(t.Context())
	require.NoError(t, err)
	versions := make(map[string]string)
	for key, version := range storage.All() {
		versions[key] = version
	}
	return versions
}

// objects are the objects of a place as JSON, by key.
func objects(t testing.TB, at sqlsink.Place) map[string]string {
	t.Helper()
	all := make(map[string]string)
	require.NoError(t, at.Objects(t.Context(), func(object *unstructured.Unstructured) error {
		text, err := object.MarshalJSON()
		all[cache.MetaObjectToName(object).String()] = string(text[:len(text)-1])
		return err
	}))
	return all
}

// execute runs statements in a SQLite file as another program does.
func execute(t testing.TB, path string, statements ...string) {
	t.Helper()
	pool, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	require.NoError(t, err)
	defer func() { require.NoError(t, pool.Close()) }()
	for _, statement := range statements {
		_, err := pool.Exec(statement)
		require.NoError(t, err, statement)
	}
}

// placed is the event of an object, by all that identifies it.
func placed(namespace, name, uid, resourceVersion string) informer.Event {
	e := put(name, resourceVersion)
	e.Key = namespace + "/" + name
	object := e.Object.(*unstructured.Unstructured)
	object.SetNamespace(namespace)
	object.SetUID(types.UID(uid))
	return e
}

// removed is the event of the end of an object.
func removed(namespace, name string) informer.Event {
	e := placed(namespace, name, "", "1")
	e.Type = informer.Deleted
	return e
}
