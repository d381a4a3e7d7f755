package mirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/e2e/process"
	"github.com/rvinformer/informer/e2e/proxy"
)

// lastWord is how long a replica may take to end after SIGTERM. With all its servers up a handover
// takes 3 seconds; the rest is for a home cluster that is down, and for a machine that is slow.
const lastWord = 2 * time.Minute

// replica is one mirror of several.
type replica struct {
	name    string
	program string
	args    []string
	log     string
	running *process.Process // nil while it is down
	before  int64            // the size of the log when it was started
	// stopping tells that it was told to end.
	stopping bool
	// life is when it was started, and up the same while it runs and is not paused, nil otherwise.
	life *time.Time
	up   atomic.Pointer[time.Time]
	// ahead is how far its clock is ahead, and ways are the proxies before all that it connects to.
	ahead time.Duration
	ways  map[way][]*proxy.Proxy
	// credentials are those with which it asks for objects, as the audit logs of the clusters have
	// them.
	credentials []string
}

func (r *replica) start(t *testing.T) {
	t.Helper()
	require.Nil(t, r.running, "%s runs", r.name)
	began := time.Now()
	r.before, r.life = r.logSize(t), &began
	p, err := process.Start(r.name, r.program, r.log, r.args, "POD_NAME="+r.name, clockAhead+"="+fmt.Sprint(int(r.ahead.Seconds())))
	require.NoError(t, err)
	r.running = p
	r.up.Store(r.life)
}

// logSize is how many bytes the replica has printed so far, in all its lives.
func (r *replica) logSize(t *testing.T) int64 {
	t.Helper()
	info, err := os.Stat(r.log)
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	require.NoError(t, err)
	return info.Size()
}

func (r *replica) kill(t *testing.T) {
	t.Helper()
	r.requireAlive(t)
	r.up.Store(nil)
	require.NoError(t, r.running.Kill())
	r.running = nil
}

// stop ends the replica in an orderly way, and returns how long that took.
func (r *replica) stop(t *testing.T) time.Duration {
	t.Helper()
	r.terminate(t)
	began := time.Now()
	r.await(t)
	return time.Since(began)
}

// terminate tells the replica to end. One that was started just now is waited for until it catches
// signals: it has printed something then.
func (r *replica) terminate(t *testing.T) {
	t.Helper()
	for began := time.Now(); r.logSize(t) == r.before; time.Sleep(10 * time.Millisecond) {
		require.Less(t, time.Since(began), lastWord, "%s prints nothing", r.name)
		r.requireAlive(t)
	}
	r.requireAlive(t)
	r.up.Store(nil)
	require.NoError(t, r.running.Signal(syscall.SIGTERM))
	r.stopping = true
}

// await waits until the replica has ended that was told to.
func (r *replica) await(t *testing.T) {
	t.Helper()
	select {
	case <-r.running.Exited():
	case <-time.After(lastWord):
		require.NoError(t, r.running.Failure(fmt.Errorf("it still runs %s after SIGTERM", lastWord)))
	}
	if err := r.running.Err(); err != nil {
		require.NoError(t, r.running.Failure(err))
	}
	r.running, r.stopping = nil, false
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

// cut does to the connections of a way what an action says.
func (r *replica) cut(of way, what action) {
	for _, p := range r.ways[of] {
		switch what {
		case drop:
			p.Drop()
		case silence:
			p.Delay(time.Hour) // both ways, until it is healed
		case heal:
			p.Heal()
		}
	}
}

func (r *replica) do(t *testing.T, what action) {
	t.Helper()
	switch what {
	case start:
		if r.stopping {
			r.await(t)
		}
		r.start(t)
	case kill:
		r.kill(t)
	case stop:
		r.terminate(t) // its ways may be cut, and are healed meanwhile
	case pause:
		r.requireAlive(t)
		r.up.Store(nil)
		require.NoError(t, r.running.Pause())
	case resume:
		require.NoError(t, r.running.Resume())
		r.up.Store(r.life)
	}
}

// buildMirror compiles the program, with the flags of the tests, -race for instance, and more.
func buildMirror(ctx context.Context, t *testing.T, flags ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "mirror")
	args := append([]string{"build", "-C", filepath.Join("..", "..", "mirror"), "-o", program}, flags...)
	build := exec.CommandContext(ctx, "go", append(args, ".")...)
	build.Env = append(os.Environ(), "GOWORK=off")
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return program
}
