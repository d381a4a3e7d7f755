package oracle

import "fmt"

func memoryBound() Validator {
	return Validator{
		Name: "memory",
		Doc: "What is queued is within its budget, but for one object of each informer that shares it. " +
			"A run that has stopped, and shares it with nobody, has given back all.",
		Check: checkMemory,
	}
}

func checkMemory(h *History) []*Violation {
	var found []*Violation
	stopped := never
	for n, r := range h.records {
		switch w := r.what.(type) {
		case Run:
			stopped = never
		case halt:
			if !w.killed {
				stopped = n
			}
		case sample:
			if reason := h.overdrawn(w); reason != "" {
				found = append(found, h.violation("memory", "", reason, n, n))
			}
			if w.bytes != 0 && stopped != never && h.options.Informers == 1 {
				reason := fmt.Sprintf("%d bytes are queued, and the run has stopped", w.bytes)
				found = append(found, h.violation("memory", "", reason, stopped, n))
			}
		}
	}
	return found
}

// overdrawn is why a sample is beyond its limit, if so.
func (h *History) overdrawn(s sample) string {
	most := s.limit + int64(h.options.Informers)*s.largest
	if s.bytes <= most {
		return ""
	}
	return fmt.Sprintf("%d bytes are queued, %d may be: the limit is %d, the largest object has %d, informers: %d", s.bytes, most, s.limit, s.largest, h.options.Informers)
}
