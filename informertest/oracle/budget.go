package oracle

import "fmt"

func memoryBound() Validator {
	return Validator{
		Name:  "memory",
		Doc:   "What is queued is within its budget, but for one object of each informer that shares it.",
		Check: checkMemory,
	}
}

func checkMemory(h *History) []*Violation {
	var found []*Violation
	for n, r := range h.records {
		s, ok := r.what.(sample)
		if !ok {
			continue
		}
		if most := s.limit + int64(h.options.Informers)*s.largest; s.bytes > most {
			reason := fmt.Sprintf("%d bytes are queued, %d may be: the limit is %d, the largest object has %d, informers: %d", s.bytes, most, s.limit, s.largest, h.options.Informers)
			found = append(found, h.violation("memory", "", reason, n, n))
		}
	}
	return found
}
