package fieldpath_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/internal/leaf/fieldpath"
)

func TestSplit(t *testing.T) {
	for path, names := range map[string][]string{
		"":               {""},
		"a":              {"a"},
		"a.b":            {"a", "b"},
		`a\.b.c`:         {"a.b", "c"},
		`a\.b\.c`:        {"a.b.c"},
		"a..b":           {"a", "", "b"},
		".a":             {"", "a"},
		"a.":             {"a", ""},
		`a\.`:            {"a."},
		`\.a`:            {".a"},
		`a\`:             {`a\`},
		`a\b.c`:          {`a\b`, "c"},
		`a\..b`:          {"a.", "b"},
		`é.a\.b/c`:       {"é", "a.b/c"},
		`a\\.b`:          {`a\.b`},
		`a.b\.c\.d/e.f.`: {"a", "b.c.d/e", "f", ""},
	} {
		require.Equal(t, names, fieldpath.Split(path), path)
		valid := true
		for _, name := range names {
			valid = valid && name != ""
		}
		require.Equal(t, valid, fieldpath.Valid(path), path)
	}
}

func FuzzMatches(f *testing.F) {
	f.Add(`a\.b.c`, "a.b")
	f.Add(`a\.b`, `a\.b`)
	f.Add("a", "a")
	f.Add(`\..\.`, ".")
	f.Fuzz(func(t *testing.T, path, key string) {
		names := fieldpath.Split(path)
		if !strings.Contains(path, `\`) {
			require.Equal(t, strings.Split(path, "."), names)
			require.Equal(t, path, fieldpath.Join(names))
		}
		for i, more := 0, true; more; i++ {
			var name string
			name, path, more = fieldpath.Cut(path)
			require.Equal(t, names[i], fieldpath.Unescape(name))
			require.True(t, fieldpath.Matches(name, []byte(names[i])))
			require.Equal(t, names[i] == key, fieldpath.Matches(name, []byte(key)))
		}
	})
}
