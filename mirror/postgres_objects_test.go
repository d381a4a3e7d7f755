package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// objectOf is an object with a field that has a text of JSON.
func objectOf(name, field string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"ns"},"field":%s}`, name, field)
}

// Whatever an object has in it, it is kept as Go reads it, and can be found by its fields. What
// jsonb does not take does not keep the others of its batch away.
func TestPostgresKeepsEveryObject(t *testing.T) {
	t.Parallel()
	address := newPostgresAddress(t)
	server, err := sharedPostgres()
	require.NoError(t, err)
	config, _, err := parseAddress(address)
	require.NoError(t, err)
	name := config.ConnConfig.Database
	server.Query(t, name, "ALTER DATABASE "+name+" SET max_stack_depth = '200kB'") // a tenth of the default
	db := openTestPostgres(t, address, true)
	here := place{cluster: "a'b\"c\\d%e", resource: pods}
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
	var changes []change
	for name, field := range fields {
		c := put(here, "ns", name, "uid-"+name, "10")
		c.object = objectOf(name, field)
		changes = append(changes, c)
	}
	require.NoError(t, db.Apply(t.Context(), changes))
	require.NoError(t, db.Apply(t.Context(), changes), "the same again")

	want := make(map[string]string)
	for name, field := range fields {
		var object unstructured.Unstructured
		require.NoError(t, utiljson.Unmarshal([]byte(objectOf(name, field)), &object.Object), name)
		text, err := encode(&object)
		require.NoError(t, err)
		want[name] = text
	}
	found := make(map[string]string)
	require.NoError(t, db.Objects(t.Context(), here, func(c change) error {
		found[c.name] = c.object
		return nil
	}))
	for name := range want {
		require.True(t, want[name] == found[name], "%s: %.200q, want %.200q", name, found[name], want[name])
	}
	require.Len(t, found, len(want))

	// Each can be found, and only those that are not what jsonb has have their text beside it.
	rows, err := db.pool.Query(t.Context(), `SELECT name FROM objects WHERE object -> 'metadata' ->> 'namespace' = 'ns' AND exact IS NULL`)
	require.NoError(t, err)
	defer rows.Close()
	whole := make(map[string]bool)
	for rows.Next() {
		var name string
		require.NoError(t, rows.Scan(&name))
		whole[name] = true
	}
	require.NoError(t, rows.Err())
	for _, name := range []string{"plain", "half-a-character", "not-utf-8", "huge", "emoji"} {
		require.True(t, whole[name], name)
	}
	for _, name := range []string{"nul", "nul-in-a-key", "too-deep"} {
		require.False(t, whole[name], name)
	}
	var replaced string
	require.NoError(t, db.pool.QueryRow(t.Context(), `SELECT object ->> 'field' FROM objects WHERE name = 'nul'`).Scan(&replaced))
	require.Equal(t, "a\ufffdb\\u0000c\\\ufffdd", replaced)
}

// A batch of large objects is one transaction like any other.
func TestPostgresTakesALargeBatch(t *testing.T) {
	t.Parallel()
	db := openTestPostgres(t, newPostgresAddress(t), true)
	here := place{cluster: "here", resource: pods}
	var changes []change
	for i := range 500 {
		name := fmt.Sprint("large-", i)
		c := put(here, "ns", name, "uid-"+name, "10")
		c.object = objectOf(name, `"`+strings.Repeat(fmt.Sprint(i, ","), 200_000/len(fmt.Sprint(i, ",")))+`"`)
		changes = append(changes, c)
	}
	require.NoError(t, db.Apply(t.Context(), changes))
	require.Len(t, seeded(t, db, here), 500)
	var bytes int64
	require.NoError(t, db.pool.QueryRow(t.Context(), `SELECT sum(length(object ->> 'field')) FROM objects`).Scan(&bytes))
	require.Greater(t, bytes, int64(499*200_000))
}
