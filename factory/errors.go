package factory

import (
	"errors"
	"fmt"
)

var (
	// ErrShutDown says that a factory starts nothing any more.
	ErrShutDown = errors.New("the factory is shut down")
	// ErrStopped says that an informer was stopped. It is not started again: the next
	// request for its key gets another one.
	ErrStopped = errors.New("the informer was stopped")
	// ErrUnknown says that the factory has no informer of a key.
	ErrUnknown = errors.New("no such informer")
)

// RequestError says why there is no informer for what was asked for.
type RequestError struct {
	// Key is what was asked for. Its selectors are as they were given.
	Key Key
	// Err is what is wrong with it.
	Err error
}

func (e *RequestError) Error() string { return fmt.Sprintf("informer of %v: %v", e.Key, e.Err) }

// Unwrap returns what is wrong.
func (e *RequestError) Unwrap() error { return e.Err }
