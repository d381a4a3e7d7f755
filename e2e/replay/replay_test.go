package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// number is that of an environment variable, if it has one.
func number(variable string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return otherwise
}

// shared is the machine of all tests, since compiling it takes half a minute.
var shared = sync.OnceValues(func() (*machine, error) {
	dir, err := informerDir(context.Background())
	if err != nil {
		return nil, err
	}
	return newMachine(context.Background(), dir)
})

// twice plays a test twice, and returns what it has printed. Both plays are the same.
func twice(t *testing.T, m *machine, test string, vars variables) (output []byte, err error) {
	t.Helper()
	var outputs [2]bytes.Buffer
	for i := range outputs {
		err = m.play(t.Context(), test, vars, &outputs[i])
	}
	require.Contains(t, outputs[0].String(), "=== RUN   "+test)
	require.Empty(t, firstDifference(outputs[0].Bytes(), outputs[1].Bytes()), vars)
	return outputs[0].Bytes(), err
}

// A random day depends on its number alone. INFORMER_DAYS sets how many are played twice, and
// INFORMER_TORTURE_FROM the first.
func TestDayHasSameHistoryEachTime(t *testing.T) {
	m, err := shared()
	require.NoError(t, err)
	days, from := number("INFORMER_DAYS", 2), number("INFORMER_TORTURE_FROM", 1)
	var equal atomic.Int64
	t.Cleanup(func() { t.Logf("%d of %d days are equal", equal.Load(), days) })
	for day := from; day < from+days; day++ {
		t.Run(fmt.Sprint("day=", day), func(t *testing.T) {
			t.Parallel()
			vars := variables{"INFORMER_DAY": fmt.Sprint(day), "INFORMER_HISTORY": "1"}
			output, err := twice(t, m, "TestThisDay", vars)
			equal.Add(1)
			require.NoError(t, err, "%s go run -C e2e ./replay\n%s", vars, lastOf(output))
		})
	}
}

// lastOf is the end of an output, where the failure is.
func lastOf(output []byte) []byte { return output[max(0, len(output)-4<<10):] }

const failing = `fill 20
informer list=auto
start
churn 50 every=500ms seed=1
disconnect
settle
expect calls=0
`

func TestFailureOfAScriptIsReplayed(t *testing.T) {
	m, err := shared()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "failing.txt")
	require.NoError(t, os.WriteFile(file, []byte(failing), 0o600))
	play := func(seed string) []byte {
		output, err := twice(t, m, "TestThisScript", variables{"INFORMER_SCRIPT": file, "INFORMER_SEED": seed, "INFORMER_HISTORY": "1"})
		require.ErrorContains(t, err, "TestThisScript fails")
		require.Contains(t, string(output), `"expect calls=0"`)
		return output
	}
	require.NotEqual(t, play("1"), play("2"))
}
