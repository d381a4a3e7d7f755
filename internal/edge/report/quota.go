package report

import (
	"time"

	"github.com/rvinformer/informer/internal/leaf/moment"
)

// TellAfter is how long a condition has to last until it is logged.
const TellAfter = 5 * time.Second

// maxLines is how many lines may be logged at once, and refill is after how long another one may
// be.
const maxLines, refill = 20, 5 * time.Minute

// Quota limits how many lines are logged. The zero value is full.
type Quota struct {
	// restored is when all lines that may be logged are there again.
	restored moment.Moment
}

// Allows reports whether a line may be logged.
func (q *Quota) Allows(now moment.Moment) bool { return q.restored.Since(now) <= (maxLines-1)*refill }

// Spend notes that a line is logged.
func (q *Quota) Spend(now moment.Moment) { q.restored = max(q.restored, now) + moment.Moment(refill) }

// isFull reports whether no line was logged lately.
func (q *Quota) isFull(now moment.Moment) bool { return q.restored <= now }
