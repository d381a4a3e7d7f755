package listwatch

import "time"

const (
	// questionEvery is how often a server may be asked about itself in the long run, and
	// questionsAtOnce how many questions may follow each other at once.
	questionEvery   = 2 * time.Second
	questionsAtOnce = 20
)

// Questions paces what a server is asked about itself beside lists and watches: which cluster it is of,
// and whether it has a version, or known objects. The zero value has asked nothing.
type Questions struct {
	// spent is until when the questions that were asked suffice.
	spent time.Time
}

// MayAsk reports whether the server may be asked. One inquiry may take several questions.
func (q Questions) MayAsk(at time.Time) bool { return q.spent.Sub(at) < questionsAtOnce*questionEvery }

// Asked returns q after n questions.
func (q Questions) Asked(at time.Time, n int) Questions {
	if q.spent.Before(at) {
		q.spent = at
	}
	q.spent = q.spent.Add(time.Duration(n) * questionEvery)
	return q
}
