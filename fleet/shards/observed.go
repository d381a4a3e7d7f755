package shards

import (
	"context"
	"strconv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/rv"
)

// observed is what a replica knows of the Leases of its fleet. All times are this replica's own.
type observed struct {
	wake func() // something that matters to a decision has changed

	mu      sync.Mutex
	synced  bool
	members map[string]memberLease // by the name of the Lease
	units   map[string]unitLease   // the same; one that was deleted stays, with its epoch
}

// ownFirst is for how long what this replica has read or written itself outranks older versions from the watch, which may lag. Later
// older versions are believed, because a server that was restored from a backup has them.
const ownFirst = 30 * time.Second

// memberLease is a Lease of a member.
type memberLease struct {
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
	// renewals counts the versions since then that were observed after the first one: one that has none may be long dead.
	renewals int
	// watched is when the watch has shown a version of it last.
	watched time.Time
	// read is when this replica has read the version itself; zero if it is from the watch.
	read time.Time
	// dead says that the API server confirmed this version after it had expired.
	dead bool
}

// expires is when the member counts as dead unless it is renewed.
func (m memberLease) expires() time.Time { return m.renewed.Add(m.duration) }

// expired reports whether the member has not been renewed for as long as its Lease says.
func (m memberLease) expired(now time.Time) bool { return m.identity == "" || !now.Before(m.expires()) }

// unitLease is a Lease of a unit.
type unitLease struct {
	name, version string
	uid           types.UID
	text          string // the unit
	holder        string // empty: released
	epoch         int64
	highest       int64     // epoch ever observed
	weight        int64     // zero: not known
	deleted       bool      // the rest is what it was
	read          time.Time // as in memberLease
}

func newObserved(wake func()) *observed {
	return &observed{wake: wake, members: map[string]memberLease{}, units: map[string]unitLease{}}
}

// OnBatch takes what the informer of Leases has read.
func (o *observed) OnBatch(_ context.Context, events []informer.Event) error {
	wake := false
	now := time.Now()
	o.mu.Lock()
	for _, e := range events {
		if e.Type == informer.Deleted {
			wake = o.forgetLocked(e) || wake
		} else if lease, ok := e.Object.(*coordinationv1.Lease); ok {
			wake = o.noteLocked(lease, now, time.Time{}) || wake
		}
	}
	o.mu.Unlock()
	if wake {
		o.wake()
	}
	return nil
}

// note takes a Lease that this replica has read or written itself.
func (o *observed) note(lease *coordinationv1.Lease) {
	if o.noteOne(lease) {
		o.wake()
	}
}

func (o *observed) noteOne(lease *coordinationv1.Lease) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	return o.noteLocked(lease, now, now)
}

// noteLocked reports whether what is new matters to a decision.
func (o *observed) noteLocked(lease *coordinationv1.Lease, now, read time.Time) bool {
	switch lease.Labels[labelRole] {
	case roleMember:
		return o.noteMemberLocked(lease, now, read)
	case roleUnit:
		return o.noteUnitLocked(lease, now, read)
	}
	// Somebody has removed the label.
	if _, known := o.units[lease.Name]; known {
		return o.noteUnitLocked(lease, now, read)
	}
	if _, known := o.members[lease.Name]; known {
		return o.noteMemberLocked(lease, now, read)
	}
	return false
}

// noteUnit takes the Lease of a unit that this replica has read or written itself, whatever its labels are.
func (o *observed) noteUnit(lease *coordinationv1.Lease) {
	if o.noteOneUnit(lease) {
		o.wake()
	}
}

func (o *observed) noteOneUnit(lease *coordinationv1.Lease) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	// The watch says that a Lease is deleted that has lost its labels.
	if u, ok := o.units[lease.Name]; ok && u.deleted && u.uid == lease.UID {
		u.deleted, u.version = false, ""
		o.units[lease.Name] = u
	}
	return o.noteUnitLocked(lease, now, now)
}

// outdated reports whether a version that is known outranks another one.
func outdated(version, known string, now, read, knownRead time.Time) bool {
	if version == known {
		return true
	}
	if read.IsZero() && (knownRead.IsZero() || now.Sub(knownRead) > ownFirst) {
		return false // the watch has its own order
	}
	return rv.NotNewer(version, known)
}

func (o *observed) noteMemberLocked(lease *coordinationv1.Lease, now, read time.Time) bool {
	before, known := o.members[lease.Name]
	watched := before.watched
	if read.IsZero() {
		watched = now
	}
	if known && outdated(lease.ResourceVersion, before.version, now, read, before.read) {
		before.watched = watched
		o.members[lease.Name] = before
		return false
	}
	m := memberLease{
		name:     lease.Name,
		version:  lease.ResourceVersion,
		uid:      lease.UID,
		identity: ptr.Deref(lease.Spec.HolderIdentity, ""),
		units:    lease.Labels[labelUnits],
		leaving:  lease.Labels[labelLeaving] == "true",
		duration: time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second,
		since:    now,
		renewed:  now,
		watched:  watched,
		read:     read,
	}
	returned := known && before.expired(now)
	if known && !returned {
		m.since, m.renewals = before.since, before.renewals+1
	}
	o.members[lease.Name] = m
	return !known || returned || before.deleted || m.renewals == 1 ||
		m.identity != before.identity || m.units != before.units || m.leaving != before.leaving
}

func (o *observed) noteUnitLocked(lease *coordinationv1.Lease, now, read time.Time) bool {
	before, known := o.units[lease.Name]
	if known && (before.deleted && before.uid == lease.UID || outdated(lease.ResourceVersion, before.version, now, read, before.read)) {
		return false
	}
	u := unitLease{
		name:    lease.Name,
		version: lease.ResourceVersion,
		uid:     lease.UID,
		text:    lease.Annotations[annotationUnit],
		holder:  ptr.Deref(lease.Spec.HolderIdentity, ""),
		epoch:   int64(ptr.Deref(lease.Spec.LeaseTransitions, 0)),
		weight:  weightOf(lease),
		read:    read,
	}
	u.highest = max(before.highest, u.epoch)
	o.units[lease.Name] = u
	return true
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
	if m, ok := o.members[name]; ok && m.uid == uid {
		if m.leaving {
			delete(o.members, name)
			return true
		}
		// It has not stopped in order. It may be alive: it works for as long as its Lease would have lasted.
		m.deleted = true
		o.members[name] = m
		return true
	}
	if u, ok := o.units[name]; ok && u.uid == uid {
		u.deleted, u.holder = true, ""
		o.units[name] = u
		return true
	}
	return false
}

// confirmGone takes note that the API server has no Lease of a member. known is what was observed before.
func (o *observed) confirmGone(name string, known memberLease) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.members[name].version == known.version {
		o.members[name] = memberLease{name: name, dead: true}
	}
}

// confirmDead takes note that the API server has a member's Lease still in the version that has expired.
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
	o.synced = true
	o.mu.Unlock()
	o.wake()
}

// snapshot returns copies.
func (o *observed) snapshot() (members map[string]memberLease, units map[string]unitLease, synced bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	members, units = make(map[string]memberLease, len(o.members)), make(map[string]unitLease, len(o.units))
	for name, m := range o.members {
		members[name] = m
	}
	for name, u := range o.units {
		units[name] = u
	}
	return members, units, o.synced
}
