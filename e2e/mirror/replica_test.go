package mirror

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/e2e/process"
)

// lastWord is how long a replica may take to end after SIGTERM. With all its servers up a handover takes 3 seconds; the rest is for a
// home cluster that is down, and for a machine that is busy.
const lastWord = 20 * time.Second

// replica is one mirror of several.
type replica struct {
	name    string
	program string
	args    []string
	log     string
	running *process.Process // nil while it is down
	started time.Time
}

// young is how long a program may take until it catches signals: one that was built with -race, on a machine that is busy.
const young = 5 * time.Second

func (r *replica) start(t *testing.T) {
	t.Helper()
	require.Nil(t, r.running, "%s runs", r.name)
	p, err := process.Start(r.name, r.program, r.log, r.args, "POD_NAME="+r.name)
	require.NoError(t, err)
	r.running, r.started = p, time.Now()
}

func (r *replica) kill(t *testing.T) {
	t.Helper()
	r.requireAlive(t)
	require.NoError(t, r.running.Kill())
	r.running = nil
}

// stop ends the replica in an orderly way, and returns how long that took. One that was started just now may end by the signal itself: it
// owns nothing yet.
func (r *replica) stop(t *testing.T) time.Duration {
	t.Helper()
	r.requireAlive(t)
	began := time.Now()
	require.NoError(t, r.running.Signal(syscall.SIGTERM))
	select {
	case <-r.running.Exited():
	case <-time.After(lastWord):
		require.NoError(t, r.running.Failure(fmt.Errorf("it still runs %s after SIGTERM", lastWord)))
	}
	if err := r.running.Err(); err != nil && !(began.Sub(r.started) < young && terminated(err)) {
		require.NoError(t, r.running.Failure(err))
	}
	r.running = nil
	return time.Since(began)
}

// terminated reports whether err says that a process ended by SIGTERM.
func terminated(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGTERM
}

// requireAlive fails if the replica has ended by itself.
func (r *replica) requireAlive(t *testing.T) {
	t.Helper()
	require.NotNil(t, r.running, "%s is down", r.name)
	select {
	case <-r.running.Exited():
		require.NoError(t, r.running.Failure(fmt.Errorf("%s has ended by itself", r.name)))
	default:
	}
}

func (r *replica) do(t *testing.T, what action) {
	t.Helper()
	switch what {
	case start:
		r.start(t)
	case kill:
		r.kill(t)
	case stop:
		r.stop(t)
	case pause:
		r.requireAlive(t)
		require.NoError(t, r.running.Pause())
	case resume:
		require.NoError(t, r.running.Resume())
	}
}

// buildMirror compiles the program, with the flags of the tests: -race for instance.
func buildMirror(ctx context.Context, t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "mirror")
	build := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join("..", "..", "examples", "mirror"), "-o", program, ".")
	build.Env = append(os.Environ(), "GOWORK=off")
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return program
}
