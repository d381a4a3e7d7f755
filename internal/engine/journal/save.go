package journal

import (
	"context"
	"iter"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/leaf/failure"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// Continue goes on with a journal that was read: with the keys that are begun in it, its size,
// and the size of the checkpoint before it.
func (j *Journal) Continue(begun iter.Seq[string], size, base int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.state, j.size, j.base = on, size, base
	clear(j.begun)
	for key := range begun {
		j.begun[key] = true
	}
}

// Sign has the next append begin with the name of the run that writes from then on. Resume and
// redelivery are those of the checkpoint, which stay until a Commit or a save.
func (j *Journal) Sign(writer, resume, redelivery string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.addResumeLocked(writer, resume, redelivery)
}

func (j *Journal) addResumeLocked(writer, resume, redelivery string) {
	version := keytable.Version{ResourceVersion: resume, UID: types.UID(redelivery)}.Binary()
	j.records.Add(checkpoint.Resume, writer, &version)
}

// Flush appends what was added. It is called before a save: what Sign has added is true of the content
// that the save replaces, and not of the saved one.
func (j *Journal) Flush(ctx context.Context) {
	if !j.take(ctx) {
		return
	}
	defer j.give()
	if err := j.appendRecords(ctx); err != nil {
		j.fail(err)
	}
}

// Full reports whether the whole checkpoint should be saved, because the journal cannot be used,
// or has become larger than the checkpoint.
func (j *Journal) Full() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.state == off || j.size > max(j.base, minFull)
}

// Commit appends what was added, a resource version up to which all is acknowledged, and the text of
// the redelivery that is under way, if there is one. Once it
// returns nil, they survive a crash of the machine. The error is ErrUnusable if the journal cannot
// be used.
func (j *Journal) Commit(ctx context.Context, resume, redelivery string) error {
	if err := j.appendResume(ctx, resume, redelivery); err != nil {
		return err
	}
	return failure.OfStore("CheckpointStore.Sync", "", j.store.Sync(ctx))
}

func (j *Journal) appendResume(ctx context.Context, resume, redelivery string) error {
	if !j.take(ctx) {
		return context.Cause(ctx)
	}
	defer j.give()
	j.mu.Lock()
	usable := j.state == on
	if usable {
		j.addResumeLocked("", resume, redelivery)
	}
	j.mu.Unlock()
	if !usable {
		return ErrUnusable
	}
	return j.appendRecords(ctx)
}

// Restart is the state of a journal when a save has begun.
type Restart struct {
	off  bool
	size int64
	// begins is the size of the journal's beginning.
	begins int64
	// Tail has the keys that are begun, if nothing could be appended before. The save must write
	// it itself: a process that ends after the save, and before anything is appended, would leave
	// a checkpoint without those keys.
	Tail []byte
	keys []string
}

// Restart is called within a save, before the known versions are read for it. The journal behind
// the saved checkpoint begins with the keys that are begun, to which it adds unsettled ones, with
// the dead letters, and with what was acknowledged up to now. Read calls its argument with the keys
// and the letters, which do not change before that has returned: what comes after them is recorded
// after them.
func (j *Journal) Restart(ctx context.Context, read func(begin func(unsettled []string, letters []api.DeadLetter))) (r Restart, err error) {
	if !j.take(ctx) {
		return r, context.Cause(ctx)
	}
	defer j.give()
	read(func(unsettled []string, letters []api.DeadLetter) { r = j.begin(unsettled, letters) })
	if r.off {
		return r, nil
	}
	err = j.appendRecords(ctx)
	j.mu.Lock()
	defer j.mu.Unlock()
	r.begins = j.size - r.size
	return r, err
}

// begin records what the journal begins with.
func (j *Journal) begin(unsettled []string, letters []api.DeadLetter) (r Restart) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r = Restart{off: j.state == off, size: j.size}
	if r.off {
		j.state = waits
	}
	for _, key := range unsettled {
		if _, begun := j.begun[key]; !begun {
			j.begun[key] = false
		}
	}
	for key := range j.begun {
		j.addLocked(key)
	}
	for _, letter := range letters {
		j.addLetterLocked(letter)
	}
	if r.off {
		r.Tail, r.keys = j.records.Take(nil), j.unwritten
		j.unwritten = nil
		r.begins = int64(len(r.Tail))
	}
	return r
}

// Saved notes that the save of r has saved the whole checkpoint, in base bytes, or why it has not.
// It appends what was recorded meanwhile.
func (j *Journal) Saved(ctx context.Context, r Restart, base int64, err error) {
	if err != nil {
		if r.off {
			j.Stop()
		}
		return
	}
	j.mu.Lock()
	j.size, j.base = j.size-r.size+int64(len(r.Tail)), base+r.begins
	if r.off {
		j.state = on
		j.writtenLocked(r.keys)
	}
	j.mu.Unlock()
	j.Flush(ctx)
}
