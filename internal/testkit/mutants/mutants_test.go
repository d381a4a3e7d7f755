package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const original = `package p

func (q *queue) f(a, b int, s []int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if a == b || !q.ready && a < 3 {
		q.n++
		q.last = max(a, b)
	}
	for _, n := range s {
		if n == 0 {
			continue
		}
		q.add(n)
	}
	switch a {
	case 1, 2:
		return true
	}
	switch {
	case q.ready:
		q.sum += a - 1
	}
	return false
}
`

func TestMutate(t *testing.T) {
	mutants, err := mutate("q.go", []byte(original))
	require.NoError(t, err)
	var changes []string
	for _, m := range mutants {
		change, ok := strings.CutPrefix(m.id, "q.go f: ")
		require.True(t, ok, m.id)
		changes = append(changes, change)
		_, err := parser.ParseFile(token.NewFileSet(), "q.go", m.changed, 0)
		require.NoError(t, err, "%s makes\n%s", m.id, m.changed)
		require.NotEqual(t, original, string(m.changed), m.id)
	}
	require.Equal(t, []string{
		"without || !q.ready && a < 3",
		"without a == b ||",
		"a == b with !=",
		"without && a < 3",
		"without !q.ready &&",
		"q.ready for !q.ready",
		"a < 3 with <=",
		"without q.n++",
		"without q.last = max(a, b)",
		"min for max(a, b)",
		"never n == 0",
		"always n == 0",
		"break for continue",
		"without q.add(n)",
		"without case 1",
		"without case 2",
		"false for true",
		"never q.ready",
		"always q.ready",
		"without q.sum += a - 1",
		"a - 1 with +",
		"true for false",
	}, changes)
}

func TestMutantsOfTheSameChangeAreNumbered(t *testing.T) {
	mutants, err := mutate("p.go", []byte("package p\nfunc f() { g(); g() }\n"))
	require.NoError(t, err)
	require.Len(t, mutants, 2)
	require.Equal(t, "p.go f: without g()", mutants[0].id)
	require.Equal(t, "p.go f: without g() #2", mutants[1].id)
}

func TestSurvivors(t *testing.T) {
	for name, test := range map[string]struct {
		text  string
		known map[string]bool
		err   string
	}{
		"explained":        {text: "# comment\n\na.go f: never b\n\tBecause.\n\tReally.\nc.go g: without h()\n\tToo.\n", known: map[string]bool{"a.go f: never b": true, "c.go g: without h()": true}},
		"no explanation":   {text: "a.go f: never b\nc.go g: without h()\n\tToo.\n", err: `"a.go f: never b" has no explanation`},
		"none at the end":  {text: "a.go f: never b\n", err: `"a.go f: never b" has no explanation`},
		"nothing survives": {known: map[string]bool{}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "survivors.txt")
			require.NoError(t, os.WriteFile(path, []byte(test.text), 0o600))
			known, err := readSurvivors(path)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.known, known)
		})
	}
}
