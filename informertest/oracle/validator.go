package oracle

// Validator judges one guarantee.
type Validator struct {
	Name string
	// Doc is the guarantee, in a sentence or two.
	Doc   string
	Check func(*History) []*Violation
}

// newValidator returns a Validator whose violations a function finds.
func newValidator(name, doc string, check func(*judge)) Validator {
	return Validator{Name: name, Doc: doc, Check: func(h *History) []*Violation {
		j := &judge{History: h, guarantee: name}
		check(j)
		return j.found
	}}
}

// judge collects the violations of a guarantee.
type judge struct {
	*History
	guarantee string
	found     []*Violation
}

// blame adds a violation that the records of a key show, from one number to another; none without a
// reason.
func (j *judge) blame(key, reason string, from, to int) {
	if reason != "" {
		j.found = append(j.found, j.violation(j.guarantee, key, reason, from, to))
	}
}

// follow calls see for each record, before a memory takes it in.
func (j *judge) follow(see func(m *memory, n int, what any)) {
	m := newMemory(j.History)
	for n, r := range j.records {
		see(m, n, r.what)
		m.step(n)
	}
}

// judgeTellings blames each telling that is wrong when it comes. Wrong returns why, empty if it is not,
// and since returns the first record that matters.
func (j *judge) judgeTellings(wrong func(*memory, *telling) string, since func(*memory, *telling) int) {
	j.follow(func(m *memory, n int, what any) {
		if _, told := what.(call); !told {
			return
		}
		for i := m.next; i < len(j.tellings) && j.tellings[i].record == n; i++ {
			t := &j.tellings[i]
			if reason := wrong(m, t); reason != "" {
				j.blame(t.Key, reason, since(m, t), n)
			}
		}
	})
}

// Validators returns all of them. Each sees nothing but the History.
func Validators() []Validator {
	return []Validator{
		ordered(),
		unique(),
		reliable(),
		noFalseDelete(),
		authentic(),
		resumable(),
		bookmarkable(),
		initialList(),
		syncedDone(),
		memoryBound(),
		equal(),
		stored(),
		persistent(),
		paced(),
		confinedToShard(),
		redelivery(),
	}
}
