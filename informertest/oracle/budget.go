package oracle

import "fmt"

func memoryBound() Validator {
	return newValidator("memory", "What is queued is within its budget, but for one object of each informer that shares it. "+
		"A run that has stopped, and does not share it, has given back all. "+
		"The keys that are said to wait are no fewer than those that the handler is called with, and none when all has settled.",
		func(j *judge) {
			checkMemory(j)
			checkWaiting(j)
		})
}

func checkMemory(j *judge) {
	stopped := never
	for n, r := range j.records {
		switch w := r.what.(type) {
		case Run:
			stopped = never
		case halt:
			if !w.killed {
				stopped = n
			}
		case sample:
			j.blame("", j.overdrawn(w), n, n)
			if w.bytes != 0 && stopped != never && j.options.Informers == 1 {
				j.blame("", fmt.Sprintf("%d bytes are queued, and the run has stopped", w.bytes), stopped, n)
			}
		}
	}
}

// overdrawn is why a sample is beyond its limit, if so.
func (h *History) overdrawn(s sample) string {
	most := s.limit + int64(h.options.Informers)*s.largest
	if s.bytes <= most {
		return ""
	}
	return fmt.Sprintf("%d bytes are queued, %d may be: the limit is %d, the largest object has %d, informers: %d", s.bytes, most, s.limit, s.largest, h.options.Informers)
}

// checkWaiting checks how many keys are said to wait. Several questions may be asked at
// the same time, and a process may die before one of them is answered.
func checkWaiting(j *judge) {
	settled := never
	with := map[int]map[int]call{} // by question: the calls under way since it was asked
	j.follow(func(m *memory, n int, what any) {
		switch w := what.(type) {
		case rest:
			settled = n
		case asked:
			with[w.question] = m.underWay()
		case answer:
			for _, calls := range with {
				delete(calls, w.number)
			}
			settled = never
		case halt:
			clear(with)
			settled = never
		case waiting:
			reason, from := j.miscounted(w, with[w.question], settled, n)
			delete(with, w.question)
			if m.running {
				j.blame("", reason, from, n)
			}
		case Write, restoration, Run, listed, call:
			settled = never
		}
	})
}

// underWay are the calls of the handler that have not returned, by number.
func (m *memory) underWay() map[int]call {
	calls := map[int]call{}
	for number := range m.under {
		calls[number] = m.h.calls[number]
	}
	return calls
}

// miscounted is why so many keys cannot wait, if so, and the record since when.
func (h *History) miscounted(w waiting, with map[int]call, settled, n int) (reason string, from int) {
	keys := map[string]struct{}{}
	from = n
	for _, c := range with {
		for _, e := range c.events {
			keys[e.Key] = struct{}{}
		}
	}
	switch {
	case w.keys < len(keys):
		return fmt.Sprintf("%d keys are said to wait, and the handler is called with %d", w.keys, len(keys)), from
	case settled != never && w.keys > 0:
		return fmt.Sprintf("%d keys are said to wait, and all has settled", w.keys), settled
	}
	return "", from
}
