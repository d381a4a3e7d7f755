package checkpoints_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

const intervalVariable = "INFORMER_TEST_INTERVAL"

// A process that follows a server with a FileCheckpoint is killed (SIGKILL) at any
// moment, again and again. What it has written down of all that it was told is in the end
// what the server has, and nothing was listed twice; where the server forgets what happened
// while no process runs, a list tells what is gone.
func TestAProcessWithACheckpointIsKilled(t *testing.T) {
	for name, forgets := range map[string]bool{"remembered": false, "forgotten": true} {
		t.Run(name, func(t *testing.T) { testKilledProcess(t, forgets) })
	}
}

func testKilledProcess(t *testing.T, forgets bool) {
	w := &harness.World{T: t, Server: informertest.NewServer(informertest.Options{})}
	defer w.Close()
	w.CreateKubeSystem() // the few objects by which the server is known otherwise may all be deleted while no process runs
	random := rand.New(rand.NewPCG(rand.Uint64(), 1))
	f := &harness.Faults{World: w, Dice: harness.Dice{Rand: random}}
	for range 30 {
		f.Touch()
	}
	harness.PassServer(t, w.Config())
	if forgets { // the journal has what no save has
		t.Setenv(intervalVariable, "1h")
	}
	path := filepath.Join(t.TempDir(), "pods")
	saved := func() bool { // and not only a part of the list
		content, err := os.ReadFile(path)
		return err == nil && harness.ReadSaved(t, content).Resume != ""
	}
	same := func() bool {
		versions := w.Versions()
		return maps.Equal(versions, foldJournal(t, path))
	}

	p := harness.StartProcess(t, "follows", path)
	require.Eventually(t, saved, 2*time.Minute, time.Millisecond)
	for n := range 10 {
		killer := time.AfterFunc(time.Duration(f.N(int(200*time.Millisecond))), p.Kill)
		for range 10 {
			f.Touch()
			time.Sleep(time.Duration(f.N(20)) * time.Millisecond)
		}
		p.Wait()
		killer.Stop()
		if forgets {
			showGhost(t, w, path, fmt.Sprintf("ghost/%d", n))
		}
		for range f.N(10) {
			f.Touch()
		}
		if forgets {
			f.Touch() // so that no checkpoint is of after that
			w.Compact()
		}
		p = harness.StartProcess(t, "follows", path)
		if f.One(2) { // else it is killed while it begins
			require.Equal(t, "follows", p.Line())
		}
	}
	require.Eventually(t, same, 2*time.Minute, 10*time.Millisecond, "%v", foldJournal(t, path))
	if !forgets {
		require.Len(t, w.Lists(), 1, "asked %v", w.Verbs())
	}
	p.Kill()
	p.Wait()
}

// showGhost has a process be told of an object, kills it at once, and deletes the object.
func showGhost(t *testing.T, w *harness.World, path, key string) {
	p := harness.StartProcess(t, "follows", path)
	w.CreatePods(key)
	told := func() bool { return foldJournal(t, path)[key] != "" }
	require.Eventually(t, told, 2*time.Minute, time.Millisecond)
	p.Kill()
	p.Wait()
	w.DeletePods(key)
}

// foldJournal is the state that the handler has made of its calls.
func foldJournal(t *testing.T, path string) map[string]string {
	content, err := os.ReadFile(path + ".journal")
	require.NoError(t, err)
	state := map[string]string{}
	for line := range strings.Lines(string(content)) {
		var key, version string
		if n, _ := fmt.Sscan(line, &key, &version); n == 2 {
			state[key] = version
		} else {
			delete(state, key)
		}
	}
	return state
}

var _ = harness.Role("follows", func(t require.TestingT, path string) {
	config := harness.PassedServer()
	config.ContentType = runtime.ContentTypeJSON
	factory, err := informer.NewDynamicListerWatcherFactory(config)
	require.NoError(t, err)
	journal, err := os.OpenFile(path+".journal", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	write := func(line string) {
		_, err := journal.WriteString(line + "\n")
		require.NoError(t, err)
	}
	present := func(obj interface{}) {
		accessor, err := meta.Accessor(obj)
		require.NoError(t, err)
		write(harness.Key(obj) + " " + accessor.GetResourceVersion())
	}
	interval, changes := 20*time.Millisecond, 3
	if text := os.Getenv(intervalVariable); text != "" {
		interval, err = time.ParseDuration(text)
		require.NoError(t, err)
		changes = 10_000
	}
	fmt.Println("follows")
	informer.NewResourceVersionInformer("pods", informer.InformerConfig{
		ListerWatcher: factory.ForResource("", harness.Pods),
		Handler: informer.ResourceEventHandlerFuncs{
			AddFunc: present, UpdateFunc: func(_, obj interface{}) { present(obj) }, DeleteFunc: func(obj interface{}) { write(harness.Key(obj)) },
		},
		Workers:            3,
		ListMode:           informer.ListModePaged,
		Checkpoint:         informer.FileCheckpoint(path),
		CheckpointInterval: interval,
		CheckpointChanges:  changes,
	}).Run(make(chan struct{}))
})
