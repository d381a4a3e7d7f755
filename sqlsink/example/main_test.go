package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/sqlsink/pgtest"
)

// The test runs itself as the program, in a process of its own.
func TestMain(m *testing.M) {
	if os.Getenv("RUN_MAIN") != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// A pod that is to end gets SIGTERM: the program ends in order.
func TestProgramEndsInOrderAtSIGTERM(t *testing.T) {
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), "RUN_MAIN=1", "DATABASE=sqlite:"+filepath.Join(t.TempDir(), "pods.db"))
	log, err := program.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, program.Start())
	defer func() { _ = program.Process.Kill() }()
	lines := bufio.NewScanner(log)
	require.True(t, lines.Scan()) // it runs, and says that there is no kubectl proxy
	require.NoError(t, program.Process.Signal(syscall.SIGTERM))
	for lines.Scan() {
	}
	require.NoError(t, program.Wait())
}

// pods are what the program follows.
var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// The program of docs/sqlsink.md follows a simulated cluster. When it starts again, it
// goes on without a list.
func TestProgramGoesOnWhereItStopped(t *testing.T) {
	database := pgtest.Start(t)
	address := database.NewDatabase(t)
	cluster := informertest.NewServer(informertest.Options{})
	defer cluster.Close()
	create(t, cluster, "stays", "goes")
	const rows = `SELECT string_agg(concat_ws(' ', cluster, name, node, app, extract(epoch FROM created) > 0), ', ' ORDER BY name) FROM objects`
	reaches := func(want string) {
		t.Helper()
		require.Eventually(t, func() bool { return database.Query(t, "test1", rows) == want }, time.Minute, 10*time.Millisecond, want)
	}
	// The tables are there once it is open.
	stop := run(t, cluster.Config(), address)
	require.Eventually(t, func() bool {
		return database.Query(t, "test1", `SELECT to_regclass('mirror_writes') IS NOT NULL`) == "t"
	}, time.Minute, 10*time.Millisecond)
	reaches("production goes n1 shop t, production stays n1 shop t")
	create(t, cluster, "comes")
	reaches("production comes n1 shop t, production goes n1 shop t, production stays n1 shop t")
	stop()

	require.NoError(t, cluster.Delete(pods, "default", "goes"))
	create(t, cluster, "missed")
	cluster.ResetRequests()
	stop = run(t, cluster.Config(), address)
	reaches("production comes n1 shop t, production missed n1 shop t, production stays n1 shop t")
	stop()
	for _, r := range cluster.Requests() {
		if r.GroupVersionResource == pods && r.Options.Limit != 1 { // a question for one object is no list
			require.Equal(t, "watch", r.Verb)
			require.Nil(t, r.Options.SendInitialEvents)
		}
	}
}

// A database that is away when the program starts ends it with the reason.
func TestProgramSaysThatThereIsNoDatabase(t *testing.T) {
	err := follow(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}, "postgres://127.0.0.1:1/none?user=me")
	require.ErrorContains(t, err, "database postgres://me@127.0.0.1:1/none: ")
	require.True(t, errors.Is(err, syscall.ECONNREFUSED), err)
}

// run runs the program until stop is called.
func run(t *testing.T, config *rest.Config, address string) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- follow(ctx, config, address) }()
	return func() {
		cancel()
		require.NoError(t, <-ended)
	}
}

func create(t *testing.T, cluster *informertest.Server, names ...string) {
	for _, name := range names {
		_, err := cluster.Create(pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, CreationTimestamp: metav1.Now(),
				Labels: map[string]string{"app.kubernetes.io/name": "shop"}},
			Spec: corev1.PodSpec{NodeName: "n1"},
		})
		require.NoError(t, err)
	}
}
