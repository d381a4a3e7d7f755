package keeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/listwatch"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/engine/server"
	"github.com/rvinformer/informer/internal/leaf/backoff"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/leaf/failure"
	"github.com/rvinformer/informer/internal/leaf/keytable"
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

// lockedStore is a store as the runs of an informer use it. They lock it, find out which set of
// objects is followed, read the content once, leave alone what is not theirs to replace, and save
// what changes.
type lockedStore struct {
	Options

	hold    hold
	subject subject
	pending pending
	saved   saved
	// unvouched counts the errors by which the server has answered whether the content is of its cluster.
	unvouched int
	// failure is that of the last save, nil if it did not fail.
	failure error
}

func newLockedStore(o Options, interval time.Duration, changes int) lockedStore {
	if o.Interval == 0 {
		o.Interval = interval
	}
	if o.Changes == 0 {
		o.Changes = changes
	}
	o.Report.NameCheckpoint(nameOf(o.Store))
	return lockedStore{Options: o, pending: newPending()}
}

// open locks the store, asks the server which set of objects is followed, and calls load, which
// reads the content of the store. It waits for all three, and for content that is the informer's,
// or until ctx ends. It reports whether the content may be replaced.
func (s *lockedStore) open(ctx context.Context, load func(ctx context.Context) error) bool {
	s.hold.phase = away
	if s.retryUntil(ctx, s.lock, anyFailure, lockPoll) != nil || !s.identify(ctx) {
		return false
	}
	err := s.retryUntil(ctx, func() error { return s.loadOwn(ctx, load) }, s.mayPass, backoff.Longest)
	if err != nil && ctx.Err() != nil { // the next run loads
		return false
	}
	s.hold.loaded, s.hold.phase = true, owns
	return true
}

// lock locks the store, if it is not.
func (s *lockedStore) lock() error {
	if err := s.hold.lock(s.Store); err != nil {
		return err
	}
	s.hold.phase = locked
	return nil
}

// loadOwn has the content of the store loaded. It unlocks a store whose content is another's, which
// may be using it, and then locks it and asks the server again: either may be mended.
func (s *lockedStore) loadOwn(ctx context.Context, load func(ctx context.Context) error) error {
	if s.hold.phase == away {
		if err := s.lock(); err != nil {
			return err
		}
		if !s.identify(ctx) {
			return context.Cause(ctx)
		}
	}
	err := load(ctx)
	if isForeign(err) && !s.BeginAnew {
		s.hold.phase = away
		s.release()
	}
	return err
}

// retryUntil calls do, at least every poll, until it succeeds, fails for a reason that does not
// pass, or ctx ends. It reports failures after growing pauses.
func (s *lockedStore) retryUntil(ctx context.Context, do func() error, passes func(error) bool, poll time.Duration) error {
	waits := backoff.OrDefault(s.Backoff)
	var reported error
	failed := false
	for next := time.Now(); ; {
		err := do()
		switch {
		case err == nil: // also if ctx has ended meanwhile: what is loaded is known
			if failed {
				s.Report.Forget(reported)
				s.Report.CheckpointUnused(nil)
			}
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !passes(err):
			s.Report.Fail(s.unused(err))
			return err
		}
		err, failed = s.unused(err), true
		if now := time.Now(); !now.Before(next) {
			s.Report.Fail(err)
			s.Report.Enter(api.PhaseBackoff)
			reported, next = err, now.Add(waits.Step())
		}
		if err := backoff.Sleep(ctx, min(time.Until(next), poll)); err != nil {
			return err
		}
	}
}

func anyFailure(error) bool { return true }

// mayPass reports whether to wait after a failure to load: for the store, or for content that is
// the informer's. Content that cannot be used is replaced otherwise.
func (s *lockedStore) mayPass(err error) bool {
	if isForeign(err) {
		return !s.BeginAnew
	}
	return !isAny(err, api.ErrCheckpointDamaged, io.ErrUnexpectedEOF, ErrUnfit)
}

// identify asks the server which set of objects is followed until it says so, or ctx ends. A
// server that answers with errors is asked some times only, and one that answers nothing but lists
// is asked once.
func (s *lockedStore) identify(ctx context.Context) (identified bool) {
	waits := backoff.OrDefault(s.Backoff)
	for answers := 0; ; {
		source, err := s.Server.Identify(ctx)
		source.Shard = s.Shard.String()
		if !s.subject.identified {
			s.subject.source = source
		}
		if ctx.Err() != nil {
			return false
		}
		var answer apierrors.APIStatus
		if errors.As(err, &answer) {
			answers++
		}
		if err == nil || answers >= maxAnswers || answer == nil && s.Server.Responds(ctx) {
			s.subject = subject{source: source, identified: true, unanswered: err != nil}
			return true
		}
		s.Report.Fail(fmt.Errorf("what the checkpoint is of: %w", err))
		s.Report.Enter(api.PhaseBackoff)
		if backoff.Sleep(ctx, max(waits.Step(), listwatch.RetryAfter(err))) != nil {
			return false
		}
	}
}

// lookup returns the version of an object in the store's content, and whether that has one.
type lookup = func(key string) (v keytable.Version, isKnown bool)

// vouch checks by its objects that a checkpoint is of the cluster of the server, if that does not
// say which cluster it is of. Where a few objects leave it open, all objects of the server are
// compared: content returns what they are compared with. If that leaves it open as well, the
// follower asks again when a watch is open.
func (s *lockedStore) vouch(ctx context.Context, metadata map[string]string, objects []object.Known, empty bool, content func() (lookup, error)) error {
	source, resume := checkpoint.SourceFrom(metadata), metadata[checkpoint.MetadataResourceVersion]
	cluster := source.Cluster
	if resume == "0" {
		resume = ""
	}
	if resume == "" && len(objects) == 0 || cluster != "" && cluster == s.subject.source.Cluster {
		return nil
	}
	a, err := s.Server.Ask(ctx, server.Inquiry{
		ResourceVersion: resume,
		Objects:         func() []object.Known { return objects },
		ResourceOnly:    resume == "" || cluster != "" || s.subject.unanswered,
		Empty:           empty && source.Shard == "", // others have what is not in the shard
	})
	if ctx.Err() == nil && resume != "" && len(objects) > 0 && isOpen(a, err) {
		a, err = s.compare(ctx, resume, source, content)
	}
	var answer apierrors.APIStatus
	switch {
	case ctx.Err() != nil: // it may have no answer for that reason alone
		return context.Cause(ctx)
	case a.Identity == server.Another:
	case err == nil, a.Identity == server.Same, listwatch.Classify(err) == listwatch.TooLarge:
		return nil
	default:
		if errors.As(err, &answer) {
			s.unvouched++
		}
		if s.unvouched >= maxAnswers {
			return nil
		}
		return fmt.Errorf("whether the checkpoint is of this cluster: %w", err)
	}
	return &api.CheckpointSourceError{Differences: []api.CheckpointSourceDifference{{Field: "cluster", Saved: a.Expected, Wanted: a.Found}}}
}

// isOpen reports whether an answer about a few objects, or none, leaves open which cluster it is of.
func isOpen(a server.Answer, err error) bool {
	switch a.Identity {
	case server.Same, server.Another:
		return false
	case server.Doubtful:
		return true
	}
	return a.Refused || listwatch.Classify(err) == listwatch.TooLarge
}

// compare compares all objects of the server with the content of the store.
func (s *lockedStore) compare(ctx context.Context, resume string, of checkpoint.Source, content func() (lookup, error)) (a server.Answer, err error) {
	c := server.Comparison{ResourceVersion: resume}
	if c.Shard, err = api.ParseShard(of.Shard); err != nil {
		return a, nil // a newer library's
	}
	if c.Lookup, err = content(); err != nil {
		return a, err
	}
	return s.Server.Compare(ctx, c)
}

// release unlocks the store.
func (s *lockedStore) release() {
	if err := s.hold.release(); err != nil {
		s.Report.Fail(err)
	}
}

// read has the content of the store read, if it has any.
func (s *lockedStore) read(ctx context.Context, decode func(from io.Reader) error) error {
	from, err := s.Store.Load(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return failure.OfStore("CheckpointStore.Load", "", err)
	}
	defer s.close(from)
	err = decode(from)
	if wrong := new(api.CheckpointError); errors.As(err, &wrong) && !isAny(err, wrongContent...) {
		return failure.OfStore("CheckpointStore.Load", "", err)
	}
	return err
}

// metadata is that of content which is saved with p.
func (s *lockedStore) metadata(p point) map[string]string {
	source := s.subject.source
	source.Cluster, source.Server = p.cluster, p.server
	metadata := source.Metadata()
	if p.resume != "" {
		metadata[checkpoint.MetadataResourceVersion] = p.resume
	}
	if p.redelivery != "" {
		metadata[checkpoint.MetadataRedelivery] = p.redelivery
	}
	return metadata
}

// address is where the cluster is reached, or was when the run began.
func (s *lockedStore) address() string {
	return cmp.Or(s.Cluster.Server(), s.subject.source.Server)
}

// hasMoved reports whether the cluster is reached at another address than the content names.
func (s *lockedStore) hasMoved() bool { return s.saved.server != "" && s.saved.server != s.address() }

// nameOf is the name of a store in Status.
func nameOf(store Store) string {
	if named, ok := store.(fmt.Stringer); ok {
		return named.String()
	}
	return fmt.Sprintf("%T", store)
}

// close reports the error of a store after everything was read.
func (s *lockedStore) close(from io.Closer) {
	if err := from.Close(); err != nil {
		s.Report.Fail(failure.OfStore("CheckpointStore.Load", "", err))
	}
}

// unused notes why the checkpoint is not in use, and returns err as it is to be reported.
func (s *lockedStore) unused(err error) error {
	err = &api.UnusedCheckpointError{Checkpoint: nameOf(s.Store), NeverSaved: isForeign(err) && !s.BeginAnew, Err: err}
	s.Report.CheckpointUnused(err)
	return err
}

// wrongContent are the errors of a store's content. Others of a checkpoint.Reader are those of the
// store.
var wrongContent = []error{api.ErrCheckpointFormat, api.ErrCheckpointVersion, checkpoint.ErrEarlier, api.ErrCheckpointDamaged, io.ErrUnexpectedEOF}

// foreign are the reasons to leave content alone: it is not this informer's to replace.
var foreign = []error{api.ErrCheckpointSource, api.ErrCheckpointFormat, api.ErrCheckpointVersion}

// isForeign reports whether err is of content that is not this informer's to replace.
func isForeign(err error) bool { return !errors.Is(err, ErrUnfit) && isAny(err, foreign...) }

func isAny(err error, reasons ...error) bool {
	for _, reason := range reasons {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}
