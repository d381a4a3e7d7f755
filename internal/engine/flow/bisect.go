package flow

import (
	"context"
	"time"

	"github.com/rvinformer/informer/internal/engine/blame"
)

const (
	// bisectEvery is how many times a batch fails before it is tried in parts, and again before the
	// next time.
	bisectEvery = 3
	// longestFailure is for how long the calls with parts of a batch may fail before the destination
	// is taken to have gone away.
	longestFailure = time.Minute
	// mostAlone is how many events that have failed by themselves are tried again one by one. If
	// there are more, one of several databases may be down, and all of them are tried again
	// together.
	mostAlone = 16
)

// mayBisect reports whether a batch that has failed once more is to be tried in parts.
func mayBisect(batch []Sent) bool {
	return len(batch) > 1 && (ambiguous(batch)+1)%bisectEvery == 0
}

// ambiguous is how often all of a batch have failed before, each time maybe for another event. Some
// may have failed more often, in a batch before they came later.
func ambiguous(batch []Sent) int {
	least := batch[0].Entry.Ambiguous
	for _, s := range batch[1:] {
		least = min(least, s.Entry.Ambiguous)
	}
	return least
}

// bisect finds the events of the batch that fail by themselves, and has the others taken in. It
// tries large parts before small ones, so that most of the batch is taken in by few calls.
func (t *trial) bisect(ctx context.Context) {
	rest := t.probe(ctx)
	if len(rest) == 0 {
		return
	}
	t.succeeded = time.Now()
	failing := [][]Sent{rest}
	for len(failing) > 0 {
		part := failing[0]
		failing = failing[1:]
		half := len(part) / 2
		first, second := part[:half], part[half:]
		if t.try(ctx, first, &failing) && len(second) > 1 {
			failing = append(failing, second) // which is to blame
		} else {
			t.try(ctx, second, &failing)
		}
	}
}

// probe reports whether the destination takes anything in: it returns the events that are to be
// tried in parts, or none if it does not.
//
// A destination that is away fails for every event. To learn that takes two calls with one event
// each, so that such a destination gets five calls where it would get three. Events that fail by
// themselves often stand side by side: these two are the first and the last, and each time the next
// ones towards the middle.
func (t *trial) probe(ctx context.Context) (rest []Sent) {
	last, half := len(t.batch)-1, len(t.batch)/2
	inwards := ambiguous(t.batch) / bisectEvery % (last - half + 1)
	rest = t.batch
	for _, at := range []int{min(inwards, half-1), last - inwards} {
		if ctx.Err() != nil {
			return nil
		}
		whom := t.call(ctx, t.batch[at:at+1])
		if whom == blame.Unknown {
			continue
		}
		probed, before := t.batch[at], len(t.batch)-len(rest)
		copy(t.batch[before+1:], t.batch[before:at])
		t.batch[before] = probed
		rest = rest[1:]
		if whom != blame.Delayed {
			return rest
		}
	}
	return nil
}

// try tries a part of the batch, and reports whether it was taken in. A part that fails is added to
// failing. Nothing is tried once all calls of a minute have failed. A destination that goes away
// meanwhile and fails faster gets two calls for each event at most, once.
func (t *trial) try(ctx context.Context, part []Sent, failing *[][]Sent) (taken bool) {
	if len(part) == 0 || time.Since(t.succeeded) > longestFailure || ctx.Err() != nil {
		return false
	}
	whom := t.call(ctx, part)
	switch whom {
	case blame.Unknown:
		if len(part) > 1 {
			*failing = append(*failing, part)
		}
	case blame.Delayed:
	default:
		t.succeeded = time.Now()
	}
	return whom == blame.Nobody
}

// gather opens the events that have failed by themselves, if there are many, or if others are open.
// Where the destination takes other events in for longer than a part of it may be away, it does the
// opposite, if there are to be dead letters.
func (t *trial) gather() {
	var opened, lonely int
	lasting := t.flow.MaxAttempts > 0 && t.flow.takesOthers()
	for _, s := range t.batch {
		switch s.fate {
		case open:
			opened++
		case alone:
			lonely++
		default:
			continue
		}
		lasting = lasting && hasLasted(s.Entry, outage)
	}
	to := open
	switch {
	case opened+lonely == 0 || opened == 0 && lonely <= mostAlone:
		return
	case lasting:
		to = alone
	}
	for i := range t.batch {
		if f := &t.batch[i].fate; *f == alone || *f == open {
			*f = to
		}
	}
}
