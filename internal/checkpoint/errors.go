package checkpoint

import (
	"errors"
	"fmt"
)

// ErrInUse says that another informer uses a checkpoint that only one may use at a time.
var ErrInUse = errors.New("checkpoint in use")

// What is wrong, within an *Error, by errors.Is. A checkpoint that was cut is
// io.ErrUnexpectedEOF, and one that the underlying reader fails at is its error.
var (
	// ErrFormat: it does not begin as a checkpoint does.
	ErrFormat = errors.New("not a checkpoint")
	// ErrVersion: it is in a version of the format that is newer than Version.
	ErrVersion = errors.New("format is too new")
	// ErrDamaged: the checksum is wrong, or something before it is.
	ErrDamaged = errors.New("damaged")
	// ErrTooLong: a string is longer than the format has room for.
	ErrTooLong = errors.New("too long")
)

// Error says where a checkpoint cannot be read, or what cannot be written.
type Error struct {
	// Offset is the place in bytes, from the beginning of the checkpoint.
	Offset int64
	// Entry is the number of entries before it.
	Entry int
	// Err is what is wrong.
	Err error
}

func (e *Error) Error() string {
	return fmt.Sprintf("checkpoint: %v at byte %d, after %d entries", e.Err, e.Offset, e.Entry)
}

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }
