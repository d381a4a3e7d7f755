package oracle

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/rvinformer/informer"
)

// Options say how an Oracle is to judge. The zero value is strict.
type Options struct {
	// Now is the clock, for the times that a Violation shows. Default: time.Now.
	Now func() time.Time
	// Compare orders two resource versions of one epoch. It is asked only for what the
	// writes do not tell: where a claimed version is among them that no write had, and
	// whether an informer can know that an event is stale. An error means that the two
	// have no order. Default: resourceversion.CompareResourceVersion.
	Compare func(a, b string) (int, error)
	// Informers is how many share the budget that Queued is a sample of. Default: 1.
	Informers int
	// Late is how much later than it happened a write may be recorded. Default 0:
	// before anybody can hear of it.
	Late time.Duration
	// Disorder says that events reach the informer repeated or out of order, through a
	// broken proxy. It cannot know then that an event is older than a deletion, nor
	// anything of the order of versions that Compare has an error for: an old state is
	// no violation there.
	Disorder bool
	// Overtaken says that an event may come after a newer one, through a broken proxy. An informer
	// that has the newer one cannot know of the older, which the end of the connection may lose,
	// and so neither its status, nor where it goes on from, nor a checkpoint says what is
	// acknowledged.
	Overtaken bool
	// StaleLists says that a list may be older than the request for it, as that of a
	// replica that lags behind. The first list need not show all that existed when the
	// run began then.
	StaleLists bool
	// SeesLists says that Listed is called. Without, a run that goes on from a version
	// is taken to have listed as well, which excuses it from a deletion that only the
	// handler of a killed run can know of; and claims after a restore are
	// judged only of runs that began after it, with a list.
	SeesLists bool
	// Resyncs says that what has not changed may be told as Updated now and then, as
	// informers with a resync period do.
	Resyncs bool
	// Unreadable says that there are objects which the informer cannot read. It is told
	// of them by something later, and so neither its status, nor where it goes on from,
	// nor that it is synced says what is acknowledged.
	Unreadable bool
	// Panics, unless it is zero, is how many calls with a key have to panic in a run, since the last
	// one that acknowledged it, before the informer may give it up: 6 for those of this module that
	// have no InformerConfig.MaxAttempts.
	Panics int
	// Refusals, unless it is zero, is how many calls have to fail for a key by itself in a run, of it
	// alone or with FailedEvents that name it and not as Later, since the last one that acknowledged
	// it, before the informer may give it up: InformerConfig.MaxAttempts. With Panics as well, either is enough.
	// Default of both: when it gives up is not judged.
	Refusals int
	// UpdatesReplace says that an object which took the place of another one of its
	// name may be told as Updated, with no Deleted before it. Client-go's informers do
	// so when a list shows the other object.
	UpdatesReplace bool
}

// Oracle records what a server did and what a program was told of it, and judges
// whether that was right. It may be used by several goroutines at once; the order of
// the calls of its methods is taken for the order of events.
//
// One Oracle is for one followed set of objects and one informer.
type Oracle struct {
	options Options
	began   time.Time
	// questions counts those how many keys wait.
	questions atomic.Int64
	// redeliveries counts the calls of Redelivering.
	redeliveries atomic.Int64

	mu      sync.Mutex
	records []record // only ever appended to
	calls   int
	// dead: a run was killed, and none has begun since. Deaths counts how often.
	dead   bool
	deaths int
	// letters are the dead letters of the newest checkpoint.
	letters map[string]string
}

// New returns an Oracle that knows of nothing.
func New(opts Options) *Oracle {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Compare == nil {
		opts.Compare = resourceversion.CompareResourceVersion
	}
	if opts.Informers <= 0 {
		opts.Informers = 1
	}
	return &Oracle{options: opts, began: opts.Now()}
}

// WriteType is what a write did.
type WriteType string

const (
	// Created: the object was not there before.
	Created WriteType = "Created"
	// Updated: the object was there, in another version.
	Updated WriteType = "Updated"
	// Deleted: the object is gone. The version is that of the deletion.
	Deleted WriteType = "Deleted"
	// Other: something else was written, which only moves the sequence of versions on.
	// Key and UID are of no matter.
	Other WriteType = "Other"
)

// Write is one write to the server.
type Write struct {
	Type WriteType
	// Key is "namespace/name", or "name" for a cluster-scoped object.
	Key string
	UID types.UID
	// ResourceVersion is the one that the write made.
	ResourceVersion string
}

// Wrote records a write. Writes are recorded in the order that the server made
// them, those of other resources too if it is known when (as Other): the order is what
// tells which version is newer. Options.Late says how soon.
func (o *Oracle) Wrote(w Write) { o.record(w) }

// Restored records that the server's state was replaced by an older one, as that of
// etcd from a backup: its version is rv now, and state is every object that exists. The
// versions that follow may have been used before, for something else. Called before
// anything else, it says what there was when the recording began.
//
// The state is the Oracle's to keep.
func (o *Oracle) Restored(rv string, state []Write) { o.record(restoration{rv, state}) }

// Run is the beginning of one run of an informer, and what it knows then.
//
// A run with neither Resumed nor Known begins with nothing, and so does its handler: whatever
// was told before does not count any more.
type Run struct {
	// Resumed is the version from which it watches, without a list, as it found it in a
	// checkpoint, or kept it from its last run. Empty: it lists.
	Resumed string
	// Known is what its storage holds when it begins, versions by key: from the run
	// before, from a checkpoint, or filled by the program. In the first run the handler
	// knows that too; later it knows what it has acknowledged, and an empty map says
	// that only the informer begins with nothing. An empty version is that of an object
	// which the handler may have begun to take in. It is the Oracle's to keep.
	//
	// Nil with Resumed set means all that was acknowledged, but for what a killed run
	// may not have saved since the last checkpoint but one: a save takes its time.
	Known map[string]string
	// Begun holds the keys that Known has with a version, and whose handler may have begun to take
	// in another state: a checkpoint's journal announces a key before its call. A run tells of such
	// an object again, even if it is unchanged. It is the Oracle's to keep.
	Begun map[string]bool
	// Dead holds the keys of the dead letters in the checkpoint that it goes on from. It is the
	// Oracle's to keep.
	Dead map[string]bool
	// Journaled says that what is known includes every key that the handler was told of, also by a
	// process that was killed. Else only such a process may have known a key, and its deletion is
	// not told by a list.
	Journaled bool
	// Shard is the part of the set that it follows. What is not in it is forgotten, and so is the
	// handler's knowledge of that. Default: all.
	Shard informer.Shard
	// IgnoresSynced says that the informer was asked not to tell of unchanged objects.
	IgnoresSynced bool
	// Followers is how many lists and watches of its own it may have at a time: one for each
	// handler of a shared informer. Default: 1. That many times, Requests may be asked.
	Followers int
}

// Started records that a run of the informer begins. It is called before the informer
// sends its first request.
func (o *Oracle) Started(r Run) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dead = false
	o.recordLocked(r)
}

// Stopped records that the run is over: it has returned, and nothing is told
// any more; or killed, its process has died, and what was told since its last
// checkpoint may be told again. One whose last checkpoint could not be saved is as good
// as killed. What a killed run goes on to tell, ask, claim, store and queue, in a test that
// only plays a death, is not recorded until the next Started.
func (o *Oracle) Stopped(killed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.recordLocked(halt{killed})
	if killed && !o.dead {
		o.dead = true
		o.deaths++
	}
}

// Event is what a handler is told of one object.
type Event struct {
	Type informer.EventType
	Key  string
	// UID and ResourceVersion are those of the object. Of a deletion the version is
	// that of the deletion or the one last known, or empty.
	UID             types.UID
	ResourceVersion string
	// IsInInitialList tells that the first complete list brought it.
	IsInInitialList bool
	// FinalStateUnknown tells that only a list found the deletion.
	FinalStateUnknown bool
	// Object, if set, is looked at when the call begins and when it is done: its name,
	// UID and version have to be those of the Event, and to stay so. It is not kept.
	Object runtime.Object
}

// What a call can be done with besides nil and the handler's own error.
var (
	// ErrPanic says that the handler has panicked.
	ErrPanic = errors.New("the handler panicked")
	// ErrExit says that the handler has ended its goroutine (runtime.Goexit). It is
	// not owed those events again, before a list shows those objects.
	ErrExit = errors.New("the handler ended its goroutine")
)

// Told records that a call of the handler begins, with one event or with a batch.
// Done records its end, before the handler returns: nil acknowledges the events, informer.FailedEvents
// all but those that it names, and another error none. A second call of done does nothing, nor does
// one after the run was killed.
func (o *Oracle) Told(events ...Event) (done func(err error)) {
	told := call{events: make([]Event, len(events))}
	objects := make([]runtime.Object, len(events))
	for i, e := range events {
		objects[i] = e.Object
		told.events[i], told.wrong = withoutObject(e, told.wrong)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dead {
		return func(error) {}
	}
	told.number = o.calls
	o.calls++
	o.recordLocked(told)
	deaths := o.deaths

	var once sync.Once
	return func(err error) {
		once.Do(func() {
			returned := answer{number: told.number, err: err}
			for i, obj := range objects {
				returned.wrong = appendChange(returned.wrong, told.events[i], obj, "during the call")
			}
			o.mu.Lock()
			defer o.mu.Unlock()
			if o.deaths == deaths {
				o.recordLocked(returned)
			}
		})
	}
}

// Kept looks again at an object that a handler was told of and has kept after
// the call: the Event says what it was then. Not for a RawObject, which is only lent.
func (o *Oracle) Kept(e Event) {
	for _, wrong := range appendChange(nil, e, e.Object, "after the call") {
		o.recordAlive(look{wrong})
	}
}

// Stored records which version the informer's store holds of a key, empty for none,
// while a call begins that tells of the key. It is for informers whose store moves with
// each acknowledgement: one that tells a Deleted and an Added in two calls, and stores
// after both, is not to be asked in between.
func (o *Oracle) Stored(key, version string) {
	o.recordAlive(storeLook{strings.Clone(key), strings.Clone(version)})
}

// Listed records that the informer asks for a list, or for a watch that begins with
// one; not that it asks for a further page. Options.SeesLists says that this is called.
func (o *Oracle) Listed() { o.recordAlive(listed{}) }

// Redelivering records that the informer is asked to tell again of objects. From here on until all
// is settled, what was acknowledged may be told as Updated, and the end of an object that is gone as
// a Deleted. Done is to be called when the informer says that it has told of all objects.
func (o *Oracle) Redelivering() (done func()) {
	number := int(o.redeliveries.Add(1))
	o.recordAlive(redelivering{number})
	return func() { o.recordAlive(redelivered{number}) }
}

// Requested records that the informer sends a request to the server, which is told in words for
// whoever reads a Violation. The further pages of a list are left out, but where a page is asked
// for again: how many there are is the server's to say.
func (o *Oracle) Requested(what string) { o.recordAlive(request{strings.Clone(what)}) }

// Synced records that HasSynced was seen to be true. Only the first time in a run is
// of interest. For an informer that was synced in an earlier run of its own, HasSynced
// is true from the beginning, and is not to be recorded again.
func (o *Oracle) Synced() { o.recordAlive(synced{}) }

// The sources of claims.
const (
	// FromStatus: the informer says so of itself.
	FromStatus = "status"
	// FromCheckpoint: the version was saved in a checkpoint.
	FromCheckpoint = "checkpoint"
)

// Claimed records that the source says that everything up to the version rv is
// acknowledged. An empty rv claims nothing, except that a checkpoint was saved.
//
// It is called while no write and no acknowledgement can come in between, or with a
// version that was read before.
func (o *Oracle) Claimed(source, rv string) { o.recordAlive(claim{source, rv}) }

// Queued records how many bytes of a budget with that limit are in use, and the size
// of the largest object that can be in it. After Stopped(false), a budget that is not
// shared is to be given back.
func (o *Oracle) Queued(bytes, limit, largest int64) { o.recordAlive(sample{bytes, limit, largest}) }

// Waiting records how many keys have something that is not acknowledged, as ask says when it asks
// the informer: those that wait for the handler, and those that are with it. Calls may begin and
// return meanwhile.
func (o *Oracle) Waiting(ask func() int) {
	question := int(o.questions.Add(1))
	o.recordAlive(asked{question})
	keys := ask()
	o.recordAlive(waiting{question, keys})
}

// Settled records that there are no faults and all is quiet: the handler was told of
// everything that it will be told of. After a restore that takes a list: a watch may go
// on as if nothing had happened. Stored is what the informer's store holds then,
// versions by key; nil: it has none, or it was not read. It is the Oracle's to keep.
func (o *Oracle) Settled(stored map[string]string) { o.record(rest{stored}) }

// GaveUp records that the informer has reported that it does not try again to tell of
// a key, before a list shows it: its handler has panicked too often.
func (o *Oracle) GaveUp(key string) { o.recordAlive(surrender{key}) }

// Buried records all dead letters that a checkpoint has: changes that the informer does not try again
// to tell of. Letters has for each key a text, which is another one for another letter. A letter that
// the checkpoint before had, and this one does not, has ended: the informer owes its change. It is
// called before Claimed for that checkpoint. Letters is the Oracle's to keep.
func (o *Oracle) Buried(letters map[string]string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dead || len(letters)+len(o.letters) == 0 {
		return
	}
	var ended []string
	for key := range o.letters {
		if _, still := letters[key]; !still {
			ended = append(ended, key)
		}
	}
	slices.Sort(ended)
	o.letters = letters
	o.recordLocked(buried{letters, ended})
}

// Check judges what was recorded by all Validators. The error is nil, or the
// *Violations joined by errors.Join.
func (o *Oracle) Check() error {
	history := o.History()
	var violations []error
	for _, v := range Validators() {
		for _, violation := range v.Check(history) {
			violations = append(violations, violation)
		}
	}
	return errors.Join(violations...)
}

// History is what was recorded until now.
func (o *Oracle) History() *History {
	o.mu.Lock()
	records := o.records[:len(o.records):len(o.records)]
	o.mu.Unlock()
	return newHistory(o.options, records)
}

func (o *Oracle) record(what any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.recordLocked(what)
}

// recordAlive records what the program under test did, if it is not dead.
func (o *Oracle) recordAlive(what any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.dead {
		o.recordLocked(what)
	}
}

func (o *Oracle) recordLocked(what any) {
	o.records = append(o.records, record{at: o.options.Now().Sub(o.began), what: what})
}
