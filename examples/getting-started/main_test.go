package main

import (
	"bufio"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer/informertest"
)

// The test runs itself as the program, in a process of its own.
func TestMain(m *testing.M) {
	if os.Getenv("RUN_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// A pod that is to end gets SIGTERM: the program ends in order.
func TestProgramEndsInOrderAtSIGTERM(t *testing.T) {
	program := exec.Command(os.Args[0])
	program.Dir, program.Env = t.TempDir(), append(os.Environ(), "RUN_MAIN=1")
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

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// The program of docs/getting-started.md mirrors a simulated cluster. When it starts again, it goes
// on without a list.
func TestMirrorGoesOnWhereItStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := informertest.NewServer(informertest.Options{InMemory: true})
		defer server.Close()
		dir := filepath.Join(t.TempDir(), "mirror")
		create(t, server, "stays", "goes")

		run(t, server, dir, func() {
			create(t, server, "comes")
		})
		require.ElementsMatch(t, []string{"default/stays.json", "default/goes.json", "default/comes.json"}, files(t, dir))
		text, err := os.ReadFile(filepath.Join(dir, "default/stays.json"))
		require.NoError(t, err)
		require.Contains(t, string(text), `"name":"stays"`)

		require.NoError(t, server.Delete(configMaps, "default", "goes"))
		create(t, server, "missed")
		server.ResetRequests()
		run(t, server, dir, func() {})
		require.ElementsMatch(t, []string{"default/stays.json", "default/comes.json", "default/missed.json"}, files(t, dir))
		for _, r := range server.Requests() {
			if r.GroupVersionResource == configMaps && r.Options.Limit != 1 { // a question for one object is no list
				require.Equal(t, "watch", r.Verb)
				require.Nil(t, r.Options.SendInitialEvents)
			}
		}
	})
}

// run runs the program for a minute of virtual time, with changes in the middle.
func run(t *testing.T, server *informertest.Server, dir string, changes func()) {
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- mirror(ctx, server.Config(), dir) }()
	time.Sleep(30 * time.Second)
	changes()
	time.Sleep(30 * time.Second)
	stop()
	require.NoError(t, <-ended)
}

func create(t *testing.T, server *informertest.Server, names ...string) {
	for _, name := range names {
		_, err := server.Create(configMaps, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Data:       map[string]string{"key": "value"},
		})
		require.NoError(t, err)
	}
}

func files(t *testing.T, dir string) (paths []string) {
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	require.NoError(t, err)
	return paths
}
