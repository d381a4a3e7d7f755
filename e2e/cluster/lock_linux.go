package cluster

import (
	"fmt"
	"os"
	"syscall"
)

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
