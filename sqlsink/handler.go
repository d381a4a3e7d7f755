package sqlsink

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rvinformer/informer"
)

// lastWrite is for how long a batch is written after its context has ended: a stop is no reason to
// lose a batch in the middle of its transaction, and what waits for its turn behind it.
const lastWrite = 10 * time.Second

// onBatch writes a batch in one transaction. When that is committed, the informer acknowledges the
// batch: its Storage never has anything that the database does not have.
func (p Place) onBatch(ctx context.Context, events []informer.Event) error {
	rows := make([]row, 0, len(events))
	var failed informer.FailedEvents
	for i, e := range events {
		if e.Type == informer.Synced {
			continue
		}
		r, err := rowOf(i, e, p.sink.canonical)
		if err != nil {
			failed = append(failed, informer.FailedEvent{Index: i, Err: err})
			continue
		}
		rows = append(rows, r)
	}
	if len(rows) > 0 {
		within, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
		defer cancel(nil)
		defer context.AfterFunc(ctx, func() {
			time.AfterFunc(lastWrite, func() { cancel(fmt.Errorf("not done within %s of the stop", lastWrite)) })
		})()
		err := p.sink.write(within, p.at, func(ctx context.Context) error {
			refused, err := p.sink.db.Apply(ctx, p.at, rows)
			failed = append(failed, refused...)
			return err
		})
		switch {
		case err != nil && len(rows) == 1 && isTrouble(err): // others may be written meanwhile
			failed = append(failed, informer.FailedEvent{Index: rows[0].event, Err: err, Later: true})
		case err != nil:
			return err
		}
	}
	if len(failed) == 0 {
		return nil
	}
	slices.SortFunc(failed, func(a, b informer.FailedEvent) int { return cmp.Compare(a.Index, b.Index) })
	return failed
}
