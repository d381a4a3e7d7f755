package known

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

const (
	// sampled is how many keys are looked at to choose the objects of an inquiry, and
	// mostAsked how many are chosen.
	sampled, mostAsked = 64, 3
	// mostLatest is how many objects Latest returns. Where more than these change at a time, the
	// newest of them say nothing of the rest.
	mostLatest = 16
	// lentAtOnce is about how many keys Latest looks at under one lock.
	lentAtOnce = 1000
)

// Sample returns some objects with the oldest versions, because these are the least likely to
// be gone. It leaves out the keys for which leaveOut, which is called without a lock, is true, and
// those of dead letters: the server has what the handler has refused.
func (v *Versions) Sample(leaveOut func(key string) bool) []object.Known {
	v.mu.RLock()
	objects := v.unsettled.witnesses(someOf(v.reading()))
	v.mu.RUnlock()
	return Oldest(slices.DeleteFunc(objects, func(o object.Known) bool { return leaveOut(o.Key) }))
}

// someOf returns some objects of a table.
func someOf(table *keytable.Table) (objects []object.Known) {
	keys, _ := table.KeysFrom(0, sampled)
	for _, key := range keys {
		if version, ok := table.Get(key); ok && version.ResourceVersion != "" {
			objects = append(objects, object.Known{Key: key, Version: version})
		}
	}
	return objects
}

// Oldest returns the few that have the oldest versions.
func Oldest(objects []object.Known) []object.Known {
	slices.SortStableFunc(objects, func(a, b object.Known) int {
		switch rv.Compare(a.Version.ResourceVersion, b.Version.ResourceVersion) {
		case rv.Older:
			return -1
		case rv.Newer:
			return 1
		}
		return 0
	})
	return objects[:min(len(objects), mostAsked)]
}

// Latest returns the objects with the newest versions, as LatestOf does. It leaves out the keys for
// which leaveOut, which is called without a lock, is true.
func (v *Versions) Latest(leaveOut func(key string) bool) []object.Known {
	objects := LatestOf(v.LendFrom)
	v.mu.RLock()
	objects = v.unsettled.witnesses(objects)
	v.mu.RUnlock()
	return slices.DeleteFunc(objects, func(o object.Known) bool { return leaveOut(o.Key) })
}

// LatestOf returns the objects with the newest versions, the newest first, as far as versions are
// numbers: a server that has lost its newest changes has other versions of these. Lend lends about
// so many keys with their versions from a cursor on, and returns the next one: 0 at the end and at
// the beginning.
func LatestOf(lend func(from keytable.Cursor, most int, visit func(key string, v *keytable.Binary)) keytable.Cursor) []object.Known {
	var latest []numbered
	oldest := uint64(0) // of latest, once that is full
	for cursor := keytable.Cursor(0); ; {
		cursor = lend(cursor, lentAtOnce, func(key string, version *keytable.Binary) {
			if version.IsNumber && version.Number > oldest {
				latest, oldest = insertLatest(latest, key, version)
			}
		})
		if cursor == 0 {
			break
		}
	}
	var objects []object.Known
	for _, n := range latest {
		objects = append(objects, n.Known)
	}
	return objects
}

// numbered is an object whose version is a number.
type numbered struct {
	object.Known
	number uint64
}

// insertLatest inserts an object in its place, and returns the oldest number if there is no room
// for another.
func insertLatest(latest []numbered, key string, version *keytable.Binary) (_ []numbered, oldest uint64) {
	at, _ := slices.BinarySearchFunc(latest, version.Number, func(n numbered, number uint64) int { return cmp.Compare(number, n.number) })
	if at < mostLatest {
		known := object.Known{Key: strings.Clone(key), Version: version.Version()}
		known.Version.UID = types.UID(strings.Clone(string(known.Version.UID)))
		latest = slices.Insert(latest, at, numbered{known, version.Number})
	}
	if len(latest) < mostLatest {
		return latest, 0
	}
	latest = latest[:mostLatest]
	return latest, latest[mostLatest-1].number
}
