package api

import (
	"errors"
	"fmt"
)

// The reasons for which an answer of the server cannot be read, within an *ItemError (that object
// is lost) or a *BodyError (the rest of the answer is). An answer that was cut short is
// io.ErrUnexpectedEOF.
var (
	// ErrMalformed says that it is not in the syntax, or not of the types, that it should be of.
	ErrMalformed = errors.New("malformed")
	// ErrTooLarge says that an object, or the part between two of them, is larger than 16 MiB.
	ErrTooLarge = errors.New("too large")
	// ErrEndless says that an object that was too large did not end within 256 MiB.
	ErrEndless = errors.New("endless item")
	// ErrNotList says that the answer to a list is something else: the page of a proxy for
	// instance.
	ErrNotList = errors.New("not a Kubernetes list")
	// ErrNotWatch says that of the answer to a watch.
	ErrNotWatch = errors.New("not a Kubernetes watch")
	// ErrContentType says that it is neither JSON nor the protobuf of Kubernetes.
	ErrContentType = errors.New("unknown content type")
)

// BodyError says that the answer to a list or a watch could not be read to its end. The objects
// before the fault are delivered, and the others are asked for again.
type BodyError struct {
	// Watch tells a watch from a list.
	Watch bool
	// Offset is the place in bytes of the fault.
	Offset int64
	// Items is the number of objects, or events, before it; lost ones are counted.
	Items int
	// Head is how an answer begins that is no list or watch. It is empty where objects may stand
	// in it, and for Secrets. Credentials are masked.
	Head []byte
	// Err is what is wrong: one of the errors above, or that of the connection.
	Err error
}

func (e *BodyError) Error() string {
	kind := "list"
	if e.Watch {
		kind = "watch"
	}
	text := fmt.Sprintf("%s: %v at byte %d, after %d items", kind, e.Err, e.Offset, e.Items)
	if len(e.Head) > 0 {
		text += fmt.Sprintf("; it begins %q", e.Head)
	}
	return text
}

// Unwrap returns what is wrong.
func (e *BodyError) Unwrap() error { return e.Err }
