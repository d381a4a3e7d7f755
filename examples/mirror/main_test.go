package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The demo, as a newcomer runs it: it ends by itself, and its database equals the servers.
func TestDemoOnce(t *testing.T) {
	to := newOutput()
	code := run(t.Context(), []string{"--demo", "--demo-objects=600", "--once"}, to.screen)

	require.Equal(t, exitOK, code, to)
	require.Contains(t, to.String(), "21 synced, 0 failed")
	require.Regexp(t, `verified: \d\d\d rows equal 3 servers`, to.String())
}

func TestDemoRemovesItsDatabase(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	to := newOutput()
	require.Equal(t, exitOK, run(t.Context(), []string{"--demo", "--demo-objects=30", "--once"}, to.screen), to)

	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestDemoKeepsANamedDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kept.db")
	to := newOutput()
	require.Equal(t, exitOK, run(t.Context(), []string{"--demo", "--demo-objects=30", "--once", "--db", path, "--resources=pods"}, to.screen), to)
	require.Contains(t, to.String(), "3 synced, 0 failed")
	require.FileExists(t, path)
}

// Without --once, the end of the context (SIGINT) is the ordinary end.
func TestDemoEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	to := newOutput()
	to.onLine("cordoba pods: synced", cancel)
	require.Equal(t, exitOK, run(ctx, []string{"--demo", "--demo-objects=300"}, to.screen), to)
	require.Empty(t, to.messages())
}

func TestMisuse(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--demo", "--context=a"}, "--demo brings its own clusters"},
		{[]string{"--demo", "--demo-objects=0"}, "--demo-objects 0: it must be positive"},
		{[]string{"--timeout=0s"}, "--timeout 0s: it must be positive"},
		{[]string{"--page-size=0"}, "--page-size 0: it must be positive"},
		{[]string{"pods"}, `unknown argument "pods"`},
		{[]string{"--unknown"}, "unknown flag: --unknown"},
	} {
		to := newOutput()
		require.Equal(t, exitMisused, run(t.Context(), tt.args, to.screen), tt.args)
		require.Contains(t, to.messages(), tt.want)
	}
}

func TestHelp(t *testing.T) {
	to := newOutput()
	require.Equal(t, exitOK, run(t.Context(), []string{"--help"}, to.screen))
	require.Contains(t, to.String(), "--resources")
}

func TestUnreachableConfiguration(t *testing.T) {
	dir := t.TempDir()
	to := newOutput()
	require.Equal(t, exitFailed, run(t.Context(), []string{"--kubeconfig", filepath.Join(dir, "none")}, to.screen))
	require.Contains(t, to.messages(), "kubeconfig: ")

	kubeconfig := writeKubeconfig(t, endpoint{name: "here", client: unreachable(t)})
	to = newOutput()
	require.Equal(t, exitFailed, run(t.Context(), []string{"--kubeconfig", kubeconfig, "--context=there"}, to.screen))
	require.Contains(t, to.messages(), "there")

	to = newOutput()
	require.Equal(t, exitFailed, run(t.Context(), []string{"--kubeconfig", kubeconfig, "--context=here", "--context=here"}, to.screen))
	require.Contains(t, to.messages(), "named twice")

	to = newOutput()
	require.Equal(t, exitFailed, run(t.Context(), []string{"--kubeconfig", kubeconfig, "--context=here", "--db", filepath.Join(dir, "no", "such", "dir.db")}, to.screen))
	require.Contains(t, to.messages(), "dir.db: ")
}
