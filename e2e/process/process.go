// Package process runs a program beside the tests: it can be killed, paused and told to stop, and
// dies with them.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// Process is one running program, with the file that its output goes to.
type Process struct {
	name    string
	logPath string
	cmd     *exec.Cmd

	exited chan struct{} // closed after Wait returned
	err    error         // what Wait returned; read only after exited is closed
}

// Start starts path with args, and with env beside the environment of the tests, appending what it
// prints to logPath. Whoever starts it must wait for its end, or end it with Kill, which waits too.
func Start(name, path, logPath string, args []string, env ...string) (*Process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", name, err)
	}
	p := &Process{name: name, logPath: logPath, exited: make(chan struct{})}
	p.cmd = exec.Command(path, args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.Env = append(p.cmd.Environ(), env...)
	p.cmd.SysProcAttr = dieWithParent()

	started := make(chan error)
	go func() {
		defer log.Close()
		// The kernel's "parent" is the thread, not the process, and Go ends
		// threads when it likes. This one stays until the server is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := p.cmd.Start(); err != nil {
			started <- fmt.Errorf("starting %s: %w", name, err)
			return
		}
		started <- nil
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// Kill ends the process without giving it a chance to tidy up, and waits until
// it is gone.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing %s: %w", p.name, err)
	}
	<-p.exited
	return nil
}

// Signal sends the process a signal.
func (p *Process) Signal(signal os.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("sending %v to %s: %w", signal, p.name, err)
	}
	return nil
}

// PID is its number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Err is how the process has ended: nil if its exit code was 0. It is for after Exited.
func (p *Process) Err() error { return p.err }

// Failure describes why the process is of no use, with the end of its log.
func (p *Process) Failure(err error) error {
	select {
	case <-p.exited:
		err = fmt.Errorf("it exited: %w (%v)", err, p.err)
	default:
	}
	return fmt.Errorf("%s: %w\n%s", p.name, err, LogTail(p.logPath))
}
