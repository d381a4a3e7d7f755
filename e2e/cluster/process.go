package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// process is one running server, with the file that its output goes to.
type process struct {
	name    string
	logPath string
	cmd     *exec.Cmd

	exited chan struct{} // closed after Wait returned
	err    error         // what Wait returned; read only after exited is closed
}

// startProcess starts path with args, appending what it prints to logPath.
// Whoever starts it must end it with kill, which waits for it.
func startProcess(name, path, logPath string, args []string) (*process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", name, err)
	}
	p := &process{name: name, logPath: logPath, exited: make(chan struct{})}
	p.cmd = exec.Command(path, args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
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

// kill ends the process without giving it a chance to tidy up, and waits until
// it is gone.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing %s: %w", p.name, err)
	}
	<-p.exited
	return nil
}

// failure describes why the process is of no use, with the end of its log.
func (p *process) failure(err error) error {
	select {
	case <-p.exited:
		err = fmt.Errorf("it exited: %w (%v)", err, p.err)
	default:
	}
	return fmt.Errorf("%s: %w\n%s", p.name, err, logTail(p.logPath))
}
