package sqlsink_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// textOf is an object with a field that has a text of JSON.
func textOf(name, field string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"ns","uid":%q,"resourceVersion":"10"},"field":%s}`, name, "uid-"+name, field)
}

// textObject is an object with a text of its own.
type textObject struct {
	metav1.PartialObjectMetadata
	text string
}

func (o *textObject) MarshalJSON() ([]byte, error)   { return []byte(o.text), nil }
func (o *textObject) DeepCopyObject() runtime.Object { return o }

// raw is the event of an object with a field that has a text of JSON.
func raw(name, field string) informer.Event {
	object := &textObject{text: textOf(name, field)}
	object.UID = types.UID("uid-" + name)
	return informer.Event{Type: informer.Added, Key: "ns/" + name, Object: object, ResourceVersion: "10"}
}

// Whatever an object has in it, it is kept as Go reads it, and can be found by its fields. What
// jsonb does not take does not keep the others of its batch away.
func TestPostgresKeepsEveryObject(t *testing.T) {
	t.Parallel()
	address := postgresAddress(t)
	psql(t, address, `SELECT format('ALTER DATABASE %I SET max_stack_depth = ''200kB''', current_database()) \gexec`) // a tenth of the default
	here := opened(t, sqlsink.Config{Address: address, Columns: columns}).Place("a'b\"c\\d%e", pods)
	fields := map[string]string{
		"plain":                        `{"a":[1,2.5,true,null,"x"]}`,
		"nul":                          `"a\u0000b\\u0000c\\\u0000d"`,
		"escaped-backslash":            `"\\u0000"`,
		"nul-in-a-key":                 `{"a\u0000b":1}`,
		"half-a-character":             `"\ud800x"`,
		"not-utf-8":                    "\"a\xffb\"",
		"large-number":                 `9223372036854775807`,
		"very-large-number":            `1e300`,
		"small-number":                 `1.5e-300`,
		"emoji":                        `"\ud83d\ude00 ü \u2028"`,
		"html":                         `"<&>"`,
		"too-deep":                     strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
		"huge":                         `"` + strings.Repeat("0123456789abcdef", 3<<20/16) + `"`,
		"name'with\"odd\\characters%_": `1`,
		"system:controller:ünïcode":    `1`,
	}
	var events []informer.Event
	for name, field := range fields {
		events = append(events, raw(name, field))
	}
	require.NoError(t, write(t.Context(), here, events...))
	require.NoError(t, write(t.Context(), here, events[0]), "alone")
	require.NoError(t, write(t.Context(), here, events...), "the same again")

	found := objects(t, here)
	for name, field := range fields {
		var object unstructured.Unstructured
		require.NoError(t, utiljson.Unmarshal([]byte(textOf(name, field)), &object.Object), name)
		text, err := object.MarshalJSON()
		require.NoError(t, err)
		want := strings.TrimSpace(string(text))
		require.True(t, want == found["ns/"+name], "%s: %.200q, want %.200q", name, found["ns/"+name], want)
	}
	require.Len(t, found, len(fields))

	// Each can be found, and only those that are not what jsonb has have their text beside it.
	whole := query(t, address, `SELECT name FROM objects WHERE object -> 'metadata' ->> 'namespace' = 'ns' AND exact IS NULL`)
	require.Subset(t, whole, []string{"plain", "half-a-character", "not-utf-8", "huge", "emoji"})
	for _, name := range []string{"nul", "nul-in-a-key", "too-deep"} {
		require.NotContains(t, whole, name)
	}
	require.Equal(t, []string{"a\ufffdb\\u0000c\\\ufffdd"}, query(t, address, `SELECT object ->> 'field' FROM objects WHERE name = 'nul'`))
}

// What jsonb does not take may be refused for another reason, and a row that nothing takes is too.
func TestRowThatNothingTakes(t *testing.T) {
	t.Parallel()
	address := postgresAddress(t)
	here := opened(t, sqlsink.Config{Address: address}).Place("here", pods)
	query(t, address, `ALTER TABLE objects ADD CONSTRAINT not_this_one CHECK (name <> 'bad')`)
	odd := put("odd", "12")
	odd.ResourceVersion = "1\x002"
	for _, n := range []int{0, 30} {
		events := []informer.Event{raw("nul", `"\ud800\u0000"`), raw("bad", `"\ud800\u0000"`), odd, put("good", "13")}
		for i := range n {
			events = append(events, put(fmt.Sprint(i), "10"))
		}
		refused := refusedOf(t, write(t.Context(), here, events...))
		require.Len(t, refused, 2)
		require.ErrorContains(t, refused[1], `violates check constraint "not_this_one"`)
		require.EqualError(t, refused[2], `ERROR: invalid byte sequence for encoding "UTF8": 0x00 (SQLSTATE 22021)`)
		require.Len(t, stored(t, here), 2+n)
	}
}

// A batch of large objects is one transaction like any other.
func TestPostgresTakesALargeBatch(t *testing.T) {
	t.Parallel()
	address := postgresAddress(t)
	here := opened(t, sqlsink.Config{Address: address}).Place("here", pods)
	var events []informer.Event
	for i := range 500 {
		events = append(events, raw(fmt.Sprint("large-", i), `"`+strings.Repeat(fmt.Sprint(i, ","), 200_000/len(fmt.Sprint(i, ",")))+`"`))
	}
	require.NoError(t, write(t.Context(), here, events...))
	require.Len(t, stored(t, here), 500)
	require.Equal(t, []string{"500"}, query(t, address, `SELECT count(*) FROM objects WHERE length(object ->> 'field') > 199000`))
}

// A role, a database or an address may have a client_encoding of its own. Text that is not ASCII is
// stored as it is all the same.
func TestTextIsStoredInAnyClientEncoding(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"LATIN1", "WIN1252"} {
		t.Run(encoding, func(t *testing.T) {
			address := postgresAddress(t)
			psql(t, address, fmt.Sprintf(`SELECT format('ALTER DATABASE %%I SET client_encoding = ''%s''', current_database()) \gexec`, encoding))
			here := opened(t, sqlsink.Config{Address: address}).Place("c", pods)
			require.NoError(t, write(t.Context(), here, raw("a", `"ü€é"`)))
			require.Equal(t, "3", strings.TrimSpace(psql(t, address, `SELECT length(object->>'field') FROM objects`)), "characters")
			require.Contains(t, objects(t, here)["ns/a"], `"ü€é"`)
		})
	}
}

// An object is JSON also where the address has the driver ask the server for no types, and one batch is
// copied while the other is not.
func TestPostgresWithoutDescriptions(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"exec", "simple_protocol"} {
		here := opened(t, sqlsink.Config{Address: postgresAddress(t) + "&default_query_exec_mode=" + mode}).Place("here", pods)
		require.NoError(t, write(t.Context(), here, put("a", "10"), raw("nul", `"\u0000"`), raw("half-a-character", `"\ud800x"`)), mode)
		require.NoError(t, write(t.Context(), here, many(100)...), mode)
		require.Len(t, stored(t, here), 103)
		require.Len(t, objects(t, here), 103)
	}
}

// stagedBytes is the size of a temporary table of the one connection of a sink.
func stagedBytes(t *testing.T, address, table string) string {
	t.Helper()
	sizes := query(t, address, `SELECT pg_relation_size(oid) FROM pg_class WHERE relname = $1`, table)
	require.Len(t, sizes, 1)
	return sizes[0]
}

// A transaction that fails gives the space of its staged rows back. So do removals, whose rows have no
// objects.
func TestStagedRowsGiveTheirSpaceBack(t *testing.T) {
	t.Parallel()
	address := postgresAddress(t)
	here := opened(t, sqlsink.Config{Address: address + "&pool_max_conns=1"}).Place("here", pods)
	psql(t, address, `CREATE FUNCTION trouble() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'trouble' USING ERRCODE = '53100'; END $$;
		CREATE TRIGGER trouble BEFORE INSERT ON objects FOR EACH ROW EXECUTE FUNCTION trouble()`)
	for _, n := range []int{1, 100} {
		require.ErrorContains(t, write(t.Context(), here, many(n)...), "trouble")
		require.Equal(t, "0", stagedBytes(t, address, "staged_rows"))
	}
	failed := errors.New("failed")
	require.ErrorIs(t, here.Checkpoint().Save(t.Context(), func(w io.Writer) error {
		_, err := w.Write(make([]byte, 1<<20))
		return errors.Join(err, failed)
	}), failed)
	require.Equal(t, "0", stagedBytes(t, address, "staged_parts"))

	var removals []informer.Event
	for i := range 20_000 {
		removals = append(removals, gone(fmt.Sprint(i)))
	}
	var sizes []string
	for range 4 {
		require.NoError(t, write(t.Context(), here, removals...))
		sizes = append(sizes, stagedBytes(t, address, "staged_rows"))
	}
	require.Contains(t, sizes, "0")
	require.NotEqual(t, "0", sizes[0], "it is not each transaction that pays for it")
}
