package report

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

type notWatchable struct{ refusal error }

func (e *notWatchable) Error() string {
	return fmt.Sprintf("watches are refused, so that lists take their place, about each minute: %v", e.refusal)
}

func (e *notWatchable) Unwrap() error { return e.refusal }
