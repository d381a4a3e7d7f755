package checkpoints_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/tests/harness"
)

// notAllowed is how a process says that it may not do what it should.
const notAllowed = "not allowed"

// requireOutput runs a process and checks what it prints.
func requireOutput(t *testing.T, p *harness.Process, lines ...string) {
	t.Helper()
	out, err := p.Cmd.Output()
	if os.IsPermission(err) || strings.HasPrefix(string(out), notAllowed) {
		t.Skipf("%v: %v %s", p.Cmd, err, out)
	}
	require.NoError(t, err)
	require.Equal(t, strings.Join(lines, "\n")+"\n", string(out))
}

// The process has a file system of its own, with 256 KiB.
func TestFileCheckpointOnAFullDisk(t *testing.T) {
	p := harness.NewProcess(t, "fills the disk", filepath.Join(t.TempDir(), "pods"))
	p.Cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if id := os.Getuid(); id != 0 {
		p.Cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		p.Cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: id, Size: 1}}
	}
	requireOutput(t, p, "kept")
}

var _ = harness.Role("fills the disk", func(t require.TestingT, path string) {
	err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
	if err == nil {
		err = syscall.Mount("tmpfs", filepath.Dir(path), "tmpfs", 0, "size=256k")
	}
	if err != nil {
		fmt.Println(notAllowed, err)
		return
	}
	requireRefusedSave(t, path, syscall.ENOSPC)
	fmt.Println("kept")
})

// The process may not write files of more than 64 KiB.
func TestFileCheckpointThatIsTooLarge(t *testing.T) {
	requireOutput(t, harness.NewProcess(t, "exceeds a limit", filepath.Join(t.TempDir(), "pods")), "kept")
}

var _ = harness.Role("exceeds a limit", func(t require.TestingT, path string) {
	signal.Ignore(syscall.SIGXFSZ)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 64 << 10, Max: 64 << 10}))
	requireRefusedSave(t, path, syscall.EFBIG)
	fmt.Println("kept")
})

// requireRefusedSave checks that something large is refused, first and after
// something small.
func requireRefusedSave(t require.TestingT, path string, is error) {
	store := informer.FileCheckpoint(path)
	for _, before := range []string{absent, "before"} {
		if before != absent {
			require.NoError(t, save(store, before))
		}
		for range 2 {
			err := save(store, strings.Repeat("x", 1<<20))
			require.ErrorIs(t, err, is)
			require.ErrorContains(t, err, "checkpoint "+path+": write: ")
			require.Equal(t, before, kept(t, store))
			for _, name := range names(t, filepath.Dir(path)) {
				require.NotContains(t, name, ".tmp-")
			}
			requireFree(t, path)
		}
	}
	require.NoError(t, save(store, "after"))
	require.Equal(t, "after", kept(t, store))
}

// The process may not write to its directory, whoever runs the tests.
func TestFileCheckpointInAReadOnlyDirectory(t *testing.T) {
	for _, lockable := range []bool{false, true} {
		t.Run(fmt.Sprintf("lockable=%v", lockable), func(t *testing.T) {
			directory := t.TempDir()
			path := filepath.Join(directory, "pods")
			require.NoError(t, save(informer.FileCheckpoint(path), "text"))
			require.NoError(t, os.Chmod(path, 0o644))
			step := "create a temporary file: open ./pods.tmp-"
			if lockable {
				require.NoError(t, os.Chmod(path+".lock", 0o644))
			} else {
				require.NoError(t, os.Remove(path+".lock"))
				step = "lock: open pods.lock"
			}
			require.NoError(t, os.Chmod(directory, 0o555))
			defer func() { require.NoError(t, os.Chmod(directory, 0o755)) }()
			p := harness.NewProcess(t, "may not write", "pods")
			p.Cmd.Dir = directory // whose own path it may not see
			p.Cmd.Env = append(p.Cmd.Env, "INFORMER_TEST_STEP="+step)
			requireOutput(t, p, "kept")
		})
	}
}

var _ = harness.Role("may not write", func(t require.TestingT, path string) {
	if os.Getuid() == 0 {
		if err := syscall.Setuid(65534); err != nil {
			fmt.Println(notAllowed, err)
			return
		}
	}
	store := informer.FileCheckpoint(path)
	err := save(store, "more")
	require.ErrorIs(t, err, fs.ErrPermission)
	require.ErrorContains(t, err, "checkpoint pods: "+os.Getenv("INFORMER_TEST_STEP"))
	require.Equal(t, "text", kept(t, store))
	fmt.Println("kept")
})
