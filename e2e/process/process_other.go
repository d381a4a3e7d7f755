//go:build !linux

package process

import (
	"errors"
	"syscall"
)

// Only Linux can tie a child to its parent; elsewhere Kill is what ends it.
func dieWithParent() *syscall.SysProcAttr { return nil }

func (p *Process) Pause() error { return errors.New("pausing a process needs Linux") }

func (p *Process) Resume() error { return errors.New("pausing a process needs Linux") }
