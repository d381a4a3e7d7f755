package oracle

import (
	"errors"
	"fmt"
)

func persistent() Validator {
	return Validator{
		Name:  "persistent",
		Doc:   "What a handler panics for is given up only after as many calls as Options.Panics says.",
		Check: checkPersistent,
	}
}

func checkPersistent(h *History) []*Violation {
	var found []*Violation
	calls, panics := map[int]call{}, map[string]int{}
	for n, r := range h.records {
		switch w := r.what.(type) {
		case Run:
			clear(calls) // what of another run returns later counts for nothing
			clear(panics)
		case call:
			calls[w.number] = w
		case answer:
			if errors.Is(w.err, ErrPanic) {
				for _, e := range calls[w.number].events {
					panics[e.Key]++
				}
			}
			delete(calls, w.number)
		case surrender:
			if got := panics[w.key]; got < h.options.Panics {
				reason := fmt.Sprintf("given up after %d calls that panicked, of %d", got, h.options.Panics)
				found = append(found, h.violation("persistent", w.key, reason, 0, n))
			}
			delete(panics, w.key)
		}
	}
	return found
}
