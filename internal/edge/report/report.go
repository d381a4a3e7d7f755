package report

import "github.com/rvinformer/informer/internal/leaf/redact"

// Report is where one informer reports. The zero value needs a Handler.
type Report struct {
	Progress
	// Gaps are counted for the checkpoint.
	Gaps Gaps
	// Handler is called with each error, and with nil when a watch has started. It is set before
	// the first call of a method, and may be called from several goroutines.
	Handler func(err error)
}

// Fail notes and reports a failure.
func (r *Report) Fail(err error) {
	err = redact.Error(err)
	r.noteFailure(err, false)
	r.Handler(err)
}

// FailHandling notes and reports a failure of the consumer.
func (r *Report) FailHandling(err error) {
	err = redact.Error(err)
	r.handlingFailed(err)
	r.CountFailure()
	r.Handler(err)
}

// LeaveOut counts an item that is not delivered, although it could be read. It is no gap. Only the
// first one for a reason is reported.
func (r *Report) LeaveOut(err error, first bool) {
	err = redact.Error(err)
	r.skipped(err)
	if first {
		r.Fail(err)
	}
}

// Skip counts and reports an item that could not be read. It is a gap.
func (r *Report) Skip(err error) {
	r.Gaps.Add()
	err = redact.Error(err)
	r.skipped(err)
	r.Fail(err)
}
