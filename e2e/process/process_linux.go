package process

import "syscall"

// dieWithParent lets the kernel kill the process when the thread that started it
// ends, so that a test binary that crashes or is killed leaves nothing behind.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// Pause takes the process off the CPU until Resume.
func (p *Process) Pause() error { return p.Signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }
