package mirror

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// clockAhead is the environment variable that says by how many seconds the clock of a program is
// ahead that was built with the clockOverlay. Its monotonic clock, by which it waits, goes as any
// other.
const clockAhead = "E2E_CLOCK_AHEAD"

const secondsAhead = `package time

import "syscall"

var secondsAhead = func() (n int64) {
	text, _ := syscall.Getenv("` + clockAhead + `")
	for _, digit := range []byte(text) {
		n = 10*n + int64(digit-'0')
	}
	return n
}()
`

// clockOverlay writes an overlay for go build in which time.Now obeys clockAhead, and returns its
// path.
func clockOverlay(t *testing.T) string {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	require.NoError(t, err)
	dir, original := t.TempDir(), filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	text, err := os.ReadFile(filepath.Join(original, "time.go"))
	require.NoError(t, err)
	const now = "\nfunc Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	require.Contains(t, string(text), now, "this version of Go has another time.Now")

	replace := map[string]string{}
	for name, text := range map[string]string{
		"time.go":  strings.Replace(string(text), now, now+"\tsec += secondsAhead\n", 1),
		"ahead.go": secondsAhead,
	} {
		replace[filepath.Join(original, name)] = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	require.NoError(t, err)
	path := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(path, overlay, 0o600))
	return path
}
