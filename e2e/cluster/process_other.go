//go:build !linux

package cluster

import "syscall"

// Only Linux can tie a child to its parent; elsewhere Close is what ends it.
func dieWithParent() *syscall.SysProcAttr { return nil }

// Without a lock that dies with its holder, two builds at once repeat some
// work. The go command replaces a finished binary as a whole.
func lockFile(string) (unlock func(), err error) { return func() {}, nil }
