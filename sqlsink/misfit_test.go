package sqlsink_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// misfits are values that columns of these types refuse.
var misfits = map[sqlsink.ColumnType]any{
	sqlsink.Integer: "many", sqlsink.Number: "heavy", sqlsink.Boolean: "perhaps", sqlsink.Timestamp: "now",
}

// count is the first value that a statement returns.
func count(t *testing.T, address, statement string) string {
	t.Helper()
	path, isFile := strings.CutPrefix(address, "sqlite:")
	if !isFile {
		return query(t, address, statement)[0]
	}
	pool, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer func() { require.NoError(t, pool.Close()) }()
	var value any
	require.NoError(t, pool.QueryRow(statement).Scan(&value))
	return fmt.Sprint(value)
}

func widget(name string, size any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": size}}}
	object.SetAPIVersion("example.com/v1")
	object.SetKind("Widget")
	object.SetNamespace("ns")
	object.SetName(name)
	return object
}

// One row of many that does not fit a new column keeps nothing from being opened, and no other row is
// lost or written again. It is logged, and its object is refused as any other that does not fit, until it
// does.
func TestRowThatDoesNotFitANewColumn(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		cluster := identified(t, "v1", 1000)
		_, err := cluster.Create(widgets, widget("odd", "many"))
		require.NoError(t, err)
		target := fleet.Target{Unit: fleet.Unit{Cluster: "here"}, Resource: widgets}
		plain := open(t, sqlsink.Config{Address: address})
		other := plain.Place("there", pods)
		require.NoError(t, write(t.Context(), other, put("a", "10")))
		require.NoError(t, other.Checkpoint().Save(t.Context(), text("stays")))
		i, stop := following(t, plain, cluster, target, false)
		requireSynced(t, i)
		stop()
		require.Len(t, stored(t, plain.Target(target)), 1001)
		require.NoError(t, plain.Close())

		var log bytes.Buffer
		ctx := klog.NewContext(t.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log))))
		sink, err := sqlsink.Open(ctx, sqlsink.Config{Address: address, Columns: []sqlsink.Column{
			{Name: "app", Path: "metadata.labels.app"}, {Name: "size", Path: "spec.size", Type: sqlsink.Integer}}})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, sink.Close()) })
		require.Regexp(t, `"Removed a row that does not fit a new column" cluster="here" resource="widgets.example.com" object="ns/odd" problem="column size: .*many`, log.String())
		require.Equal(t, 1, strings.Count(log.String(), "\n"))
		require.Len(t, stored(t, sink.Target(target)), 1000)
		require.Equal(t, "stays", saved(t, sink.Place("there", pods)))

		i, stop = filling(t, sink.Target(target), informer.InformerConfig{ListerWatcher: listing(t, cluster, "", widgets), MaxAttempts: 1})
		require.Eventually(t, func() bool { return len(i.DeadLetters()) == 1 }, soon, 10*time.Millisecond)
		require.Equal(t, "ns/odd", i.DeadLetters()[0].Key)
		require.Contains(t, i.DeadLetters()[0].LastError, "size")
		require.Len(t, stored(t, sink.Target(target)), 1000)

		_, err = cluster.Update(widgets, widget("odd", int64(7)))
		require.NoError(t, err)
		require.Eventually(t, func() bool { return len(i.DeadLetters()) == 0 && len(stored(t, sink.Target(target))) == 1001 }, soon, 10*time.Millisecond)
		require.Equal(t, "7", count(t, address, `SELECT size FROM objects WHERE name = 'odd'`))
		stop()
	})
}

// Each type of a column refuses the same of rows that are there before it as of new ones.
func TestMisfitsOfEachType(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		sink := open(t, sqlsink.Config{Address: address})
		fitting := map[string]any{"text": 1.5, "integer": int64(3), "number": int64(3), "boolean": true, "timestamp": "2026-11-26T17:36:50Z", "json": "any"}
		var all []sqlsink.Column
		for name := range fitting {
			all = append(all, sqlsink.Column{Name: "c_" + name, Path: "spec." + name, Type: sqlsink.ColumnType(name), Resources: []schema.GroupResource{pods.GroupResource()}})
		}
		events := []informer.Event{with("fits", "10", map[string]any{"spec": fitting}), put("none", "11")}
		for kind, value := range misfits {
			events = append(events, with("odd-"+string(kind), "12", map[string]any{"spec": map[string]any{string(kind): value}}))
		}
		require.NoError(t, write(t.Context(), sink.Place("here", pods), events...))
		require.NoError(t, write(t.Context(), sink.Place("here", configmaps), events...))
		require.NoError(t, sink.Close())
		var log bytes.Buffer
		ctx := klog.NewContext(t.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log))))
		sink, err := sqlsink.Open(ctx, sqlsink.Config{Address: address, Columns: all})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, sink.Close()) })
		for kind, value := range misfits {
			require.Regexp(t, fmt.Sprintf(`object="ns/odd-%[1]s" problem="column c_%[1]s: .*%[2]s`, kind, value), log.String())
		}
		require.Equal(t, map[string]string{"ns/fits": "10", "ns/none": "11"}, stored(t, sink.Place("here", pods)))
		require.Len(t, stored(t, sink.Place("here", configmaps)), len(events))
		require.Len(t, refusedOf(t, write(t.Context(), sink.Place("here", pods), events...)), len(misfits))
	})
}

// Another cluster does not take the rows over, although its resource is listed anew.
func TestMisfitLeavesTheClusterKnown(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		cluster := identified(t, "v1", 3)
		_, err := cluster.Create(widgets, widget("odd", "many"))
		require.NoError(t, err)
		target := fleet.Target{Unit: fleet.Unit{Cluster: "here"}, Resource: widgets}
		sink := open(t, sqlsink.Config{Address: address})
		i, stop := following(t, sink, cluster, target, false)
		requireSynced(t, i)
		stop()
		require.NoError(t, sink.Close())
		sink = opened(t, sqlsink.Config{Address: address, Columns: []sqlsink.Column{{Name: "size", Path: "spec.size", Type: sqlsink.Integer}}})
		i, _ = following(t, sink, identified(t, "v1", 0), target, false)
		require.Eventually(t, func() bool { return i.Status().LastError != nil }, soon, 10*time.Millisecond)
		require.ErrorIs(t, i.Status().LastError, informer.ErrCheckpointSource)
		require.Len(t, stored(t, sink.Target(target)), 3)
	})
}
