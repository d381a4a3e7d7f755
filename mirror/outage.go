package main

import (
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// outage is the time from the first change that could not be written until all that could not be
// are. It ends no sooner although others succeed meanwhile, as small ones do while a disk is nearly
// full.
type outage struct {
	began   time.Time
	missing sets.Set[target] // what was to be written and is not; never empty
	reason  error            // why, most recently
	told    sets.Set[string] // the reasons so far
}

func newOutage(now time.Time) *outage {
	return &outage{began: now, missing: sets.New[target](), told: sets.New[string]()}
}

// failed notes what was not written, and reports whether the reason is a new one.
func (o *outage) failed(what []target, reason error) bool {
	o.missing.Insert(what...)
	o.reason = reason
	known := o.told.Has(reason.Error())
	o.told.Insert(reason.Error())
	return !known
}

// written notes what is written, and reports whether nothing is missing any more.
func (o *outage) written(what []target) bool {
	o.missing.Delete(what...)
	return o.missing.Len() == 0
}

// changes is the number of changes that are missing. Without its checkpoint, a resource is listed
// at the next start: nothing is lost.
func (o *outage) changes() (n int) {
	for t := range o.missing {
		if !t.checkpoint {
			n++
		}
	}
	return n
}
