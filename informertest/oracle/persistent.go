package oracle

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/engine/blame"
)

func persistent() Validator {
	return newValidator("persistent",
		"What a handler panics for, or refuses, is given up only after as many calls as Options.Panics and Options.Refusals say.",
		checkPersistent)
}

// patience counts the calls that have failed for a key since it was acknowledged.
type patience struct {
	now failures
	// before are the failures before a Deleted was acknowledged. The Deleted may have come in one piece
	// with the next object of the key. Then these failures count for that object too.
	before failures
}

type failures struct{ panics, refusals int }

func (f failures) plus(o failures) failures {
	return failures{f.panics + o.panics, f.refusals + o.refusals}
}

// refuse notes a failure.
func (p patience) refuse(panicked, byItself bool) patience {
	if panicked {
		p.now.panics++
	}
	if byItself {
		p.now.refusals++
	}
	return p
}

// acknowledge notes that an event was acknowledged.
func (p patience) acknowledge(e Event) patience {
	if e.Type != informer.Deleted {
		return patience{}
	}
	return patience{before: p.before.plus(p.now)}
}

// tell notes that an event comes. An event that failed after a Deleted was acknowledged, and comes
// again without it, did not come in one piece with it.
func (p patience) tell(e Event) patience {
	if e.Type != informer.Deleted && p.now != (failures{}) {
		p.before = failures{}
	}
	return p
}

// enough reports whether the informer may give up.
func (o Options) enough(f failures) bool {
	if o.Panics == 0 && o.Refusals == 0 {
		return true
	}
	return o.Panics > 0 && f.panics >= o.Panics || o.Refusals > 0 && f.refusals >= o.Refusals
}

// counted is how many failures there were of those that are judged.
func (o Options) counted(f failures) string {
	var counts []string
	if o.Panics > 0 {
		counts = append(counts, fmt.Sprintf("%d calls that panicked, of %d", f.panics, o.Panics))
	}
	if o.Refusals > 0 {
		counts = append(counts, fmt.Sprintf("%d calls that failed for it alone, of %d", f.refusals, o.Refusals))
	}
	return strings.Join(counts, ", and ")
}

func checkPersistent(j *judge) {
	calls, failed := map[int]call{}, map[string]patience{}
	for n, r := range j.records {
		switch w := r.what.(type) {
		case Run:
			clear(calls) // what of another run returns later counts for nothing
			clear(failed)
		case call:
			calls[w.number] = w
			for _, e := range w.events {
				failed[e.Key] = failed[e.Key].tell(e)
			}
		case answer:
			events := calls[w.number].events
			whom, named, _ := blame.Of(w.err, len(events))
			for i, e := range events {
				switch {
				case whom == blame.Nobody, named != nil && named[i].Err == nil:
					failed[e.Key] = failed[e.Key].acknowledge(e)
				case named != nil && named[i].Later: // it is not at fault
				default:
					failed[e.Key] = failed[e.Key].refuse(errors.Is(w.err, ErrPanic), len(events) == 1 || whom == blame.Named)
				}
			}
			delete(calls, w.number)
		case surrender:
			sum := failed[w.key].now.plus(failed[w.key].before)
			if !j.options.enough(sum) {
				j.blame(w.key, "given up after "+j.options.counted(sum), 0, n)
			}
			delete(failed, w.key)
		}
	}
}
