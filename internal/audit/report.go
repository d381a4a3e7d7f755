package audit

import (
	"hash/maphash"
	"time"

	"github.com/rvinformer/informer/internal/keytable"
)

// MaxDifferences is how many differences of each sort a Report has. The others are counted.
const MaxDifferences = 100

// Sort is what is wrong with a key.
type Sort int

const (
	// Missing is an object that the server has and the informer does not.
	Missing Sort = iota
	// Stale is an object that the informer has in another version than the server.
	Stale
	// Superfluous is an object that the informer has and the server does not.
	Superfluous
	sorts
)

// Difference is one key.
type Difference struct {
	Key string
	// Server is what the server has, and Own what the informer has. The zero value is nothing.
	Server, Own keytable.Version
	// Repaired tells that the informer has acknowledged something else since.
	Repaired bool
}

// Differences are those of one sort.
type Differences struct {
	Count int
	// First are the first of them.
	First []Difference
}

// Report is what an audit has found.
type Report struct {
	// ResourceVersion is that of the server's list.
	ResourceVersion string
	Began           time.Time
	Took            time.Duration
	// Objects is the number of objects of the list, and Bytes their size.
	Objects int
	Bytes   int64
	// Unreadable is the number of objects whose metadata could not be read.
	Unreadable int
	Found      [sorts]Differences
	// Repaired is the number of differences that the informer does not have any more.
	Repaired int
	// rest has the differences beyond the first of each sort.
	rest *rest
}

// Count is the number of all differences.
func (r *Report) Count() (sum int) {
	for _, d := range r.Found {
		sum += d.Count
	}
	return sum
}

// markRepaired counts and marks the differences of the report that copy does not have any more.
func (r *Report) markRepaired(copy Copy) {
	r.Repaired = r.rest.repaired(copy)
	for _, found := range r.Found {
		for i := range found.First {
			d := &found.First[i]
			own, _ := copy.Get(d.Key)
			if d.Repaired = own != d.Own; d.Repaired {
				r.Repaired++
			}
		}
	}
}

func (r *Report) add(sort Sort, d Difference) {
	found := &r.Found[sort]
	if found.Count++; found.Count <= MaxDifferences {
		found.First = append(found.First, d)
		return
	}
	if r.rest == nil {
		r.rest = &rest{seed: maphash.MakeSeed()}
	}
	r.rest.add(d)
}
