package oracle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer"
)

// Sharded records that the informer is asked to follow another shard. Done records that the call has returned. Without Sharded, the whole set
// is followed.
//
// After done, no call of the handler begins for an object that is not in the shard. One that begins at the same time of Options.Now as done is
// excused: the informer may have been about to make it. So is one that tells of an object right after a call with the end of another object of the
// same name, during which the shard changed: the two were handed over together.
//
// Objects that have left the shard are forgotten, and so is the handler's knowledge of them. Objects that have come to it are to be told until all has settled,
// or until Covered says that claims are about all of the shard.
func (o *Oracle) Sharded(to informer.Shard) (done func()) {
	o.record(resharded{to})
	return func() { o.record(confined{}) }
}

// Covered records that the informer says that it has read all of its shard: what is claimed from now on is about all of it.
func (o *Oracle) Covered() { o.recordAlive(covered{}) }

func (r resharded) text() string {
	if r.to.IsAll() {
		return "the whole set"
	}
	return r.to.String()
}

func confinedToShard() Validator {
	return Validator{
		Name:  "shard",
		Doc:   "No call begins for an object that is not in the shard, once the informer has been told which shard that is.",
		Check: checkShard,
	}
}

func checkShard(h *History) []*Violation {
	return checkTellings(h, "shard", (*memory).strays, func(_ *memory, t *telling) int { return h.from(t) })
}

// strays is why t is not in the shard, if so.
func (m *memory) strays(t *telling) string {
	uid := m.h.uidOf(t)
	switch {
	case t.UID == "" && t.before.unsure, m.includes(t.Key, uid), m.mayBeOfFormer(t.record) && m.wasIn(t.Key, uid), m.follows(t):
		return ""
	}
	return fmt.Sprintf("%s, and it is not in the shard", t.text())
}

// change is the last change of the shard, with those that came right before it.
type change struct {
	// reshaped is its record.
	reshaped int
	// formers are the shards before it, for which calls may yet begin: the informer was about to make them.
	formers []informer.Shard
	// until is when the change was made, up to which such calls may begin; never while it is being made.
	until time.Duration
}

// confine notes that the change has been made.
func (m *memory) confine(n int) { m.until = m.h.records[n].at }

// mayBeOfFormer reports whether a call that begins with a record may be for a former shard.
func (m *memory) mayBeOfFormer(n int) bool {
	return len(m.formers) > 0 && (m.until == never || m.h.records[n].at == m.until)
}

// follows reports whether t was handed over together with the end of the object before it: the shard changed during that call.
func (m *memory) follows(t *telling) bool {
	return t.Type != informer.Deleted && m.keys[t.key].ended == m.h.records[t.record].at
}

// forgetFormers ends the time in which calls may begin for former shards, if it is over at a record.
func (m *memory) forgetFormers(n int) {
	if len(m.formers) == 0 || m.mayBeOfFormer(n) {
		return
	}
	m.formers = nil
	for i := range m.keys {
		if k := &m.keys[i]; k.leaving {
			k.leaving, k.unsure = false, false
		}
	}
}

// wasIn reports whether an object is in one of the former shards.
func (m *memory) wasIn(key string, uid types.UID) bool {
	return slices.ContainsFunc(m.formers, func(s informer.Shard) bool { return inShard(s, key, uid) })
}

// wasAlwaysIn reports whether an object is in the shard and in all of the former ones.
func (m *memory) wasAlwaysIn(key string, uid types.UID) bool {
	return m.includes(key, uid) && !slices.ContainsFunc(m.formers, func(s informer.Shard) bool { return !inShard(s, key, uid) })
}

// sharing is what changes of the shard have made of what a handler has of a key.
type sharing struct {
	// left is the last change of the shard that had it forgotten, or during a call with it, and entered the last one that had it followed.
	left, entered int
	// ended is when a call returned that told of the end of an object, and during which the key left the shard.
	ended time.Duration
	// leaving: it has left a moment ago, and is unsure for as long as a call may begin that the informer was about to make.
	leaving bool
	// pending: it has come to the shard, and is not owed before a list that shows it.
	pending bool
	// away is what the handler had when it was forgotten. A run may go on from before that.
	away *knowledge
	// nameless: the last telling of the key is a deletion without a UID, and it was not acknowledged. The informer may not know the UID
	// either. Then it forgets the key when the shard changes, unless the new shard contains the former one.
	nameless bool
	// told is the UID of the object that this run told of last and that was not acknowledged, empty if that is not known.
	told types.UID
}

// reshard has another shard followed.
func (m *memory) reshard(n int, to informer.Shard) {
	former := m.shard
	m.shard, m.change = to, change{reshaped: n, formers: append(m.formers, former), until: never}
	for i := range m.keys {
		k, line := &m.keys[i], &m.h.keys[i]
		at, exists := m.h.at(line, n)
		if k.calls > 0 {
			k.left = n
		}
		if uid, known := m.known(k, line, n); known && !m.includes(line.key, uid) {
			m.leave(k, n)
		}
		k.together = nil // of a batch that failed, some may have left
		if k.nameless && to.Key == informer.ShardByUID && !to.Contains(former) {
			k.initial = false
		}
		m.recall(k, line, n)
		if !exists || line.states[at].gone {
			continue
		}
		if uid := line.states[at].uid; m.includes(line.key, uid) && !inShard(former, line.key, uid) {
			k.entered, k.pending = n, true
		}
	}
}

// resharded reports whether the shard was changed since the last checkpoint but one: a save takes its time. From a checkpoint of another shard, an informer
// does not take what the handler had only begun with: it does not know whether that is in its own.
func (m *memory) resharded() bool { return m.reshaped > m.saved[1] }

// known is the UID of the object that the handler or the run knows, or that the handler has been told of.
func (m *memory) known(k *knowledge, line *timeline, n int) (uid types.UID, known bool) {
	at, exists := m.h.at(line, n)
	switch {
	case k.present && k.uid != "":
		return k.uid, true
	case k.place != never && (k.present || k.behind): // or it is what the run began with
		return line.states[k.place].uid, true
	case !k.present && k.told != "":
		return k.told, true
	case exists && (k.present || k.unsure || k.together != nil || k.initial || k.excused > 0):
		return line.states[at].uid, true
	}
	return "", false
}

// leave has a key forgotten.
func (m *memory) leave(k *knowledge, n int) {
	before := *k
	*k = nothing()
	k.calls, k.left, k.away = before.calls, n, before.away
	// An informer that does not run forgets what it knows when it runs again. It does not know
	// to which shard an object belongs that the handler has only begun with.
	k.leaving = m.running
	k.unsure = before.unsure || k.leaving
	if before.present {
		before.away = nil
		k.away = &before
	}
}

// comeBack has the handler know what it knew when a key was forgotten, as an informer does that goes on from before that.
func (m *memory) comeBack(k *knowledge) {
	entered, pending := k.entered, k.pending
	*k = *k.away
	k.calls, k.unsure, k.entered, k.pending = 0, true, entered, pending
}

// recall notes that an object which has left the shard, and is in it again, may be known nevertheless. A run that has neither told of anything nor listed
// may not have read its checkpoint yet, and the checkpoint may have that object. The oracle accepts both: that the run forgets it, and that it knows it.
func (m *memory) recall(k *knowledge, line *timeline, n int) {
	version, known := m.knows(m.now, line, n)
	if !known || !m.running || m.stirred || k.present {
		return
	}
	k.unsure, k.behind, k.leaving = true, true, false
	k.place, _ = line.find(version, "", 0, m.h.seen(line, n))
}

// knows is what a run knows of a key of its shard.
func (m *memory) knows(r Run, line *timeline, n int) (version string, known bool) {
	version, known = r.Known[line.key]
	if !known || m.shard.IsAll() {
		return version, known
	}
	if version == "" { // which of the objects of that name it is, is not known
		return "", slices.ContainsFunc(line.states[:m.h.seen(line, n)], func(s state) bool { return m.includes(line.key, s.uid) })
	}
	if at, ok := line.last(version, "", m.h.seen(line, n)); ok && !m.includes(line.key, line.states[at].uid) {
		return "", false
	}
	return version, true
}

// includes reports whether an object is in the shard that is followed, as far as its UID is known.
func (m *memory) includes(key string, uid types.UID) bool { return inShard(m.shard, key, uid) }

func inShard(s informer.Shard, key string, uid types.UID) bool {
	if s.IsAll() || s.Key == informer.ShardByUID && uid == "" {
		return true
	}
	namespace := ""
	if at := strings.IndexByte(key, '/'); at >= 0 {
		namespace = key[:at]
	}
	return s.Includes(namespace, string(uid))
}

// uidOf is the UID of the object that t tells of. It is empty if it is not known: t is a deletion without a UID, and the handler knows no object of
// that name.
func (h *History) uidOf(t *telling) types.UID {
	switch {
	case t.UID != "":
		return t.UID
	case t.before.uid != "":
		return t.before.uid
	case t.place != never && t.before.present:
		return h.keys[t.key].states[t.place].uid
	}
	return ""
}
