package sqlsink_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/rvinformer/informer/sqlsink"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var columns = []sqlsink.Column{
	{Name: "node", Path: "spec.nodeName"},
	{Name: "app", Path: `metadata.labels.app\.kubernetes\.io/name`},
	{Name: "image", Path: "spec.containers.0.image"},
	{Name: "replicas", Path: "spec.replicas", Type: sqlsink.Integer},
	{Name: "load", Path: "spec.load", Type: sqlsink.Number},
	{Name: "paused", Path: "spec.paused", Type: sqlsink.Boolean},
	{Name: "began", Path: "status.startTime", Type: sqlsink.Timestamp},
	{Name: "status", Path: "status", Type: sqlsink.JSON},
	{Name: "of_pods", Path: "spec.nodeName", Resources: []schema.GroupResource{pods.GroupResource()}},
}

// full has a value for every column.
func full() map[string]any {
	return map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app.kubernetes.io/name": "it's"}},
		"spec": map[string]any{"nodeName": "n1", "replicas": int64(3), "load": 1.5, "paused": true,
			"containers": []any{map[string]any{"image": "busybox"}}},
		"status": map[string]any{"startTime": "2026-11-26T17:36:50Z"},
	}
}

// values are what the columns of the pod a have, with | between them.
func values(t *testing.T, address, resource string) string {
	const postgres = `SELECT concat_ws('|', node, app, image, replicas, "load", paused, extract(epoch FROM began)::bigint, status, of_pods) FROM objects WHERE name = 'a' AND resource = $1`
	const sqlite = `SELECT concat_ws('|', node, app, image, replicas, "load", paused, strftime('%s', began), status, of_pods) FROM objects WHERE name = 'a' AND resource = ?`
	path, isFile := strings.CutPrefix(address, "sqlite:")
	if !isFile {
		return query(t, address, postgres, resource)[0]
	}
	pool, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer func() { require.NoError(t, pool.Close()) }()
	var text string
	require.NoError(t, pool.QueryRow(sqlite, resource).Scan(&text))
	return text
}

// Columns have what the JSON has, of rows that were there before them too, whatever writes the
// rows. An object without the fields has NULL.
func TestColumnsFollowTheObjects(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		want, none := `n1|it's|busybox|3|1.5|t|1795714610|{"startTime": "2026-11-26T17:36:50Z"}|n1`, ""
		if strings.HasPrefix(address, "sqlite:") {
			want = strings.NewReplacer("|t|", "|1|", `: "`, `:"`).Replace(want)
		}
		plain := open(t, sqlsink.Config{Address: address})
		require.NoError(t, write(t.Context(), plain.Place("here", pods), with("a", "10", full())))
		require.NoError(t, plain.Close())

		for range 2 { // the second time they are there already
			sink := open(t, sqlsink.Config{Address: address, Columns: columns})
			require.Equal(t, want, values(t, address, "pods"))
			require.NoError(t, write(t.Context(), sink.Place("here", pods), put("a", "11")))
			require.Equal(t, none, values(t, address, "pods"))
			require.NoError(t, write(t.Context(), sink.Place("here", configmaps), with("a", "12", full())))
			require.Equal(t, strings.TrimSuffix(want, "|n1"), values(t, address, "configmaps"))
			require.NoError(t, sink.Close())

			// So does a writer that knows of no columns.
			plain := open(t, sqlsink.Config{Address: address})
			require.NoError(t, write(t.Context(), plain.Place("here", pods), with("a", "10", full())))
			require.Equal(t, want, values(t, address, "pods"))
			require.NoError(t, plain.Close())
		}
	})
}

// A value that is no value of the column's type is refused, and no other row is.
func TestValueOfAnotherType(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		here := opened(t, sqlsink.Config{Address: address, Columns: columns}).Place("here", pods)
		isFile := strings.HasPrefix(address, "sqlite:")
		odd := with("odd", "11", map[string]any{"spec": map[string]any{"replicas": "many"}})
		refused := refusedOf(t, write(t.Context(), here, put("a", "10"), odd, put("b", "12")))
		require.Len(t, refused, 1)
		if isFile {
			require.ErrorContains(t, refused[1], "cannot store TEXT value in INTEGER column objects.replicas")
		} else {
			require.EqualError(t, refused[1], `column replicas: ERROR: invalid input syntax for type bigint: "many" (SQLSTATE 22P02)`)
		}
		require.Equal(t, map[string]string{"ns/a": "10", "ns/b": "12"}, stored(t, here))
	})
}

// A word whose time is that of the write is refused, and no other row is.
func TestWordForTheTimeOfTheWrite(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		here := opened(t, sqlsink.Config{Address: address, Columns: columns}).Place("here", pods)
		for _, word := range []string{"now", " NOW "} {
			odd := with("odd", "11", map[string]any{"status": map[string]any{"startTime": word}})
			err := write(t.Context(), here, put("a", "10"), odd, put("b", "12"))
			if err == nil { // to SQLite, this is no time
				require.Equal(t, " NOW ", word)
				continue
			}
			require.Len(t, refusedOf(t, err), 1)
			require.ErrorContains(t, refusedOf(t, err)[1], "column began: ")
			require.Equal(t, map[string]string{"ns/a": "10", "ns/b": "12"}, stored(t, here))
		}
	})
}

func TestTimestampsSort(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		here := opened(t, sqlsink.Config{Address: address, Columns: columns}).Place("here", pods)
		for i, at := range []string{"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.5Z", "2026-01-02T04:04:05.6+01:00"} {
			require.NoError(t, write(t.Context(), here, with(fmt.Sprint(i), "10", map[string]any{"status": map[string]any{"startTime": at}})))
		}
		statement := `SELECT string_agg(name, ' ' ORDER BY began) FROM objects`
		path, isFile := strings.CutPrefix(address, "sqlite:")
		if !isFile {
			require.Equal(t, []string{"0 1 2"}, query(t, address, statement))
			return
		}
		pool, err := sql.Open("sqlite", path)
		require.NoError(t, err)
		defer func() { require.NoError(t, pool.Close()) }()
		var names string
		require.NoError(t, pool.QueryRow(statement).Scan(&names))
		require.Equal(t, "0 1 2", names)
	})
}

// A column of the same name that is defined otherwise stays, and the database is refused.
func TestColumnThatIsDefinedOtherwise(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		require.NoError(t, open(t, sqlsink.Config{Address: address, Columns: columns[:1]}).Close())
		for _, c := range []sqlsink.Column{
			{Name: "node", Path: "spec.node"}, {Name: "node", Path: "spec.nodeName", Type: sqlsink.JSON},
			{Name: "node", Path: "spec.nodeName", Resources: []schema.GroupResource{{Resource: "pods"}}},
		} {
			_, err := sqlsink.Open(t.Context(), sqlsink.Config{Address: address, Columns: []sqlsink.Column{columns[1], c}})
			unusable := (*sqlsink.UnusableError)(nil)
			require.ErrorAs(t, err, &unusable)
			require.Equal(t, "its table objects has a column node that is defined otherwise", unusable.Reason)
		}
		require.NoError(t, open(t, sqlsink.Config{Address: address, Columns: columns}).Close())
	})
}

func TestColumnsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		column sqlsink.Column
		want   string
	}{
		{sqlsink.Column{Path: "a"}, `column "": a name has small letters, digits and _`},
		{sqlsink.Column{Name: `a"b`, Path: "a"}, `column "a\"b": a name has`},
		{sqlsink.Column{Name: "object", Path: "a"}, "column object: the table has another one of this name"},
		{sqlsink.Column{Name: "a", Path: "a..b"}, `column a: "a..b" is no path`},
		{sqlsink.Column{Name: "a"}, `column a: "" is no path`},
		{sqlsink.Column{Name: "a", Path: "a", Type: "bytes"}, `column a: "bytes" is no type`},
	} {
		_, err := sqlsink.Open(t.Context(), sqlsink.Config{Address: "sqlite:" + t.TempDir() + "/a", Columns: []sqlsink.Column{tt.column}})
		require.ErrorContains(t, err, tt.want)
	}
}

// Two columns of one name are refused before anything is touched, and the error names the column.
func TestColumnsOfOneName(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		for _, second := range []sqlsink.Column{columns[0], {Name: "node", Path: "spec.node", Type: sqlsink.JSON}} {
			_, err := sqlsink.Open(t.Context(), sqlsink.Config{Address: address, Columns: []sqlsink.Column{columns[0], columns[1], second}})
			require.EqualError(t, err, "sqlsink: column node: there are two columns of this name")
		}
		path, isFile := strings.CutPrefix(address, "sqlite:")
		if isFile {
			require.NoFileExists(t, path)
		} else {
			require.Equal(t, []string{"<nil>"}, query(t, address, `SELECT to_regclass('objects')`))
		}
		require.NoError(t, open(t, sqlsink.Config{Address: address, Columns: columns}).Close())
	})
}
