package known

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// unsettled are the keys whose state at the handler is not certain: the last call for them
// panicked or failed. The handler may have begun to take in an object that the table does not have:
// when a generation does not show it, it is deleted like the known ones.
//
// Nil has none, as hardly any informer has.
type unsettled struct {
	doubts map[string]doubt
	// dead counts those that have a letter.
	dead int
}

// doubt is one of them.
type doubt struct {
	// shown is the newest generation that may have shown the key.
	shown uint64
	// letter, if there is one, is what the handler has refused for good.
	letter *api.DeadLetter
	// refused is the resource version of the newest state that is not tried again, empty if there is
	// none. The generation refusedIn showed that state.
	refused   string
	refusedIn uint64
	// end tells whether the handler has taken in the end of the object before that which the letter
	// stands for.
	end end
}

// end is how far the handler has come with the end of an object.
type end uint8

const (
	// refusedEnd: it has not taken that in, or there is none.
	refusedEnd end = iota
	// takenEnd: it has, and the queue is about to note it.
	takenEnd
	// pastEnd: the queue has, so that the handler has nothing of the key. The letter stands for what
	// came in the place of that object.
	pastEnd
)

// of returns that of a key, and whether there is one.
func (u *unsettled) of(key string) (d doubt, ok bool) {
	if u != nil {
		d, ok = u.doubts[key]
	}
	return d, ok
}

// all yields all of them.
func (u *unsettled) all() iter.Seq2[string, doubt] {
	if u == nil {
		return maps.All(map[string]doubt(nil))
	}
	return maps.All(u.doubts)
}

// set returns u with that of a key.
func (u *unsettled) set(key string, d doubt) *unsettled {
	if u == nil {
		u = &unsettled{doubts: map[string]doubt{}}
	}
	u.remove(key)
	if d.letter != nil {
		u.dead++
	}
	u.doubts[key] = d
	return u
}

func (u *unsettled) remove(key string) {
	if d, ok := u.of(key); ok {
		if d.letter != nil {
			u.dead--
		}
		delete(u.doubts, key)
	}
}

// letterOf returns the dead letter of a key, nil if it has none.
func (u *unsettled) letterOf(key string) *api.DeadLetter {
	d, _ := u.of(key)
	return d.letter
}

// witnesses returns those of known objects that have no dead letter.
func (u *unsettled) witnesses(objects []object.Known) []object.Known {
	return slices.DeleteFunc(objects, func(o object.Known) bool { return u.letterOf(o.Key) != nil })
}

// deadCount is the number of dead letters.
func (u *unsettled) deadCount() int {
	if u == nil {
		return 0
	}
	return u.dead
}

// letters yields the dead letters.
func (u *unsettled) letters() iter.Seq[*api.DeadLetter] {
	return func(yield func(*api.DeadLetter) bool) {
		if u.deadCount() == 0 {
			return
		}
		for _, d := range u.doubts {
			if d.letter != nil && !yield(d.letter) {
				return
			}
		}
	}
}

// sorted returns the dead letters by key.
func (u *unsettled) sorted() []api.DeadLetter {
	letters := make([]api.DeadLetter, 0, u.deadCount())
	for letter := range u.letters() {
		letters = append(letters, *letter)
	}
	slices.SortFunc(letters, func(a, b api.DeadLetter) int { return strings.Compare(a.Key, b.Key) })
	return letters
}

// keys returns the keys, in no order.
func (u *unsettled) keys() (keys []string) {
	for key := range u.all() {
		keys = append(keys, key)
	}
	return keys
}

// Delivered is what the handler was given of key: the version that it has acknowledged, if
// there is one, and whether it has failed to acknowledge another since.
func (v *Versions) Delivered(key string) (version keytable.Version, exists, unsettled bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	version, exists = v.reading().Get(key)
	d, doubtful := v.unsettled.of(key)
	return version, exists, doubtful && d.end != pastEnd
}

// Doubt reports whether the last handler call for key panicked or failed, and what the handler has
// refused for good, nil if there is nothing. The letter must not be changed.
func (v *Versions) Doubt(key string) (doubtful bool, letter *api.DeadLetter) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	d, doubtful := v.unsettled.of(key)
	return doubtful, d.letter
}

// Settle notes whether it is certain what the handler has of key: its calls returned, or they
// only showed the version that it has. That ends a dead letter.
func (v *Versions) Settle(key string, certain bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if certain {
		v.unsettled.remove(key)
		return
	}
	d, _ := v.unsettled.of(key)
	d.shown, d.end = v.reading().Generation(), refusedEnd
	v.unsettled = v.unsettled.set(key, d)
}

// SettleEnd notes that the handler has taken in the end of the object that it knew, and that another
// one of its name is to come. A dead letter that stands for another one, too, stays until what is to
// come is settled, or gone.
func (v *Versions) SettleEnd(key string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	d, _ := v.unsettled.of(key)
	if !v.outlastsEnd(key, d) {
		v.unsettled.remove(key)
		return
	}
	d.end = takenEnd
	v.unsettled.set(key, d)
}

// outlastsEnd reports whether the dead letter of key stands for more than the end of the object that
// the handler knew. The caller holds the lock.
func (v *Versions) outlastsEnd(key string, d doubt) bool {
	switch {
	case d.letter == nil:
		return false
	case d.letter.Type == api.Deleted:
		return d.letter.Newest != d.letter.ResourceVersion
	}
	return d.letter.Type == api.Added && v.reading().Compare(key, keytable.Version{}).Known
}

// endLetter notes that nothing is left of key, or that what came in its place is to come. The caller
// holds the lock.
func (v *Versions) endLetter(key string) {
	switch d, _ := v.unsettled.of(key); d.end {
	case takenEnd:
		d.end = pastEnd
		v.unsettled.set(key, d)
	case pastEnd: // that has gone, too
		v.unsettled.remove(key)
	}
}

// Bury keeps a dead letter, until its key is settled or forgotten, and returns it: it goes on with
// the one that its key has. Where there are most of them for other keys, it changes nothing and
// returns false.
func (v *Versions) Bury(letter api.DeadLetter, most int) (kept api.DeadLetter, ok bool) {
	v.mu.Lock()
	before := v.unsettled.letterOf(letter.Key)
	if before == nil && v.unsettled.deadCount() >= most {
		v.mu.Unlock()
		return letter, false
	}
	if before != nil {
		letter.FirstError, letter.Since = before.FirstError, before.Since
		letter.Attempts += before.Attempts
	}
	d, _ := v.unsettled.of(letter.Key)
	d.shown, d.letter, d.end = v.reading().Generation(), &letter, refusedEnd
	v.unsettled = v.unsettled.set(letter.Key, d)
	v.changes.Add(1)
	changed := v.changed
	v.mu.Unlock()
	if changed != nil {
		changed()
	}
	return letter, true
}

// Refuse notes that a state which a generation showed is not tried again, if the handler has refused
// a state of key. It is the queue's.
func (v *Versions) Refuse(key, resourceVersion string, generation uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if d, unsettled := v.unsettled.of(key); unsettled {
		d.refused, d.refusedIn = resourceVersion, generation
		if d.letter != nil && d.letter.Newest != resourceVersion { // it cannot be read, so that the next run begins with a list
			letter := *d.letter // others may have the one of before
			letter.Newest, d.letter = resourceVersion, &letter
		}
		v.unsettled.set(key, d)
	}
}

// Refused returns the resource version of the newest state of key that is not tried again, and the
// generation that showed it. It is the queue's.
func (v *Versions) Refused(key string) (resourceVersion string, generation uint64, exists bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	d, _ := v.unsettled.of(key)
	return d.refused, d.refusedIn, d.refused != ""
}

// DeadLetters returns the dead letters, sorted by key.
func (v *Versions) DeadLetters() []api.DeadLetter {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.unsettled.sorted()
}

// ReadUnsettled calls read with what Unsettled and DeadLetters return, which does not change before
// read has returned. Read must not use v.
func (v *Versions) ReadUnsettled(read func(keys []string, letters []api.DeadLetter)) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	read(v.unsettled.keys(), v.unsettled.sorted())
}

// Dead is the number of dead letters, and the one that is the longest time among them.
func (v *Versions) Dead() (letters int, oldest api.DeadLetter) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for letter := range v.unsettled.letters() {
		if oldest.Key == "" || letter.Since.Before(oldest.Since) || letter.Since.Equal(oldest.Since) && letter.Key < oldest.Key {
			oldest = *letter
		}
	}
	return v.unsettled.deadCount(), oldest
}

// Matches reports whether key is known in just this version, and the handler has no other.
func (v *Versions) Matches(key string, version keytable.Version) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if _, unsettled := v.unsettled.of(key); unsettled {
		return false
	}
	compared := v.reading().Compare(key, version)
	return compared.SameVersion && compared.SameObject && compared.Identified
}

// Unsettled returns the keys for which the last handler call panicked or failed.
func (v *Versions) Unsettled() []string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.unsettled.keys()
}

// UnsettledUnknown returns those of Unsettled that have no version.
func (v *Versions) UnsettledUnknown() (keys []string) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for key := range v.unsettled.all() {
		if !v.reading().Compare(key, keytable.Version{}).Known {
			keys = append(keys, key)
		}
	}
	return keys
}

// settleShown notes that a generation shows key, and reports whether the last handler call for
// it panicked or failed. The caller holds the lock.
func (v *Versions) settleShown(key string, generation uint64) (unsettled bool) {
	d, unsettled := v.unsettled.of(key)
	if unsettled {
		d.shown = generation
		v.unsettled.set(strings.Clone(key), d) // key is lent
	}
	return unsettled
}
