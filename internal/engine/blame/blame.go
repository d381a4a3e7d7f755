// Package blame says for which events of a batch a BatchHandler has failed.
package blame

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/failure"
)

// Blame is whom an error of a BatchHandler is about.
type Blame int

const (
	// Nobody: there is no error.
	Nobody Blame = iota
	// Unknown: any of the events may be to blame, or none.
	Unknown
	// Panicked: the handler has panicked.
	Panicked
	// Named: FailedEvents name the events.
	Named
	// Delayed: FailedEvents name all events, and each as one that is not at fault. Nothing was taken in.
	Delayed
)

// Of returns whom an error is about that a BatchHandler has returned for so many events. If events
// are named, failed has one for each, whose Err is nil for one that is not named. The error that it
// returns is err, or says what is wrong with the FailedEvents in it.
func Of(err error, events int) (whom Blame, failed []api.FailedEvent, _ error) {
	if err == nil {
		return Nobody, nil, nil
	}
	if named, ok := find(err); ok {
		failed, wrong := mark(named, events)
		switch {
		case wrong == nil && !slices.ContainsFunc(failed, func(event api.FailedEvent) bool { return !event.Later }):
			return Delayed, failed, err
		case wrong == nil:
			return Named, failed, err
		}
		return Unknown, nil, fmt.Errorf("FailedEvents for %d events %w, so that none is acknowledged: %s", events, wrong, err.Error())
	}
	var joined api.FailedEvents
	switch {
	case errors.As(err, &joined):
		return Unknown, nil, fmt.Errorf("FailedEvents are joined with other errors, so that no event is acknowledged: %w", err)
	case failure.IsPanic(err):
		return Panicked, nil, err
	default:
		return Unknown, nil, err
	}
}

// find finds the FailedEvents that err is, or wraps. It does not look into what is joined: there,
// other errors may be about other events.
func find(err error) (named api.FailedEvents, ok bool) {
	for err != nil {
		if named, ok = err.(api.FailedEvents); ok {
			return named, true
		}
		err = errors.Unwrap(err)
	}
	return nil, false
}

var errNoneNamed = errors.New("name none")

// errNoReason is the error of an event that is named without one.
var errNoReason = errors.New("the handler gave no reason")

func mark(named api.FailedEvents, events int) (failed []api.FailedEvent, wrong error) {
	if len(named) == 0 {
		return nil, errNoneNamed
	}
	failed = make([]api.FailedEvent, events)
	for _, event := range named {
		switch i := event.Index; {
		case i < 0 || i >= events:
			return nil, fmt.Errorf("name event %d", i)
		case failed[i].Err != nil:
			return nil, fmt.Errorf("name event %d twice", i)
		default:
			event.Err = cmp.Or(event.Err, errNoReason)
			failed[i] = event
		}
	}
	return failed, nil
}
