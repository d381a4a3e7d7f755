package keeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// defaultSnapshotInterval is less than the five minutes for which a kube-apiserver keeps a resource
// version, so that a process that was killed can still go on from its last snapshot.
const defaultSnapshotInterval = 3 * time.Minute

// ErrUnfit says that a snapshot is of the objects that are followed, and cannot be used all the
// same.
var ErrUnfit = errors.New("snapshot cannot be used")

// Content is a set of whole objects that Snapshots saves. Its methods are called by any goroutine.
type Content interface {
	// Resume returns the resource version up to which everything is in the content, empty if that
	// is not known.
	Resume() string
	// State returns the present state.
	State() State
	// Restore fills the content, which is empty, with a state that was written. Resume is what it
	// was saved with. The error wraps that of from, or ErrUnfit; the content is empty then.
	Restore(ctx context.Context, resume string, from *checkpoint.PayloadReader) error
	// Lookup returns what looks up the versions of the objects in a state that was written. The content
	// stays as it is.
	Lookup(from *checkpoint.PayloadReader) (lookup func(key string) (v keytable.Version, isKnown bool), err error)
}

// State is one state of a Content. It does not change while it is written.
type State struct {
	// Resume is that of the Content at this moment.
	Resume string
	// Sample are some of the objects.
	Sample []object.Known
	Write  func(w *checkpoint.PayloadWriter) error
}

// Snapshots keeps a set of whole objects in a store, by the rules of checkpoints. Begin, Run and
// End are called one after the other, and the other methods by any goroutine.
type Snapshots struct {
	lockedStore
	content Content
	// settings have to be those of the process that saved, because they change what the content
	// has.
	settings func() map[string]string
}

// NewSnapshots returns Snapshots of a content that is kept with these settings. They have not
// begun.
func NewSnapshots(o Options, content Content, settings func() map[string]string) *Snapshots {
	return &Snapshots{lockedStore: newLockedStore(o, defaultSnapshotInterval, math.MaxInt), content: content, settings: settings}
}

// Begin locks the store and restores the content from it. It returns the resource version from
// which a run can go on, or nothing. It waits for the store and the server as Keeper.Begin does.
func (s *Snapshots) Begin(ctx context.Context) (resume string) {
	isFirst := !s.hold.loaded
	if s.open(ctx, func(ctx context.Context) (err error) {
		if isFirst { // else what the informer has is newer
			resume, err = s.load(ctx)
		}
		return err
	}) && isFirst {
		s.Cluster.Learn(s.subject.source.Cluster)
	}
	return resume
}

// Run saves what is worth it until ctx ends. A save that failed is tried again after growing
// pauses.
func (s *Snapshots) Run(ctx context.Context) { s.keepSaving(ctx, s.saver()) }

// End saves what is not saved and unlocks the store. Ctx has ended.
func (s *Snapshots) End(ctx context.Context) {
	defer s.release()
	if of := s.saver(); of.changes() > 0 || of.moved(true) {
		s.saveLast(ctx, of)
	}
}

func (s *Snapshots) saver() saver {
	return saver{
		changes: s.pending.changes.Load,
		moved: func(ended bool) bool {
			return claimed(s.content.Resume(), ended) != s.saved.resume || s.hasMoved()
		},
		save: s.save,
	}
}

// Listed notes that a list has begun, or is complete. Either is saved soon: the reason for the list
// may be that a watch from the saved version does not show everything.
func (s *Snapshots) Listed() { s.pending.noteList() }

// claimed returns the resource version that a snapshot may claim. Versions without an order are
// claimed once nothing more can come, as in a checkpoint.
func claimed(resume string, ended bool) string {
	if resume == "0" || !rv.Ordered(resume) && !ended { // a server takes "0" for any version
		return ""
	}
	return resume
}

// save saves the content. Ended tells that it does not change any more.
func (s *Snapshots) save(ctx context.Context, ended bool) error {
	if s.hold.phase != owns {
		return nil
	}
	return s.write(ctx, func(w io.Writer) (p point, err error) {
		p.cluster = s.Cluster.UID() // before the state: another cluster is a gap, for which a state has no version
		p.server = s.address()
		state := s.content.State()
		p.resume = claimed(state.Resume, ended)
		cw := checkpoint.NewSnapshotWriter(w)
		if err := s.writeHead(cw, p, state.Sample); err != nil {
			return p, err
		}
		payload := cw.Payload()
		if err := state.Write(payload); err != nil {
			return p, err
		}
		return p, payload.Close()
	})
}

// writeHead writes what identifies the content.
func (s *Snapshots) writeHead(w *checkpoint.Writer, p point, sample []object.Known) error {
	metadata := s.metadata(p)
	maps.Copy(metadata, s.settings())
	if err := w.AllMetadata(metadata); err != nil {
		return err
	}
	for _, o := range sample {
		v := o.Version.Binary()
		if err := w.Entry(o.Key, &v); err != nil {
			return err
		}
	}
	return nil
}

// load restores the content from what the store has, and returns the resource version to go on
// from.
func (s *Snapshots) load(ctx context.Context) (resume string, err error) {
	resume, err = s.restore(ctx, func() (lookup, error) { return nil, errOpen })
	if !errors.Is(err, errOpen) {
		return resume, err
	}
	// Hardly any run comes here, so the others read the content only once.
	of, err := s.lookup(ctx)
	if err != nil {
		return "", err
	}
	return s.restore(ctx, func() (lookup, error) { return of, nil })
}

// errOpen says that the objects in the head of a snapshot leave open which cluster it is of.
var errOpen = errors.New("the objects in the head do not tell the cluster")

// lookup reads the objects in what the store has, and returns what looks them up.
func (s *Snapshots) lookup(ctx context.Context) (of lookup, err error) {
	err = s.read(ctx, func(from io.Reader) error {
		r := checkpoint.NewSnapshotReader(from)
		if _, err := readSample(r); err != nil {
			return err
		}
		of, err = s.content.Lookup(r.Payload())
		return err
	})
	if of == nil && err == nil { // it was removed meanwhile
		err = errOpen
	}
	return of, err
}

// restore is load. Compared returns the objects with which those of the server are compared, if the
// head does not tell the cluster.
func (s *Snapshots) restore(ctx context.Context, compared func() (lookup, error)) (resume string, err error) {
	err = s.read(ctx, func(from io.Reader) error {
		r := checkpoint.NewSnapshotReader(from)
		sample, err := readSample(r)
		if isAny(err, api.ErrCheckpointVersion, checkpoint.ErrEarlier) { // nothing is lost: what is in it is listed
			return fmt.Errorf("%w: %w", ErrUnfit, err)
		}
		if err != nil {
			return err
		}
		v, err := accept(s.subject.source, r.Metadata(), nothingKnown)
		if err != nil {
			return err
		}
		if v.has != sameShard { // an object that is in it may be outside now, or is missing
			return fmt.Errorf("%w: it is of the shard %q, not %q", ErrUnfit, checkpoint.SourceFrom(r.Metadata()).Shard, s.Shard)
		}
		for name, wanted := range s.settings() {
			if saved := r.Metadata()[name]; saved != wanted {
				return fmt.Errorf("%w: it was saved with %s %q, not %q", ErrUnfit, name, saved, wanted)
			}
		}
		if err := s.vouch(ctx, r.Metadata(), sample, len(sample) == 0, compared); err != nil {
			return err
		}
		s.Cluster.Learn(v.cluster)
		if err := s.content.Restore(ctx, v.claims, r.Payload()); err != nil {
			return err
		}
		p := point{resume: v.claims, cluster: v.cluster, server: checkpoint.SourceFrom(r.Metadata()).Server}
		s.saved, resume = saved{p, time.Now()}, v.claims
		if s.hasMoved() {
			s.pending.changes.Add(1) // it is to name this address soon
			s.pending.noteList()
		}
		return nil
	})
	return resume, err
}

// readSample reads the head, and returns the objects in it.
func readSample(r *checkpoint.Reader) (sample []object.Known, err error) {
	for {
		key, lent, err := r.Next()
		if err == io.EOF {
			return sample, nil
		}
		if err != nil {
			return nil, err
		}
		v := lent.Version()
		sample = append(sample, object.Known{Key: strings.Clone(key), Version: keytable.Version{
			ResourceVersion: strings.Clone(v.ResourceVersion), UID: types.UID(strings.Clone(string(v.UID))),
		}})
	}
}
