package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/rvinformer/informer/informertest"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// asMirror in the environment makes the test binary the mirror itself: it need not be built again.
const asMirror = "TEST_BINARY_IS_MIRROR"

func TestMain(m *testing.M) {
	if os.Getenv(asMirror) != "" {
		main()
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if server, err := sharedPostgres(); err == nil {
			err = server.Stop()
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}
		os.Exit(code)
	}))
}

// mirrorCommand returns a command that runs the mirror in a process of its own.
func mirrorCommand(arguments ...string) *exec.Cmd {
	command := exec.Command(os.Args[0], arguments...)
	command.Env = append(os.Environ(), asMirror+"=yes")
	return command
}

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
	require.Regexp(t, `^mirroring 3 clusters into `+regexp.QuoteMeta(os.TempDir())+`/mirror-demo-\d+/mirror.db; its directory is removed at the end, and stays after a kill\n`, to)
}

// The end of the terminal is an orderly end, and leaves nothing behind.
func TestDemoRemovesItsDatabaseAtHangup(t *testing.T) {
	dir := t.TempDir()
	p := &process{out: newOutput()}
	p.command = mirrorCommand("--demo", "--demo-objects=30")
	p.command.Env = append(p.command.Env, "TMPDIR="+dir)
	p.command.Stdout, p.command.Stderr = p.out.screen.out, p.out.screen.errs
	running := make(chan struct{})
	p.out.when(allSynced, func() { close(running) })
	// A signal that nohup has this process ignore would be ignored by the mirror as well.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	require.NoError(t, p.command.Start())
	<-running
	require.NoError(t, p.command.Process.Signal(syscall.SIGHUP))
	require.NoError(t, p.command.Wait(), p.out)

	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// allSynced matches the output of a demo whose resources are all synced.
func allSynced(all string) bool {
	return strings.Count(all, ": synced in ") == len(demoNames())*len(demoKinds())
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
	to.when(allSynced, cancel)
	require.Equal(t, exitOK, run(ctx, []string{"--demo", "--demo-objects=300"}, to.screen), to)
	require.Empty(t, to.messages())
}

// Whoever stops a mirror before it was complete is told by its exit code.
func TestInterruptedBeforeItIsSynced(t *testing.T) {
	c := newTestCluster(t, "here", 100, informertest.Options{Wrap: forbid("secrets")})
	ctx, cancel := context.WithCancel(t.Context())
	to := newOutput()
	to.when(func(all string) bool {
		return has("here widgets.example.com: synced")(all) && has("secrets: 403 Forbidden")(all)
	}, cancel)
	args := []string{"--kubeconfig", writeKubeconfig(t, c.endpoint()), "--db", filepath.Join(t.TempDir(), "mirror.db")}
	require.Equal(t, exitFailed, run(ctx, args, to.screen), to)
	require.Regexp(t, `mirror: here secrets: 403 Forbidden: secrets is forbidden: not for you; tried again within a minute\n`, to.messages())
	require.Contains(t, to.messages(), "mirror: here secrets: not synced: 403 Forbidden")
}

// A server that cannot be reached is asked again. The mirror says when, and waits.
func TestUnreachableServer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	to := newOutput()
	to.when(has("connection refused"), cancel)
	path := filepath.Join(t.TempDir(), "mirror.db")
	args := []string{"--kubeconfig", writeKubeconfig(t, endpoint{"gone", unreachable(t)}), "--db", path}
	require.Equal(t, exitFailed, run(ctx, args, to.screen), to)
	require.Regexp(t, `^mirroring 1 cluster into `+regexp.QuoteMeta(path)+`\n`, to)
	require.Regexp(t, `mirror: gone: .*connection refused; asked again in [\d.]+m?s\n`, to.messages())
	require.Regexp(t, `mirror: gone: not synced: .*connection refused\n$`, to.messages())
}

// A resource that no cluster has leaves nothing to do: nothing is waited for, and nothing verified.
func TestUnknownResource(t *testing.T) {
	for _, args := range [][]string{{"--once"}, nil} {
		to := newOutput()
		args = append(args, "--demo", "--demo-objects=30", "--resources=podz")
		require.Equal(t, exitFailed, run(t.Context(), args, to.screen), to)
		require.Contains(t, to.messages(), "mirror: demo-berlin: --resources podz: the cluster has no such resource\n")
		require.NotContains(t, to.String(), "verified")
	}
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
		{[]string{"--db=postgres://me:secret@host/db"}, "--db: it is the file of a SQLite database: the address of a PostgreSQL database goes to --database"},
		{[]string{"--demo", "postgres://me:secret@host/db"}, "unknown argument: the address of a database goes to --database"},
		{[]string{"--database", "host=h", "password=secret"}, "unknown argument: the address of a database goes to --database"},
	} {
		to := newOutput()
		require.Equal(t, exitMisused, run(t.Context(), tt.args, to.screen), tt.args)
		require.Contains(t, to.messages(), tt.want)
		require.NotContains(t, to.String(), "secret")
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
