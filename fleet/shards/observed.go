package shards

import (
	"context"
	"maps"
	"strconv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// observed is what a replica knows of the Leases of its fleet. All times are this replica's own.
//
// Resource versions alone do not say which of two states of a Lease is the present one, because a
// server that was restored from a backup gives them again. So what is known has a rank: the order
// in which it was learned. The answer of a request outranks all that was known before the request
// was sent. The watch may lag behind answers: until it has shown what was read, it counts only
// where it is newer. If it does not show that in time, or contradicts it, the Lease is read again.
type observed struct {
	wake     func()        // something that matters to a decision has changed; called with mu held
	patience time.Duration // for the watch to show what was read

	mu      sync.Mutex
	synced  bool
	learned uint64                 // the newest rank
	members map[string]memberLease // by the name of the Lease
	units   map[string]unitLease   // the same; one that was deleted stays, with its epoch
}

// contradiction is how long a contradiction between a request and the watch may last before the
// Lease is read again.
const contradiction = time.Second

// knowledge is how something about a Lease is known.
type knowledge struct {
	rank uint64 // larger: learned later
	// reread is when to read the Lease again. It is zero if the watch has shown what is known.
	reread time.Time
}

// origin is from where a Lease is known: the watch, or a request.
type origin struct {
	asked bool
	sent  uint64 // the newest rank when the request was sent
}

// fromWatch is the origin of Leases that the informer has read.
var fromWatch = origin{}

// memberLease is a Lease of a member.
type memberLease struct {
	knowledge
	name, version string
	uid           types.UID
	identity      string // empty: released
	units         string // the digest of the units that it knows
	leaving       bool
	deleted       bool // the rest is what it was
	duration      time.Duration
	// since is when it was first observed, or first again after it had expired.
	since time.Time
	// renewed is when its newest version was observed.
	renewed time.Time
	// renewals counts the versions since then that were observed after the first one: one that has
	// none may be long dead.
	renewals int
	// watched is when the watch has shown a version of it last.
	watched time.Time
	// dead says that the API server confirmed this version after it had expired.
	dead bool
}

// expires is when the member counts as dead unless it is renewed.
func (m memberLease) expires() time.Time { return m.renewed.Add(m.duration) }

// expired reports whether the member has not been renewed for as long as its Lease says.
func (m memberLease) expired(now time.Time) bool { return m.identity == "" || !now.Before(m.expires()) }

// unitLease is a Lease of a unit.
type unitLease struct {
	knowledge
	name, version string
	uid           types.UID
	text          string // the unit
	holder        string // empty: released
	epoch         int64
	transitions   int32
	highest       int64 // epoch ever observed
	weight        int64 // zero: not known
	deleted       bool  // the rest is what it was
}

func newObserved(patience time.Duration, wake func()) *observed {
	return &observed{patience: patience, wake: wake, members: map[string]memberLease{}, units: map[string]unitLease{}}
}

// OnBatch takes what the informer of Leases has read.
func (o *observed) OnBatch(_ context.Context, events []informer.Event) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	wake, now := false, time.Now()
	for _, e := range events {
		if e.Type == informer.Deleted {
			wake = o.forgetLocked(e) || wake
		} else if lease, ok := e.Object.(*coordinationv1.Lease); ok {
			wake = o.noteLocked(lease, now, fromWatch) || wake
		}
	}
	if wake {
		o.wake()
	}
	return nil
}

// asking is the origin of a request that is sent now.
func (o *observed) asking() origin {
	o.mu.Lock()
	defer o.mu.Unlock()
	return origin{asked: true, sent: o.learned}
}

// note takes a Lease that this replica has read or written itself.
func (o *observed) note(lease *coordinationv1.Lease, from origin) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.noteLocked(lease, time.Now(), from) {
		o.wake()
	}
}

// noteLocked reports whether what is new matters to a decision.
func (o *observed) noteLocked(lease *coordinationv1.Lease, now time.Time, from origin) bool {
	switch lease.Labels[labelRole] {
	case roleMember:
		return o.noteMemberLocked(lease, now, from)
	case roleUnit:
		return o.noteUnitLocked(lease, now, from)
	}
	// Somebody has removed the label.
	if _, known := o.units[lease.Name]; known {
		return o.noteUnitLocked(lease, now, from)
	}
	if _, known := o.members[lease.Name]; known {
		return o.noteMemberLocked(lease, now, from)
	}
	return false
}

// noteUnit takes the Lease of a unit that this replica has read or written itself, whatever its
// labels are. It returns the rank of the state that the request has met or made: what has a larger
// one was learned later.
func (o *observed) noteUnit(lease *coordinationv1.Lease, from origin) (rank uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.noteUnitLocked(lease, time.Now(), from) {
		o.wake()
	}
	if u := o.units[lease.Name]; u.version == lease.ResourceVersion && !u.deleted {
		return u.rank
	}
	return from.sent
}

// verdict is what becomes of a state of a Lease beside the one that is known.
type verdict int

const (
	replaces verdict = iota
	confirms
	contradicts
)

// judgeLocked compares a state with the one that is known, and returns how the one that counts from
// now on is known. same says that both are the same.
func (o *observed) judgeLocked(known knowledge, same bool, order rv.Order, now time.Time, from origin) (verdict, knowledge) {
	next := knowledge{rank: o.learned + 1}
	if from.asked {
		next.reread = now.Add(o.patience)
	}
	switch {
	case same && !from.asked:
		return confirms, knowledge{rank: known.rank}
	case same && known.reread.IsZero():
		return confirms, known
	case same:
		return confirms, knowledge{rank: known.rank, reread: next.reread}
	case from.asked && known.rank <= from.sent, // nothing was learned since it was sent
		!from.asked && known.reread.IsZero(), // the watch has its own order
		order == rv.Newer:
		o.learned++
		return replaces, next
	}
	if at := now.Add(contradiction); known.reread.IsZero() || at.Before(known.reread) {
		known.reread = at
	}
	return contradicts, known
}

func (o *observed) noteMemberLocked(lease *coordinationv1.Lease, now time.Time, from origin) bool {
	before, known := o.members[lease.Name]
	watched := before.watched
	if !from.asked {
		watched = now
	}
	same := known && lease.ResourceVersion == before.version && !before.deleted
	verdict, knowledge := o.judgeLocked(before.knowledge, same, rv.Compare(lease.ResourceVersion, before.version), now, from)
	if verdict != replaces {
		before.watched, before.knowledge = watched, knowledge
		o.members[lease.Name] = before
		return verdict == contradicts
	}
	m := memberLease{
		knowledge: knowledge,
		name:      lease.Name,
		version:   lease.ResourceVersion,
		uid:       lease.UID,
		identity:  ptr.Deref(lease.Spec.HolderIdentity, ""),
		units:     lease.Labels[labelUnits],
		leaving:   lease.Labels[labelLeaving] == "true",
		duration:  time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second,
		since:     now,
		renewed:   now,
		watched:   watched,
	}
	returned := known && before.expired(now)
	if known && !returned {
		m.since, m.renewals = before.since, before.renewals+1
	}
	o.members[lease.Name] = m
	return !known || returned || before.deleted || m.renewals == 1 || from.asked ||
		m.identity != before.identity || m.units != before.units || m.leaving != before.leaving
}

func (o *observed) noteUnitLocked(lease *coordinationv1.Lease, now time.Time, from origin) bool {
	before := o.units[lease.Name]
	u := unitLease{
		name:        lease.Name,
		version:     lease.ResourceVersion,
		uid:         lease.UID,
		text:        lease.Annotations[annotationUnit],
		holder:      ptr.Deref(lease.Spec.HolderIdentity, ""),
		epoch:       epochOf(lease),
		weight:      weightOf(lease),
		transitions: ptr.Deref(lease.Spec.LeaseTransitions, 0),
	}
	u.highest = max(before.highest, u.epoch)
	same := u
	same.knowledge, same.highest = before.knowledge, before.highest
	verdict, knowledge := o.judgeLocked(before.knowledge, same == before, rv.Compare(u.version, before.version), now, from)
	if verdict != replaces {
		u = before
	}
	u.knowledge = knowledge
	o.units[lease.Name] = u
	return verdict != confirms
}

func weightOf(lease *coordinationv1.Lease) int64 {
	weight, err := strconv.ParseInt(lease.Annotations[annotationWeight], 10, 64)
	if err != nil || weight < 0 || weight > maxWeight {
		return 0
	}
	return weight
}

// forgetLocked reports whether a deletion matters to a decision.
func (o *observed) forgetLocked(e informer.Event) bool {
	accessor, err := meta.Accessor(e.Object)
	if err != nil {
		return false
	}
	name, uid := accessor.GetName(), accessor.GetUID()
	if m, ok := o.members[name]; ok && m.uid == uid && m.leaving {
		delete(o.members, name)
		return true
	}
	if m, ok := o.members[name]; ok && m.uid == uid {
		o.goneLocked(name, time.Time{})
		return true
	}
	if u, ok := o.units[name]; ok && u.uid == uid {
		o.goneLocked(name, time.Time{})
		return true
	}
	return false
}

// goneLocked takes note that there is no such Lease. reread is when to ask again.
func (o *observed) goneLocked(name string, reread time.Time) {
	o.learned++
	learned := knowledge{rank: o.learned, reread: reread}
	if m, ok := o.members[name]; ok {
		// It has not stopped in order. It may be alive: it works for as long as its Lease would
		// have lasted.
		m.deleted, m.knowledge = true, learned
		o.members[name] = m
	}
	if u, ok := o.units[name]; ok {
		u.deleted, u.holder, u.knowledge = true, "", learned
		o.units[name] = u
	}
}

// noteGone takes note that a request has not found a Lease.
func (o *observed) noteGone(name string, from origin) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.wake()
	m, isMember := o.members[name]
	u, isUnit := o.units[name]
	known, deleted := u.knowledge, u.deleted
	if isMember {
		known, deleted = m.knowledge, m.deleted
	}
	now := time.Now()
	switch {
	case !isMember && !isUnit:
	case deleted && known.rank <= from.sent:
		o.goneLocked(name, time.Time{}) // found twice
	case known.rank <= from.sent:
		o.goneLocked(name, now.Add(o.patience))
	default:
		known.reread = now.Add(contradiction)
		if isMember {
			m.knowledge = known
			o.members[name] = m
		} else {
			u.knowledge = known
			o.units[name] = u
		}
	}
}

// confirmGone takes note that the API server has no Lease of a member. known is what was observed
// before.
func (o *observed) confirmGone(name string, known memberLease) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.members[name].version == known.version {
		o.members[name] = memberLease{name: name, deleted: true, dead: true}
	}
}

// confirmDead takes note that the API server has a member's Lease still in the version that has
// expired.
func (o *observed) confirmDead(name, version string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if m, ok := o.members[name]; ok && m.version == version {
		m.dead = true
		o.members[name] = m
	}
}

// drop forgets a member.
func (o *observed) drop(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.members, name)
}

// sync takes note that the informer has synced.
func (o *observed) sync() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.synced = true
	o.wake()
}

// snapshot returns copies.
func (o *observed) snapshot() (members map[string]memberLease, units map[string]unitLease, synced bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.members), maps.Clone(o.units), o.synced
}
