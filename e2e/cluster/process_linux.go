package cluster

import (
	"fmt"
	"os"
	"syscall"
)

// dieWithParent lets the kernel kill the server when the thread that started it
// ends, so that a test binary that crashes or is killed leaves nothing behind.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// lockFile waits for the exclusive lock on path. The kernel drops the lock when
// the process that holds it dies.
func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w (close: %v)", err, f.Close())
	}
	// Closing is what unlocks; the file was only read, so it loses nothing.
	return func() { _ = f.Close() }, nil
}

// pause takes the process off the CPU until resume.
func (p *process) pause() error { return p.signal(syscall.SIGSTOP) }

// resume lets a paused process go on.
func (p *process) resume() error { return p.signal(syscall.SIGCONT) }

func (p *process) signal(signal syscall.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("sending %v to %s: %w", signal, p.name, err)
	}
	return nil
}
