package informer

import (
	"context"
	"errors"
	"io"
)

// ErrCheckpointInUse says that somebody else uses a checkpoint that only one may
// use at a time: another informer, of this process or of another one.
var ErrCheckpointInUse = errors.New("checkpoint in use")

// CheckpointStore is where a checkpoint is kept: one sequence of bytes, which is
// replaced as a whole. FileCheckpoint keeps it in a file. What the bytes are is of
// no matter to a store.
//
// A store of which two informers could get hold at the same time should be a
// CheckpointLocker too.
type CheckpointStore interface {
	// Load returns the bytes that the last Save has written. Without any, the error
	// is fs.ErrNotExist (by errors.Is), and an informer starts with nothing. The
	// caller closes the reader, and may Save before it has. Ctx is for all of the
	// reading: a store may fail a Read once it has ended.
	Load(ctx context.Context) (io.ReadCloser, error)
	// Save calls write once, or not at all if that is of no use, and keeps what it
	// writes, instead of what was kept before. It is all or nothing: if write returns
	// an error or panics, or if ctx or the process ends meanwhile, what was kept before
	// still is. After an error of the store itself it may be either, but as a whole.
	// The error of write is within that of Save (by errors.Is).
	//
	// The writer is write's until it returns. Its errors are to be returned by write.
	// Write runs in the goroutine of Save, and takes its time: pieces of 64 KiB are
	// usual, and may come slowly.
	Save(ctx context.Context, write func(io.Writer) error) error
}

// CheckpointLocker is a CheckpointStore that only one may use at a time. An
// informer holds it from the beginning of a Run to its end.
type CheckpointLocker interface {
	// Lock does not wait: if somebody holds the store, the error is ErrCheckpointInUse
	// (by errors.Is). This is so also for who holds it already. What is locked stays
	// so until unlock is called or the process ends, however it ends. Unlock may be
	// called from any goroutine; a second call does nothing and returns nil.
	Lock() (unlock func() error, err error)
}
