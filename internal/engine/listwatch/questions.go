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
	// spent is until when the questions that were asked suffice, in nanoseconds since 1970.
	spent int64
}

// MayAsk reports whether the server may be asked. One inquiry may take several questions.
func (q Questions) MayAsk(at time.Time) bool {
	return time.Duration(q.spent-at.UnixNano()) < questionsAtOnce*questionEvery
}

// Asked returns q after n questions.
func (q Questions) Asked(at time.Time, n int) Questions {
	return Questions{spent: max(q.spent, at.UnixNano()) + int64(n)*int64(questionEvery)}
}
