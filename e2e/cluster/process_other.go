//go:build !linux

package cluster

import (
	"errors"
	"syscall"
)

// Only Linux can tie a child to its parent; elsewhere Close is what ends it.
func dieWithParent() *syscall.SysProcAttr { return nil }

// Without a lock that dies with its holder, two builds at once repeat some
// work. The go command replaces a finished binary as a whole.
func lockFile(string) (unlock func(), err error) { return func() {}, nil }

func (p *process) pause() error { return errors.New("pausing a process needs Linux") }

func (p *process) resume() error { return errors.New("pausing a process needs Linux") }
