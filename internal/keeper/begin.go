package keeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rvinformer/informer/internal/backoff"
	"github.com/rvinformer/informer/internal/checkpoint"
	"github.com/rvinformer/informer/internal/listwatch"
	"github.com/rvinformer/informer/internal/report"
)

const (
	// lockPoll is how often a store is tried that another process has locked: the next process
	// in a rolling update begins soon after the old one has ended.
	lockPoll = 2 * time.Second
	// maxAnswers is how often a server may answer with an error when it is asked which cluster
	// it is of, which takes some minutes, before a run begins without.
	maxAnswers = 10
)

// subject is the set of objects that the checkpoint is about, once the server has said it.
type subject struct {
	source     checkpoint.Source
	identified bool
	// unanswered tells that the server answers lists, but does not say which cluster it is of.
	unanswered bool
}

// open is Begin without the save that a journal may need.
func (k *Keeper) open(ctx context.Context, acknowledged string) (resume string) {
	if k.hold.phase != refused {
		k.hold.phase = away
		if k.retryUntil(ctx, func() error { return k.hold.lock(k.Store) }, anyFailure, lockPoll) != nil {
			return ""
		}
		k.hold.phase = locked
	}
	before := k.subject.source
	before.Cluster = k.Cluster.UID()
	if !k.identify(ctx) {
		return ""
	}
	if k.hold.loaded { // what is known is newer
		if k.hold.phase == locked {
			k.hold.phase = owns
		}
		if k.journal != nil {
			k.journal.Stop() // another process may have used the store meanwhile
		}
		return k.goOn(before, acknowledged)
	}
	err := k.retryUntil(ctx, func() (err error) {
		resume, err = k.load(ctx)
		return err
	}, isOfStore, backoff.Longest)
	if err != nil && ctx.Err() != nil { // the next run loads
		return ""
	}
	k.hold.loaded, k.hold.phase = true, owns
	if isForeign(err) {
		k.hold.phase = refused
		k.Release()
	}
	k.Cluster.Learn(k.subject.source.Cluster)
	return resume
}

// goOn returns the resource version from which a later run of the informer can go on.
func (k *Keeper) goOn(before checkpoint.Source, acknowledged string) (resume string) {
	if err := k.subject.source.Check(before); err != nil { // there is another cluster at the same address
		k.Cluster.Replace(k.subject.source.Cluster, &k.Report.Gaps)
		k.Report.Fail(err)
	}
	k.Cluster.Learn(k.subject.source.Cluster)
	return k.covered(acknowledged)
}

// retryUntil calls do, at least every poll, until it succeeds, fails for a reason that does not
// pass, or ctx ends. It reports failures after growing pauses.
func (k *Keeper) retryUntil(ctx context.Context, do func() error, passes func(error) bool, poll time.Duration) error {
	waits := backoff.OrDefault(k.Backoff)
	var reported error
	failed := false
	for next := time.Now(); ; {
		err := do()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			if failed {
				k.Report.Forget(reported)
				k.Report.CheckpointUnused(nil)
			}
			return nil
		case !passes(err):
			k.Report.Fail(k.unused(err))
			return err
		}
		err, failed = k.unused(err), true
		if now := time.Now(); !now.Before(next) {
			k.Report.Fail(err)
			k.Report.Enter(report.Backoff)
			reported, next = err, now.Add(waits.Step())
		}
		if err := backoff.Sleep(ctx, min(time.Until(next), poll)); err != nil {
			return err
		}
	}
}

func anyFailure(error) bool { return true }

// isOfStore reports whether a failure to load is one of the store, which may pass, and not one of
// the checkpoint in it.
func isOfStore(err error) bool {
	return !isForeign(err) && !isAny(err, checkpoint.ErrDamaged, io.ErrUnexpectedEOF)
}

// identify asks the server which set of objects is followed until it says so, or ctx ends. A
// server that answers with errors is asked some times only, and one that answers nothing but lists
// is asked once.
func (k *Keeper) identify(ctx context.Context) (identified bool) {
	waits := backoff.OrDefault(k.Backoff)
	for answers := 0; ; {
		source, err := k.Server.Identify(ctx)
		if !k.subject.identified {
			k.subject.source = source
		}
		if ctx.Err() != nil {
			return false
		}
		var answer apierrors.APIStatus
		if errors.As(err, &answer) {
			answers++
		}
		if err == nil || answers >= maxAnswers || answer == nil && k.Server.Responds(ctx) {
			k.subject = subject{source: source, identified: true, unanswered: err != nil}
			return true
		}
		k.Report.Fail(fmt.Errorf("what the checkpoint is of: %w", err))
		k.Report.Enter(report.Backoff)
		if backoff.Sleep(ctx, max(waits.Step(), listwatch.RetryAfter(err))) != nil {
			return false
		}
	}
}
