package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/mirror/internal/clusters"
	"github.com/rvinformer/informer/mirror/internal/commandline"
	"github.com/rvinformer/informer/mirror/internal/demo"
	"github.com/rvinformer/informer/mirror/internal/mirrortest"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// soon is for how long a test waits for what comes within seconds on an idle machine.
const soon = 2 * time.Minute

// asMirror in the environment makes the test binary the mirror itself: it need not be built again.
const asMirror = "TEST_BINARY_IS_MIRROR"

func TestMain(m *testing.M) {
	if os.Getenv(asMirror) != "" {
		main()
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := mirrortest.StopPostgres(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
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
	to := mirrortest.NewOutput()
	code := run(t.Context(), []string{"--demo", "--demo-objects=600", "--once"}, to.Screen)

	require.Equal(t, exitOK, code, to)
	require.Contains(t, to.String(), "21 synced, 0 failed")
	require.Regexp(t, `verified: \d\d\d rows equal 3 servers`, to.String())
}

func TestDemoRemovesItsDatabase(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	to := mirrortest.NewOutput()
	require.Equal(t, exitOK, run(t.Context(), []string{"--demo", "--demo-objects=30", "--once"}, to.Screen), to)

	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, left)
	require.Regexp(t, `^mirroring 3 clusters into `+regexp.QuoteMeta(os.TempDir())+`/mirror-demo-\d+/mirror.db; its directory is removed at the end, and stays after a kill\n`, to)
}

// The end of the terminal is an orderly end, and leaves nothing behind.
func TestDemoRemovesItsDatabaseAtHangup(t *testing.T) {
	dir := t.TempDir()
	p := &process{out: mirrortest.NewOutput()}
	p.command = mirrorCommand("--demo", "--demo-objects=30")
	p.command.Env = append(p.command.Env, "TMPDIR="+dir)
	p.command.Stdout, p.command.Stderr = p.out.Streams()
	running := make(chan struct{})
	p.out.When(allSynced, func() { close(running) })
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
	return strings.Count(all, ": synced in ") == len(demo.Names())*len(demo.Kinds())
}

func TestDemoKeepsANamedDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kept.db")
	to := mirrortest.NewOutput()
	require.Equal(t, exitOK, run(t.Context(), []string{"--demo", "--demo-objects=30", "--once", "--db", path, "--resources=pods"}, to.Screen), to)
	require.Contains(t, to.String(), "3 synced, 0 failed")
	require.FileExists(t, path)
}

// Without --once, the end of the context (SIGINT) is the ordinary end.
func TestDemoEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	to := mirrortest.NewOutput()
	to.When(allSynced, cancel)
	require.Equal(t, exitOK, run(ctx, []string{"--demo", "--demo-objects=300"}, to.Screen), to)
	require.Empty(t, to.Messages())
}

var forbidSecrets = informertest.Fault{
	Match:  informertest.Match{Resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}},
	Effect: informertest.Status(http.StatusForbidden),
}

// Whoever stops a mirror before it was complete is told by its exit code.
func TestInterruptedBeforeItIsSynced(t *testing.T) {
	c := mirrortest.NewCluster(t, "here", 100, informertest.Options{})
	c.Server.Inject(forbidSecrets)
	ctx, cancel := context.WithCancel(t.Context())
	to := mirrortest.NewOutput()
	to.When(func(all string) bool {
		return mirrortest.Has("here widgets.example.com: synced")(all) && mirrortest.Has("secrets: 403 Forbidden")(all)
	}, cancel)
	args := []string{"--kubeconfig", mirrortest.Kubeconfig(t, c.Endpoint()), "--resources=*", "--db", filepath.Join(t.TempDir(), "mirror.db")}
	require.Equal(t, exitFailed, run(ctx, args, to.Screen), to)
	require.Regexp(t, `mirror: here secrets: 403 Forbidden: 403 by an injected fault; tried again within a minute\n`, to.Messages())
	require.Contains(t, to.Messages(), "mirror: here secrets: not synced: 403 Forbidden")
}

// A server that cannot be reached is asked again. The mirror says when, and waits.
func TestUnreachableServer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	to := mirrortest.NewOutput()
	to.When(mirrortest.Has("connection refused"), cancel)
	path := filepath.Join(t.TempDir(), "mirror.db")
	args := []string{"--kubeconfig", mirrortest.Kubeconfig(t, clusters.Endpoint{Name: "gone", Client: mirrortest.Unreachable(t)}), "--db", path}
	require.Equal(t, exitFailed, run(ctx, args, to.Screen), to)
	require.Regexp(t, `^mirroring 1 cluster into `+regexp.QuoteMeta(path)+`\n`, to)
	require.Regexp(t, `mirror: gone: .*connection refused; tried again within a minute\n`, to.Messages())
	require.Regexp(t, `mirror: gone: not synced: .*connection refused\n$`, to.Messages())
}

// A resource that no cluster has leaves nothing to do: nothing is waited for, and nothing verified.
func TestUnknownResource(t *testing.T) {
	for _, args := range [][]string{{"--once"}, nil} {
		to := mirrortest.NewOutput()
		args = append(args, "--demo", "--demo-objects=30", "--resources=podz")
		require.Equal(t, exitFailed, run(t.Context(), args, to.Screen), to)
		require.Contains(t, to.Messages(), "mirror: demo-berlin: the cluster has no resource podz that can be listed and watched; tried again within a minute\n")
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
		{[]string{"--db=host=h password=secret"}, "--db: it is the file of a SQLite database: the address of a PostgreSQL database goes to --database"},
		{[]string{"--db= password = secret"}, "--db: it is the file of a SQLite database"},
		{[]string{"--db=sqlite:host=h password=secret"}, "--db: it is the file of a SQLite database"},
		{[]string{"--db=:memory:"}, "--db: a SQLite database in memory has one connection"},
		{[]string{"--database=sqlite::memory:"}, "--database: a SQLite database in memory has one connection"},
		{[]string{"--database=host=h dbname='postgres://me:secret@host/db'"}, "--database: the address cannot be read"},
		{[]string{"--demo", "postgres://me:secret@host/db"}, "unknown argument: the address of a database goes to --database"},
		{[]string{"--database", "host=h", "password=secret"}, "unknown argument: the address of a database goes to --database"},
	} {
		to := mirrortest.NewOutput()
		require.Equal(t, exitMisused, run(t.Context(), tt.args, to.Screen), tt.args)
		require.Contains(t, to.Messages(), tt.want)
		require.NotContains(t, to.String(), "secret")
	}
}

func TestHelp(t *testing.T) {
	to := mirrortest.NewOutput()
	require.Equal(t, exitOK, run(t.Context(), []string{"--help"}, to.Screen))
	require.Contains(t, to.String(), "--resources")
}

func TestUnreachableConfiguration(t *testing.T) {
	dir := t.TempDir()
	to := mirrortest.NewOutput()
	require.Equal(t, exitFailed, run(t.Context(), []string{"--kubeconfig", filepath.Join(dir, "none")}, to.Screen))
	require.Contains(t, to.Messages(), "kubeconfig: ")

	kubeconfig := mirrortest.Kubeconfig(t, clusters.Endpoint{Name: "here", Client: mirrortest.Unreachable(t)})
	to = mirrortest.NewOutput()
	require.Equal(t, exitFailed, run(t.Context(), []string{"--kubeconfig", kubeconfig, "--context=there"}, to.Screen))
	require.Contains(t, to.Messages(), "there")

	to = mirrortest.NewOutput()
	require.Equal(t, exitFailed, run(t.Context(), []string{"--kubeconfig", kubeconfig, "--context=here", "--context=here"}, to.Screen))
	require.Contains(t, to.Messages(), "named twice")

	to = mirrortest.NewOutput()
	require.Equal(t, exitFailed, run(t.Context(), []string{"--kubeconfig", kubeconfig, "--context=here", "--db", filepath.Join(dir, "no", "such", "dir.db")}, to.Screen))
	require.Contains(t, to.Messages(), "dir.db: ")
}

// Secrets are mirrored if they are named, and not else.
func TestSecretsAreLeftOutUnlessNamed(t *testing.T) {
	t.Parallel()
	c := mirrortest.NewCluster(t, "here", 100, informertest.Options{})
	kubeconfig := mirrortest.Kubeconfig(t, c.Endpoint())
	for named, want := range map[string]bool{"": false, "--resources=pods": false, "--resources=secrets": true, "--resources=*": true} {
		to := mirrortest.NewOutput()
		args := []string{"--once", "--kubeconfig", kubeconfig, "--db", filepath.Join(t.TempDir(), "mirror.db")}
		if named != "" {
			args = append(args, named)
		}
		require.Equal(t, exitOK, run(t.Context(), args, to.Screen), to)
		require.Equal(t, want, strings.Contains(to.String(), "secrets"), "%s: %s", named, to)
	}
}

// A file of an earlier run has Secrets. They stay, nothing waits for them, and it is said.
func TestSecretsOfAnEarlierRunStay(t *testing.T) {
	t.Parallel()
	c := mirrortest.NewCluster(t, "here", 100, informertest.Options{})
	path := filepath.Join(t.TempDir(), "mirror.db")
	args := []string{"--once", "--timeout=10s", "--kubeconfig", mirrortest.Kubeconfig(t, c.Endpoint()), "--db", path}
	require.Equal(t, exitOK, run(t.Context(), append(args, "--resources=*"), mirrortest.NewOutput().Screen))
	to := mirrortest.NewOutput()
	require.Equal(t, exitOK, run(t.Context(), args, to.Screen), to)
	require.Contains(t, to.Messages(), "here: the database has Secrets of an earlier run, which are not followed")
	c.Equal(t, mirrortest.Open(t, sqlsink.Config{Address: commandline.SQLite + path}))
}

// A file has one mirror, and the message of the second says what it may be.
func TestFileHasOneMirror(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mirror.db")
	_ = mirrortest.Open(t, sqlsink.Config{Address: commandline.SQLite + path})
	to := mirrortest.NewOutput()
	args := []string{"--once", "--kubeconfig", mirrortest.Kubeconfig(t, clusters.Endpoint{Name: "here", Client: mirrortest.Unreachable(t)}), "--db", path}
	require.Equal(t, exitFailed, run(t.Context(), args, to.Screen))
	require.Contains(t, to.Messages(), "another writer has it; end the one that has opened it before; it may be another mirror")
}

// With --once, what is refused and what is down is reported, and the rest is done.
func TestOnceReportsWhatFailed(t *testing.T) {
	t.Parallel()
	c := mirrortest.NewCluster(t, "here", 200, informertest.Options{})
	c.Server.Inject(forbidSecrets)
	kubeconfig := mirrortest.Kubeconfig(t, c.Endpoint(), clusters.Endpoint{Name: "gone", Client: mirrortest.Unreachable(t)})
	path := filepath.Join(t.TempDir(), "mirror.db")
	to := mirrortest.NewOutput()
	args := []string{"--once", "--kubeconfig", kubeconfig, "--context=here", "--context=gone", "--resources=*", "--db", path, "--timeout=30s"}

	require.Equal(t, exitFailed, run(t.Context(), args, to.Screen), to)
	require.Contains(t, to.String(), "6 synced, 2 failed")
	require.Regexp(t, `here +secrets .*FAILED: 403 Forbidden: 403 by an injected fault`, to.String())
	require.Regexp(t, `gone +\(discovery\) .*FAILED: .*connection refused`, to.String())
	require.Contains(t, to.Messages(), "here secrets: 403 Forbidden")
	require.Contains(t, to.Messages(), "mirror: not reached: gone\n")

	db := mirrortest.Open(t, sqlsink.Config{Address: commandline.SQLite + path})
	c.Equal(t, db, mirrortest.Pods, mirrortest.ConfigMaps, mirrortest.Widgets)
}

// With --once, an unknown resource is one failure among others.
func TestOnceReportsAnUnknownResource(t *testing.T) {
	t.Parallel()
	c := mirrortest.NewCluster(t, "here", 100, informertest.Options{})
	to := mirrortest.NewOutput()
	args := []string{"--once", "--kubeconfig", mirrortest.Kubeconfig(t, c.Endpoint()), "--resources=pods,gadgets.example.com",
		"--db", filepath.Join(t.TempDir(), "mirror.db")}
	require.Equal(t, exitFailed, run(t.Context(), args, to.Screen), to)
	require.Contains(t, to.String(), "the cluster has no resource gadgets.example.com that can be listed and watched")
	require.Contains(t, to.String(), "1 synced, 1 failed")
}

// The demo with PostgreSQL, as a newcomer runs it: its database equals the servers, and so it does
// when other clusters have come under the same names.
func TestDemoWithPostgres(t *testing.T) {
	t.Parallel()
	address := mirrortest.NewPostgres(t)
	for range 2 {
		to := mirrortest.NewOutput()
		require.Equal(t, exitOK, run(t.Context(), []string{"--demo", "--demo-objects=600", "--once", "--database", address}, to.Screen), to)
		require.Contains(t, to.String(), "21 synced, 0 failed")
		require.Regexp(t, `verified: \d\d\d rows equal 3 servers`, to.String())
	}
}

func TestDatabaseFlag(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/kept.db"
	to := mirrortest.NewOutput()
	require.Equal(t, exitOK, run(t.Context(), []string{"--demo", "--demo-objects=30", "--once", "--database", "sqlite:" + path}, to.Screen), to)
	require.FileExists(t, path)
	for _, tt := range []struct{ args, want string }{
		{"--db=a --database=sqlite:b", "--db and --database: there is one database"},
		{"--database=somewhere", "--database: the address is none of a database: it must be like postgres://user@host:5432/name"},
		{"--database=", "--database: the address is none of a database"},
		{"--database=sqlite:", "--database: the address is none of a database"},
		{"--database=postgres://host:port/db", "--database: the address cannot be read as that of a PostgreSQL database"},
	} {
		to := mirrortest.NewOutput()
		require.Equal(t, exitMisused, run(t.Context(), strings.Fields(tt.args), to.Screen), tt.args)
		require.Contains(t, to.Messages(), tt.want)
	}
}
