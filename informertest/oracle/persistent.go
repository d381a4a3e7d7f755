package oracle

import (
	"errors"
	"fmt"

	"github.com/rvinformer/informer/internal/blame"
)

func persistent() Validator {
	return Validator{
		Name:  "persistent",
		Doc:   "What a handler panics for, or refuses, is given up only after as many calls as Options.Panics and Options.Refusals say.",
		Check: checkPersistent,
	}
}

// patience is how often a handler has failed for a key.
type patience struct{ panics, refusals int }

func checkPersistent(h *History) []*Violation {
	var found []*Violation
	calls, failed := map[int]call{}, map[string]patience{}
	for n, r := range h.records {
		switch w := r.what.(type) {
		case Run:
			clear(calls) // what of another run returns later counts for nothing
			clear(failed)
		case call:
			calls[w.number] = w
		case answer:
			events := calls[w.number].events
			whom, named, _ := blame.Of(w.err, len(events))
			for i, e := range events {
				p := failed[e.Key]
				if errors.Is(w.err, ErrPanic) {
					p.panics++
				}
				if w.err != nil && (len(events) == 1 || whom == blame.Named && named[i] != nil) {
					p.refusals++
				}
				failed[e.Key] = p
			}
			delete(calls, w.number)
		case surrender:
			p := failed[w.key]
			if enough := p.panics >= h.options.Panics || h.options.Refusals > 0 && p.refusals >= h.options.Refusals; !enough {
				reason := fmt.Sprintf("given up after %d calls that panicked, of %d", p.panics, h.options.Panics)
				if h.options.Refusals > 0 {
					reason += fmt.Sprintf(", and %d that failed for it alone, of %d", p.refusals, h.options.Refusals)
				}
				found = append(found, h.violation("persistent", w.key, reason, 0, n))
			}
			delete(failed, w.key)
		}
	}
	return found
}
