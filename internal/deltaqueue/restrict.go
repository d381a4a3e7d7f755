package deltaqueue

import (
	"container/heap"
	"math"
	"slices"

	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/keytable"
	"github.com/rvinformer/informer/internal/rv"
	"github.com/rvinformer/informer/internal/shard"
)

// Restrict drops what waits of objects that are not in the shard, after that was changed. It is not acknowledged, and nothing will repair that:
// Known is to forget these objects too. What the consumer has taken stays with it, and is forgotten: it is put again if it is shown again.
// A shard that is wider contains the former one, and so all that waits.
//
// From the change of the shard on, the queue takes nothing of objects that are not in it.
func (q *Queue) Restrict(wider bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.extent.Complete() {
		q.current = 0 // of what is missing, nothing is known
		q.added = unlisted
	} else if q.added == unlisted { // what was missing has left the shard again
		q.added = q.seq
	}
	if !wider {
		q.forgetLocked()
	}
	q.advancedLocked()
}

// forgetLocked drops what is not in the shard.
func (q *Queue) forgetLocked() {
	for e := q.order.first; e != nil; {
		next := q.order.next(e)
		if e.stage != taken {
			if e.older == nil && !q.everyChange {
				q.forgetBegunLocked(e, e.Deltas[:1], q.forgetsLocked)
			}
			q.restrictLocked(e, q.forgetsLocked)
		} else if q.forgetsLocked(e.Key, e.Version) {
			e.withdrawn = true
			if _, known := q.known.Get(e.Key); !known { // else a process that goes on from a checkpoint takes it for one of the shard
				q.known.Withdraw(e.Key)
			}
		}
		e = next
	}
}

// forgetBegunLocked makes Known forget the key of an entry whose deltas begun the consumer may have begun to take in, if what Known has of the key and all of
// those deltas have left the shard. Else a later sweep would tell the consumer the end of an object of that name that it was never told of.
func (q *Queue) forgetBegunLocked(e *Entry, begun []Delta, left func(key string, v keytable.Version) bool) {
	if version, known := q.known.Get(e.Key); known && !left(e.Key, version) {
		return
	}
	for _, d := range begun {
		if !left(e.Key, e.versionOf(d)) {
			return
		}
	}
	q.known.Withdraw(e.Key)
}

// restrictLocked drops from an entry, which is not taken, what is not in the shard, as left tells.
//
// The deltas of one key may be of several objects, by their UIDs: the one that the consumer knows, and another that took its place. If that
// one alone is not in the shard, the end of the first remains.
func (q *Queue) restrictLocked(e *Entry, left func(key string, v keytable.Version) bool) {
	if q.extent.IsAll() {
		return
	}
	before, bytes := q.knownBeforeLocked(e), e.bytes()
	stays := before != nil && !left(e.Key, *before)
	kept := e.Deltas[:0]
	for _, d := range e.Deltas {
		of := e.versionOf(d)
		if d.Type == cache.Deleted && before != nil {
			of = *before // the consumer is told the end of what it knows
		}
		switch {
		case !left(e.Key, of):
			kept = append(kept, d)
		case stays && len(kept) == 0 && !before.SameObject(of):
			kept = append(kept, Delta{Type: cache.Deleted, Key: e.Key, Arrived: d.Arrived})
		}
	}
	clear(e.Deltas[len(kept):])
	e.Deltas = kept
	q.grownLocked(e.bytes()-bytes, 0)
	if len(kept) == 0 {
		q.removeLocked(e)
		if !stays { // nor is it told the end of what a failed call may have begun
			q.known.Withdraw(e.Key)
		}
		return
	}
	if newest := e.newest(); newest.Version != (keytable.Version{}) {
		e.Version = newest.Version
	} else if before != nil {
		e.Version = *before
	}
}

// knownBeforeLocked is what the consumer knows of the key of e when it comes to e; nil if nothing.
func (q *Queue) knownBeforeLocked(e *Entry) *keytable.Version {
	if t := e.oldest(); t.stage == taken && t != e && !t.withdrawn {
		if t.Deleted() {
			return nil
		}
		return &t.Version
	}
	if version, exists := q.known.Get(e.Key); exists {
		return &version
	}
	return nil
}

// removeLocked removes an entry that waits, and has no deltas any more.
func (q *Queue) removeLocked(e *Entry) {
	switch e.stage {
	case ready:
		q.ready.remove(e)
	case parked, postponed:
		heap.Remove(&q.parked, e.heapIndex)
	}
	q.attemptedLocked(e)
	q.order.remove(e)
	q.unlinkLocked(e)
	q.advancedLocked()
	q.checkSettledLocked()
	q.wakeLocked()
}

// leftSinceTaken returns what reports whether an object has left the shard since an entry was taken. One whose UID is not known has not, unless
// it was forgotten meanwhile.
func (q *Queue) leftSinceTaken(e *Entry) func(key string, v keytable.Version) bool {
	if e.withdrawn {
		return q.forgetsLocked
	}
	return func(key string, v keytable.Version) bool { return q.extent.Excludes(key, string(v.UID)) }
}

// forgetsLocked reports whether what the consumer knows under a key is forgotten because the shard was changed.
func (q *Queue) forgetsLocked(key string, v keytable.Version) bool {
	return q.extent.Forgets(key, string(v.UID), v == keytable.Version{})
}

// leavesOutLocked reports whether an object is not in the shard.
func (q *Queue) leavesOutLocked(key string, v keytable.Version) bool {
	return q.extent.LeavesOut(key, string(v.UID))
}

// BeginParts is BeginGeneration for a generation that shows some parts of the set, beside the rest, which is followed.
func (q *Queue) BeginParts(parts shard.Parts) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.generation = q.known.Begin()
	if q.ended {
		q.since, q.ended = q.generation, false
	}
	q.parts = parts
}

// EndParts ends such a generation, which shows the parts as they were at a resource version. What a watch of the whole tells of them up to
// there is known.
func (q *Queue) EndParts(resourceVersion string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.overlapsLocked() {
		q.overlap = nil
	}
	q.overlap = &overlap{parts: q.parts, resourceVersion: resourceVersion, former: q.overlap}
	q.ended, q.listed, q.parts = true, q.seq, nil
	q.advancedLocked()
	q.checkSyncedLocked()
}

// unlisted is the entry up to which what has come to the shard is not acknowledged, before that was listed.
const unlisted = math.MaxUint64

// PartsListed notes that a generation of parts has ended, and that the Extent has taken note of it.
func (q *Queue) PartsListed() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.addedLocked()
	q.advancedLocked()
}

// addedLocked notes that what has come to the shard waits, if all of that was listed.
func (q *Queue) addedLocked() {
	if q.added == unlisted && q.extent.Complete() {
		q.added = q.listed
	}
}

// AddedWaits reports whether something that has come to the shard is not acknowledged. The ResumePoint is not about it.
func (q *Queue) AddedWaits() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.addedWaitsLocked()
}

func (q *Queue) addedWaitsLocked() bool {
	seq, _ := q.oldestLocked()
	return seq <= q.added
}

// overlap is what a generation of parts has shown, and the watch of the whole, which goes on from before that, may repeat.
type overlap struct {
	parts           shard.Parts
	resourceVersion string
	// former is the overlap of the generation of parts before, nil for none.
	former *overlap
}

// overlapsLocked reports whether a watch may repeat what a generation of parts has shown.
func (q *Queue) overlapsLocked() bool {
	return q.overlap != nil && rv.Compare(q.overlap.resourceVersion, q.observed) == rv.Newer
}

// sweepsLocked notes that a generation has found the end of what is known under a key, if it is one of parts.
//
// Another object of that name may have been in the rest of the set before. The watch of the whole, which goes on from before, tells of that one
// later: when nothing is known under the key any more, only this tells that it is old.
func (q *Queue) sweepsLocked(key string) {
	last, ok := q.versionLocked(key)
	if q.parts == nil || !ok || last.ResourceVersion == "" {
		return
	}
	if q.swept == nil {
		q.swept = map[string]string{}
	}
	q.swept[key] = last.ResourceVersion
}

// sweptSinceLocked reports whether a state of an unknown key is from before a generation of parts has found that key gone: it is not newer than what was
// known then, or of an object that the generation would have shown.
func (q *Queue) sweptSinceLocked(key string, v keytable.Version) bool {
	last, swept := q.swept[key]
	return swept && q.overlapsLocked() && (rv.NotNewer(v.ResourceVersion, last) || q.repeatedLocked(key, v))
}

// overlapEndsLocked forgets what the watch of the whole cannot repeat any more.
func (q *Queue) overlapEndsLocked() {
	if q.overlap != nil && q.ended && !q.overlapsLocked() {
		q.overlap, q.swept = nil, nil
	}
}

// repeatedLocked reports whether a state is not newer than what a generation of parts has shown of its object, or that it is gone.
func (q *Queue) repeatedLocked(key string, v keytable.Version) bool {
	if !q.overlapsLocked() {
		return false
	}
	for o := q.overlap; o != nil; o = o.former {
		if rv.NotNewer(v.ResourceVersion, o.resourceVersion) && o.parts.Shows(key, string(v.UID)) {
			return true
		}
	}
	return false
}

// sweptLocked leaves those of keys that the generation under way would have shown: not those that have come to the shard since it began.
func (q *Queue) sweptLocked(keys []string) []string {
	if q.parts == nil && q.extent.SweepsAll() {
		return keys
	}
	return slices.DeleteFunc(keys, func(key string) bool {
		version, _ := q.lastVersionLocked(key)
		return !q.parts.Shows(key, string(version.UID)) || !q.extent.Sweeps(key, string(version.UID))
	})
}
