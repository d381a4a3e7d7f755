package listwatch

import (
	"time"

	"github.com/rvinformer/informer/internal/leaf/rv"
)

// Oddity is what speaks against the resource version of a complete set, where another one is known.
// A set that is odd deletes nothing until the server says that it has gone back, or insists.
type Oddity int8

const (
	// Plain is a resource version that is not older than what is known, as far as both have an order.
	Plain Oddity = iota
	// Unversioned is a set without a resource version, or of "0", which stands for any.
	Unversioned
	// Unordered is a resource version without an order, where the known one has one.
	Unordered
	// Backward is a resource version that is older.
	Backward
)

// OddityOf returns what speaks against a complete set in a resource version. Known is the newest one
// that is known, empty if there is none.
func OddityOf(known, listed string) Oddity {
	switch {
	case known == "" || known == "0":
		return Plain
	case listed == "" || listed == "0":
		return Unversioned
	case !rv.Ordered(known):
		return Plain
	}
	switch rv.Compare(listed, known) {
	case rv.Older:
		return Backward
	case rv.Unordered:
		return Unordered
	}
	return Plain
}

const (
	// insistTimes and insistFor are how often, and for how long, a server shows odd sets before it is
	// believed.
	insistTimes, insistFor = 3, 2 * time.Minute
	// insistEmpty is insistFor for sets without objects. A broken gateway may give empty answers for
	// minutes. A server whose lists have no versions gives nothing else once all objects are gone.
	insistEmpty = time.Hour
	// insistEvery is the least time between two sets that count: readers that share a list hear of it
	// at about the same time. After insistPause without one, they are counted anew.
	insistEvery, insistPause = 5 * time.Second, 10 * time.Minute
)

// Insistence counts the odd sets that a server has shown in a row. A server that was rolled back to
// one without resource versions shows nothing else. The zero value has counted none.
type Insistence struct {
	oddity        Oddity
	empty         bool
	times         int
	first, newest time.Time
}

// Heard returns i after a complete set, which has objects or is empty.
func (i Insistence) Heard(o Oddity, empty bool, at time.Time) Insistence {
	switch {
	case o == Plain:
		return Insistence{}
	case o != i.oddity || empty != i.empty || at.Sub(i.newest) > insistPause:
		return Insistence{oddity: o, empty: empty, times: 1, first: at, newest: at}
	case at.Sub(i.newest) < insistEvery:
		return i
	}
	i.times++
	i.newest = at
	return i
}

// IsEnough reports whether the newest set is to be believed.
func (i Insistence) IsEnough() bool {
	least := insistFor
	if i.empty {
		least = insistEmpty
	}
	return i.times >= insistTimes && i.newest.Sub(i.first) >= least
}
