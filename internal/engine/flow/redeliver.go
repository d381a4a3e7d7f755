package flow

import (
	"context"
	"errors"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/edge/redelivery"
	"github.com/rvinformer/informer/internal/leaf/redact"
)

// again is a redelivery of a flow. Its fields but for job and done belong to the lock of the flow.
type again struct {
	job *redelivery.Job
	// done is closed when the redelivery is over, for the reason err.
	done chan struct{}
	err  error
	// stop ends the work of a run on it, nil while no run works on it.
	stop context.CancelFunc
	// givenUp tells that its caller waits no more.
	givenUp bool
}

// Redeliver delivers objects again in their newest state, and returns when the consumer has
// acknowledged them. If ctx ends, that is given up. If the run ends, the next one goes on with it,
// and the error is api.ErrStopped.
func (f *Flow) Redeliver(ctx context.Context, o api.RedeliverOptions) error {
	return redelivery.Error(f.Name, f.redeliver(ctx, o))
}

func (f *Flow) redeliver(ctx context.Context, o api.RedeliverOptions) error {
	job, err := redelivery.New(o, f.Namespace)
	if err != nil {
		return err
	}
	r, a, err := f.beginRedelivery(job)
	if err != nil {
		return err
	}
	f.saveRedelivery()
	select {
	case <-a.done:
	case <-r.ctx.Done():
	case <-ctx.Done():
		if r.known.Err() == nil { // else the run ends, perhaps with the same context
			f.giveUp(a)
		}
		select {
		case <-a.done:
		case <-r.ctx.Done():
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.again == a: // the next run goes on with it
		return api.ErrStopped
	case a.givenUp && ctx.Err() != nil && a.err != nil:
		return context.Cause(ctx)
	}
	return a.err
}

// beginRedelivery has the run under way begin with a job.
func (f *Flow) beginRedelivery(job *redelivery.Job) (*run, *again, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.state.run
	switch {
	case f.state.stage != following || r.isEnding:
		return nil, nil, api.ErrNotRunning
	case f.again != nil:
		return nil, nil, api.ErrRedelivering
	case !f.isSynced():
		return nil, nil, api.ErrNotSynced
	}
	f.again = &again{job: job, done: make(chan struct{})}
	r.goOnRedelivering(f.again)
	return r, f.again, nil
}

// goOnRedelivering works on a redelivery beside the reflector. The caller has the lock of the flow.
func (r *run) goOnRedelivering(a *again) {
	var ctx context.Context
	ctx, a.stop = context.WithCancel(r.ctx)
	r.help(func() {
		err := r.redeliver(ctx, a.job)
		r.endRedelivery(a, err)
	})
}

// redeliver works on a job until it is done, or ctx ends.
func (r *run) redeliver(ctx context.Context, job *redelivery.Job) error {
	objects, err := r.Objects(job.Status().Selector)
	if err != nil {
		return err
	}
	job.Expect(int64(r.Versions.Len()))
	return redelivery.Run(ctx, job, objects, redelivery.Informer{
		Queue:     r.queue,
		Versions:  r.Versions,
		Intake:    &r.Intake,
		Report:    r.Report,
		Shard:     r.Shard,
		AtOnce:    r.Consumer.Max(),
		WaitUntil: func(ctx context.Context, resourceVersion string) error { return r.WaitUntil(ctx, resourceVersion, nil) },
	})
}

// endRedelivery notes that the work of the run on a redelivery has ended. It is over, unless it only
// has ended with the run.
func (r *run) endRedelivery(a *again, err error) {
	err = redact.Error(err)
	r.mu.Lock()
	a.stop()
	a.stop = nil
	if err != nil && r.ctx.Err() != nil && !a.givenUp {
		r.mu.Unlock()
		return
	}
	givenUp := a.givenUp
	r.finishRedelivery(a, err)
	r.mu.Unlock()
	r.saveRedelivery()
	if err != nil && !givenUp {
		r.Report.Fail(redelivery.Error(r.Name, err))
	}
}

// finishRedelivery notes that a redelivery is over. The caller has the lock.
func (f *Flow) finishRedelivery(a *again, err error) {
	a.err = err
	if f.again == a {
		f.again = nil
		close(a.done)
	}
}

// giveUp ends a redelivery because its caller waits no more.
func (f *Flow) giveUp(a *again) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a.givenUp = true
	if a.stop != nil {
		a.stop()
		return
	}
	f.finishRedelivery(a, errors.New("given up")) // the run has ended meanwhile
}

// Redelivery returns how far the redelivery has come that is under way, or is going to be with the
// next run; nil without one.
func (f *Flow) Redelivery() *api.RedeliveryStatus {
	f.mu.Lock()
	a := f.again
	f.mu.Unlock()
	if a == nil {
		return nil
	}
	return a.job.Status()
}

// Text returns what a checkpoint has of the redelivery, empty without one.
func (f *Flow) Text() string {
	f.mu.Lock()
	a := f.again
	f.mu.Unlock()
	if a == nil {
		return ""
	}
	return a.job.Text()
}

// Restore has the next run go on with the redelivery of a checkpoint, or with none if text is empty:
// another process may have gone on with the one that a run before has left. Here tells that it is of
// the same objects.
func (f *Flow) Restore(text string, here bool) {
	var restored *again
	if text != "" {
		job, err := redelivery.Parse(text, here)
		if err != nil {
			f.Report.Fail(err)
			return
		}
		restored = &again{job: job, done: make(chan struct{})}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.again != nil {
		f.finishRedelivery(f.again, api.ErrStopped)
	}
	f.again = restored
}

// saveRedelivery has the checkpoint saved soon.
func (f *Flow) saveRedelivery() {
	if f.Keeper != nil {
		f.Keeper.SaveSoon()
	}
}
