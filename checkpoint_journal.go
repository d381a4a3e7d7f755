package informer

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/checkpoint"
	"github.com/rvinformer/informer/internal/deltaqueue"
	"github.com/rvinformer/informer/internal/keytable"
	"github.com/rvinformer/informer/internal/report"
)

const (
	// journalLeast is the size up to which a journal grows beside however small a checkpoint.
	journalLeast = 256 << 10
	// journalAhead is how many keys are written down at once, if so many wait.
	journalAhead = 256
	// journalKept is the most memory that a journal keeps for what is added next.
	journalKept = 64 << 10
)

// errNoJournal says that a journal takes nothing until the whole checkpoint is saved.
var errNoJournal = errors.New("checkpoint journal cannot be used before a save")

// journal writes down what changes between two saves of a checkpoint: a key before the handler
// is called for it, and what the handler has acknowledged with whatever is written next.
//
// Its mutex is taken within those of the queue and the storage, and never held while the store
// is at work.
type journal struct {
	store CheckpointAppender
	// failed is told why the journal is not usable any more.
	failed func(error)
	// turn is taken by the one that appends.
	turn chan struct{}

	mu      sync.Mutex
	state   journalState
	records checkpoint.Journal
	spare   []byte
	// begun are the keys for which the handler was perhaps called, and has not acknowledged.
	// True are those that the store has. Unwritten are those in records.
	begun     map[string]bool
	unwritten []string
	// size is what was appended since the last save, and base the size of that.
	size, base int64
}

// journalState is what becomes of records.
type journalState int

const (
	// journalOff: nothing is recorded, until the whole checkpoint is saved: there is none yet, or
	// an append has failed.
	journalOff journalState = iota
	// journalWaits: what is recorded waits for a save under way.
	journalWaits
	// journalOn: what is recorded is appended.
	journalOn
)

func newJournal(store CheckpointAppender, failed func(error)) *journal {
	return &journal{store: store, failed: failed, turn: make(chan struct{}, 1), begun: map[string]bool{}}
}

// begin writes down keys before the handler is called for them. Where that fails, the handler
// is called all the same, and a save follows.
func (j *journal) begin(ctx context.Context, keys []string) {
	if !j.add(keys) {
		return
	}
	if !j.take(ctx) {
		return
	}
	defer j.give()
	if !j.add(keys) { // another worker has written them meanwhile
		return
	}
	if err := j.appendRecords(ctx); err != nil {
		j.fail(err)
	}
}

// has reports whether the store has key, so that its handler may be called.
func (j *journal) has(key string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.begun[key]
}

// add adds keys that are not written down, and reports whether the store lacks any.
func (j *journal) add(keys []string) (missing bool) {
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
	return missing && j.state == journalOn
}

func (j *journal) addLocked(key string) {
	if j.state != journalOff {
		j.records.Add(checkpoint.Begun, key, &keytable.Binary{})
		j.unwritten = append(j.unwritten, key)
	}
}

// acknowledge notes that the handler has acknowledged a version of key, which before compared
// to the one that was known as given.
func (j *journal) acknowledge(key string, version keytable.Version, known keytable.Comparison) {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, begun := j.begun[key]
	delete(j.begun, key)
	unchanged := known.SameVersion && known.SameObject && (known.Identified || version.UID == "")
	if j.state != journalOff && (begun || !unchanged) {
		b := version.Binary()
		j.records.Add(checkpoint.Acknowledged, key, &b)
	}
}

// forget notes that the handler has acknowledged that key is gone.
func (j *journal) forget(key string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.begun, key)
	if j.state != journalOff {
		j.records.Add(checkpoint.Gone, key, &keytable.Binary{})
	}
}

func (j *journal) take(ctx context.Context) bool {
	select {
	case j.turn <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (j *journal) give() { <-j.turn }

// appendRecords appends what was added. The caller has the turn.
func (j *journal) appendRecords(ctx context.Context) error {
	j.mu.Lock()
	frames, keys := j.records.Take(j.spare), j.unwritten
	j.spare, j.unwritten = nil, nil
	j.mu.Unlock()
	if len(frames) == 0 {
		return nil
	}
	if err := j.store.Append(ctx, frames); err != nil {
		return report.OfStore("CheckpointStore.Append", "", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.size += int64(len(frames))
	j.writtenLocked(keys)
	if cap(frames) <= journalKept {
		j.spare, j.unwritten = frames[:0], keys[:0]
	}
	return nil
}

// writtenLocked notes that the store has keys.
func (j *journal) writtenLocked(keys []string) {
	for _, key := range keys {
		if _, begun := j.begun[key]; begun {
			j.begun[key] = true
		}
	}
}

// fail has the journal take nothing until the next save.
func (j *journal) fail(err error) {
	j.stop()
	j.failed(err)
}

// stop ends the use of the journal until the next save.
func (j *journal) stop() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.state = journalOff
	j.records, j.spare, j.unwritten = checkpoint.Journal{}, nil, nil
}

// goOn goes on with a journal that was read.
func (j *journal) goOn(s savedState) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.state, j.size, j.base = journalOn, s.journal, s.whole-s.journal
	for key := range s.begun {
		j.begun[key] = true
	}
}

// full reports whether a save is due, because the journal cannot be used, or is larger than the
// checkpoint.
func (j *journal) full() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.state == journalOff || j.size > max(j.base, journalLeast)
}

// commit appends what was added, and a resource version up to which all is acknowledged, so
// that a crash of the machine does not lose it.
func (j *journal) commit(ctx context.Context, resume string) error {
	if err := j.appendResume(ctx, resume); err != nil {
		return err
	}
	if err := j.store.Sync(ctx); err != nil {
		return report.OfStore("CheckpointStore.Sync", "", err)
	}
	return nil
}

func (j *journal) appendResume(ctx context.Context, resume string) error {
	if !j.take(ctx) {
		return context.Cause(ctx)
	}
	defer j.give()
	version := keytable.Version{ResourceVersion: resume}.Binary()
	j.mu.Lock()
	on := j.state == journalOn
	if on {
		j.records.Add(checkpoint.Resume, "", &version)
	}
	j.mu.Unlock()
	if !on {
		return errNoJournal
	}
	err := j.appendRecords(ctx)
	if err != nil {
		j.stop()
	}
	return err
}

// pending reports whether there are keys that are begun. Without a journal, there are none.
func (j *journal) pending() bool {
	if j == nil {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.begun) > 0
}

// conclude withdraws the keys for which no handler was called, at the end of a run: what was
// written down ahead and is not delivered any more.
func (j *journal) conclude(storage *ResourceVersionStorage) {
	j.mu.Lock()
	keys := slices.Collect(maps.Keys(j.begun))
	j.mu.Unlock()
	for _, key := range keys {
		version, exists, unsettled := storage.told(key)
		switch {
		case unsettled:
		case exists:
			j.acknowledge(key, version, keytable.Comparison{})
		default:
			j.forget(key)
		}
	}
}

// restart is called within a save, before the storage is read for it: the journal that follows
// what is saved begins with the keys that are begun, and with what was acknowledged up to now.
// Where no journal could be appended to before, tail is that beginning, which the save must
// write itself: a process that ends after the save, and before anything is appended, would
// leave a checkpoint without those keys.
func (j *journal) restart(ctx context.Context, unsettled []string) (begin journalRestart, err error) {
	if !j.take(ctx) {
		return begin, context.Cause(ctx)
	}
	defer j.give()
	j.mu.Lock()
	begin = journalRestart{off: j.state == journalOff, size: j.size}
	if begin.off {
		j.state = journalWaits
	}
	for _, key := range unsettled {
		if _, begun := j.begun[key]; !begun {
			j.begun[key] = false
		}
	}
	for key := range j.begun {
		j.addLocked(key)
	}
	if begin.off {
		begin.tail, begin.keys = j.records.Take(nil), j.unwritten
		j.unwritten = nil
	}
	j.mu.Unlock()
	if begin.off {
		return begin, nil
	}
	return begin, j.appendRecords(ctx)
}

// journalRestart is what a journal was when a save began, and what the save must write of it.
type journalRestart struct {
	off  bool
	size int64
	// tail has the keys that are begun, if off.
	tail []byte
	keys []string
}

// saved notes that the whole checkpoint was saved, in base bytes, or why not. What was recorded
// meanwhile is appended.
func (j *journal) saved(ctx context.Context, begin journalRestart, base int64, err error) {
	if err != nil {
		if begin.off {
			j.stop()
		}
		return
	}
	j.mu.Lock()
	j.size, j.base = j.size-begin.size+int64(len(begin.tail)), base
	if begin.off {
		j.state = journalOn
		j.writtenLocked(begin.keys)
	}
	j.mu.Unlock()
	if !j.take(ctx) {
		return
	}
	defer j.give()
	if err := j.appendRecords(ctx); err != nil {
		j.fail(err)
	}
}

// announce writes down the keys of entries before the handler is called for them, and those of
// what waits behind them too: then few are written down one by one.
func (f *flow) announce(ctx context.Context, queue *deltaqueue.Queue, entries []*deltaqueue.Entry) {
	if f.checkpointer == nil || f.checkpointer.journal == nil {
		return
	}
	j := f.checkpointer.journal
	if len(entries) == 1 && j.has(entries[0].Key) {
		return
	}
	var keys []string
	add := func(e *deltaqueue.Entry) {
		if !f.repeats(e) {
			keys = append(keys, e.Key)
		}
	}
	for _, e := range entries {
		add(e)
	}
	if len(keys) == 0 {
		return
	}
	if len(keys) < journalAhead {
		queue.Upcoming(journalAhead-len(keys), add)
	}
	j.begin(ctx, keys)
}

// repeats reports whether an entry shows no more than what the handler has.
func (f *flow) repeats(e *deltaqueue.Entry) bool {
	return len(e.Deltas) == 1 && e.Deltas[0].Type == cache.Replaced && f.storage.shows(e.Key, e.Version)
}
