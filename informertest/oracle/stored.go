package oracle

import "fmt"

func stored() Validator {
	return newValidator("stored",
		"While the handler is told of an object, the informer's store holds of it what was acknowledged last, whatever failed since.",
		checkStored)
}

func checkStored(j *judge) {
	j.follow(func(m *memory, n int, what any) {
		if w, ok := what.(storeLook); ok {
			j.blame(w.key, m.misfiled(w), m.told(j.numbers[w.key]), n)
		}
	})
}

// misfiled is why the store is wrong about a key, if so. After a crash, what is known of
// what it should hold is what it began with.
func (m *memory) misfiled(s storeLook) string {
	k := &m.keys[m.h.numbers[s.key]]
	acknowledged := ""
	if k.present {
		acknowledged = k.version
	}
	switch {
	case !m.running || k.behind || s.version == acknowledged:
		return ""
	case s.version == "":
		return fmt.Sprintf("acknowledged in version %s, and not stored", acknowledged)
	case acknowledged == "":
		return fmt.Sprintf("stored in version %s, and not acknowledged", s.version)
	}
	return fmt.Sprintf("acknowledged in version %s, and stored in version %s", acknowledged, s.version)
}
