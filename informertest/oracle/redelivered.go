package oracle

func redelivery() Validator {
	return newValidator("redelivered", "An informer that says that it has told of all objects again has told of each that it knew when it was asked to, and that is still there, "+
		"unless some objects cannot be read.",
		checkRedelivered)
}

func checkRedelivered(j *judge) {
	owed := map[int]*unrepeated{} // by number of the redelivery
	j.follow(func(m *memory, n int, what any) {
		switch w := what.(type) {
		case redelivering:
			if !m.unnoticed { // else the handler may know what the server has lost
				owed[w.number] = m.unrepeated(n)
			}
		case Write:
			if w.Type == Deleted {
				pay(owed, j.numbers[w.Key])
			}
		case restoration, halt:
			clear(owed)
		case call:
			for _, e := range w.events {
				pay(owed, j.numbers[e.Key])
			}
		case redelivered:
			d, judged := owed[w.number]
			delete(owed, w.number)
			if !judged || j.options.Unreadable {
				break
			}
			for key := range m.keys {
				if d.keys[key] {
					j.blame(j.keys[key].key, "it was not told again", d.since, n)
				}
			}
		}
	})
}

// unrepeated is the keys that are to be told again since a record.
type unrepeated struct {
	since int
	keys  map[int]bool
}

// unrepeated is what the handler knows for sure, and is not being told of, and the server has.
func (m *memory) unrepeated(n int) *unrepeated {
	d := &unrepeated{n, map[int]bool{}}
	for key, k := range m.keys {
		line := &m.h.keys[key]
		seen := m.h.seen(line, n)
		isThere := seen == 0 || !line.states[seen-1].gone
		if isThere && k.present && !k.unsure && k.calls == 0 {
			d.keys[key] = true
		}
	}
	return d
}

func pay(owed map[int]*unrepeated, key int) {
	for _, d := range owed {
		delete(d.keys, key)
	}
}
