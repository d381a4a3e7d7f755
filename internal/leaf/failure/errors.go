package failure

import (
	"fmt"

	"github.com/rvinformer/informer/api"
)

// OfStore wraps what the method op of a store returned for a key; nil stays nil.
func OfStore(op, key string, err error) error {
	if err == nil {
		return nil
	}
	return &api.StoreError{Op: op, Key: key, Err: err}
}

// NotWatchable wraps the refusal of a watch that a list takes the place of, because watches have been
// refused for long.
func NotWatchable(refusal error) error { return &notWatchable{refusal} }

// Excused wraps the error with which a list or a watch has ended for a reason that says nothing about
// whether the server can be reached. It is reported, and is no failure.
func Excused(err error, why string) error { return &excused{err, why} }

type excused struct {
	error
	why string
}

func (e *excused) Error() string { return e.error.Error() + ": " + e.why }

func (e *excused) Unwrap() error { return e.error }

type notWatchable struct{ refusal error }

func (e *notWatchable) Error() string {
	return fmt.Sprintf("watches are refused, so that lists take their place, about each minute: %v", e.refusal)
}

func (e *notWatchable) Unwrap() error { return e.refusal }
