package intern_test

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rvinformer/informer/internal/leaf/intern"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStringsAreShared(t *testing.T) {
	table := &intern.Table{}
	require.Equal(t, "a", table.String([]byte("a")), "comes once")
	second := table.String([]byte("a"))
	for i := range 100_000 { // that come once push it out hardly ever
		text := fmt.Sprint("once ", i)
		require.Equal(t, text, table.String([]byte(text)))
	}
	require.Equal(t, "", table.String(nil))
	content := []byte("b")
	for range 100 { // until chance has it remembered
		table.String(content)
	}
	b := table.String(content)
	content[0] = 'c'
	require.Equal(t, "b", b, "has memory of its own")
	require.Equal(t, "a", second)
	require.Same(t, unsafe.StringData(b), unsafe.StringData(table.String([]byte("b"))))
	long := []byte(strings.Repeat("x", 129))
	table.String(long)
	require.NotSame(t, unsafe.StringData(table.String(long)), unsafe.StringData(table.String(long)))
}

func TestNilTableRemembersNothing(t *testing.T) {
	var table *intern.Table
	for range 2 {
		require.Equal(t, "a", table.String([]byte("a")))
	}
}

func TestRepeatedStringsAreNotAllocated(t *testing.T) {
	table := &intern.Table{}
	content := []byte("pod-template-hash")
	table.String(content)
	table.String(content)
	require.Zero(t, testing.AllocsPerRun(100, func() { table.String(content) }))
}

// A table grows with what comes again, up to its bound, and knows what it knew.
func TestTableGrows(t *testing.T) {
	table := &intern.Table{}
	text := func(i int) []byte { return []byte(fmt.Sprint("text ", i)) }
	for n := range 3000 {
		for range 2 {
			require.Equal(t, string(text(n)), table.String(text(n)))
		}
	}
	shared := 0
	for n := range 3000 {
		first := table.String(text(n))
		require.Equal(t, string(text(n)), first)
		if unsafe.StringData(first) == unsafe.StringData(table.String(text(n))) {
			shared++
		}
	}
	require.Greater(t, shared, 100, "more than it had slots for")
	require.LessOrEqual(t, shared, 2048)
}
