// Package journal writes down what changes between two saves of a checkpoint: a key before the
// handler is called for it, and what the handler has acknowledged. With it, a process that is
// killed at any moment leaves everything that its handler may know.
//
// A Journal belongs to the keeper of a checkpoint. The delivery calls Begin, and the known
// versions call Acknowledge and Forget. A key is begun from Begin until one of the two.
package journal

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/leaf/failure"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

const (
	// minFull is the size up to which a journal grows beside however small a checkpoint.
	minFull = 256 << 10
	// maxSpare is the most memory that a journal keeps for what is added next.
	maxSpare = 64 << 10
)

// ErrUnusable says that a journal takes nothing until the whole checkpoint is saved.
var ErrUnusable = errors.New("checkpoint journal cannot be used before a save")

// errEnded is the failure of a store that has ended its goroutine, as a failed assertion of a test
// does.
var errEnded = errors.New("CheckpointStore.Append has ended its goroutine")

// Store takes what is appended to a checkpoint. It is the CheckpointAppender of the root package,
// which says what the methods promise.
type Store interface {
	Append(ctx context.Context, b []byte) error
	Sync(ctx context.Context) error
}

// Journal is the journal behind a checkpoint. It is safe for concurrent use.
//
// Its mutex is taken within those of the queue and of the known versions, and is never held while
// the store is at work.
type Journal struct {
	store Store
	// failed is called with the reason when the journal cannot be used any more.
	failed func(error)
	// turn holds a value while the store is appended to.
	turn chan struct{}

	mu      sync.Mutex
	state   state
	records checkpoint.Journal
	spare   []byte
	// begun are the keys for which the handler was perhaps called, and has not acknowledged.
	// True are those that the store has. Unwritten are those in records.
	begun     map[string]bool
	unwritten []string
	// size is what was appended since the last save, and base the size of that save.
	size, base int64
}

// state is what happens to records.
type state int

const (
	// off: nothing is recorded until the whole checkpoint is saved, because there is none yet, or
	// because an append has failed.
	off state = iota
	// waits: what is recorded waits for a save under way.
	waits
	// on: what is recorded is appended.
	on
)

// New returns the journal of a store. It takes nothing before Continue or a save.
func New(store Store, failed func(error)) *Journal {
	return &Journal{store: store, failed: failed, turn: make(chan struct{}, 1), begun: map[string]bool{}}
}

// Begin writes down keys before the handler is called for them. If that fails, the handler is
// called all the same, and a save follows. It is not called if ctx has ended before they were
// written: otherwise a kill during the shutdown could leave an object in the sink whose deletion no
// later process would deliver.
func (j *Journal) Begin(ctx context.Context, keys []string) (mayCall bool) {
	if missing, isOn := j.add(keys); !missing || !isOn {
		return !missing || ctx.Err() == nil
	}
	if !j.take(ctx) {
		return false
	}
	defer j.give()
	if missing, isOn := j.add(keys); !missing || !isOn { // another worker has written them, or has failed
		return !missing || ctx.Err() == nil
	}
	err := j.appendRecords(ctx)
	if err != nil {
		j.fail(err)
	}
	return err == nil || ctx.Err() == nil
}

// Bury writes down a dead letter, before what comes after it counts as acknowledged. If that fails,
// a save follows.
func (j *Journal) Bury(ctx context.Context, letter api.DeadLetter) {
	if j.addLetter(letter) { // else a save has it
		j.Flush(ctx)
	}
}

func (j *Journal) addLetter(letter api.DeadLetter) (writes bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.addLetterLocked(letter)
	return j.state == on
}

func (j *Journal) addLetterLocked(letter api.DeadLetter) {
	if _, begun := j.begun[letter.Key]; !begun {
		j.begun[letter.Key] = false
	}
	if j.state != off {
		j.records.AddDeadLetter(letter)
		j.unwritten = append(j.unwritten, letter.Key)
	}
}

// Has reports whether the store has key, so that its handler may be called.
func (j *Journal) Has(key string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.begun[key]
}

// add adds keys that are not written down, and reports whether the store lacks any, and whether it
// can be appended to.
func (j *Journal) add(keys []string) (missing, isOn bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, key := range keys {
		written, begun := j.begun[key]
		if !begun {
			j.begun[key] = false
			j.addLocked(key)
		}
		missing = missing || !written
	}
	return missing, j.state == on
}

func (j *Journal) addLocked(key string) {
	if j.state != off {
		j.records.Add(checkpoint.Begun, key, &keytable.Binary{})
		j.unwritten = append(j.unwritten, key)
	}
}

// Acknowledge notes that the handler has acknowledged a version of key. Known is how the version
// compares to the one that was acknowledged before.
func (j *Journal) Acknowledge(key string, version keytable.Version, known keytable.Comparison) {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, begun := j.begun[key]
	delete(j.begun, key)
	unchanged := known.SameVersion && known.SameObject && (known.Identified || version.UID == "")
	if j.state != off && (begun || !unchanged) {
		b := version.Binary()
		j.records.Add(checkpoint.Acknowledged, key, &b)
	}
}

// Forget notes that the handler has acknowledged that key is gone. Letter is the dead letter that the
// key still has, nil for none.
func (j *Journal) Forget(key string, letter *api.DeadLetter) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.begun, key)
	if j.state != off {
		j.records.Add(checkpoint.Gone, key, &keytable.Binary{})
	}
	if letter != nil {
		j.addLetterLocked(*letter)
	}
}

// Begun returns the keys that are begun.
func (j *Journal) Begun() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Collect(maps.Keys(j.begun))
}

// take waits for the turn to append, and give gives it back.
func (j *Journal) take(ctx context.Context) bool {
	select {
	case j.turn <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (j *Journal) give() { <-j.turn }

// appendRecords appends what was added. The caller has the turn.
func (j *Journal) appendRecords(ctx context.Context) error {
	j.mu.Lock()
	frames, keys := j.records.Take(j.spare), j.unwritten
	j.spare, j.unwritten = nil, nil
	j.mu.Unlock()
	if len(frames) == 0 {
		return nil
	}
	returned := false
	defer func() {
		if !returned { // the store has ended the goroutine, and the records are lost
			j.fail(errEnded)
		}
	}()
	err := j.store.Append(ctx, frames)
	returned = true
	if err != nil {
		j.Stop()
		return failure.OfStore("CheckpointStore.Append", "", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.size += int64(len(frames))
	j.writtenLocked(keys)
	if cap(frames) <= maxSpare {
		j.spare, j.unwritten = frames[:0], keys[:0]
	}
	return nil
}

// writtenLocked notes that the store has keys.
func (j *Journal) writtenLocked(keys []string) {
	for _, key := range keys {
		if _, begun := j.begun[key]; begun {
			j.begun[key] = true
		}
	}
}

// fail ends the use of the journal until the next save, and says why.
func (j *Journal) fail(err error) {
	j.Stop()
	j.failed(err)
}

// Stop ends the use of the journal until the next save.
func (j *Journal) Stop() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.state = off
	j.records, j.spare, j.unwritten = checkpoint.Journal{}, nil, nil
}
