package main

import (
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// outage is the time from the first change that could not be written until all that could not be are. It ends no sooner
// although others succeed meanwhile, as small ones do while a disk is nearly full.
type outage struct {
	began   time.Time
	missing sets.Set[target] // what was to be written and is not; never empty
	reason  error            // why, most recently
	told    sets.Set[string] // the reasons so far
}

func newOutage(now time.Time) *outage {
	return &outage{began: now, missing: sets.New[target](), told: sets.New[string]()}
}

// failed notes changes that were not written, and reports whether the reason is a new one.
func (o *outage) failed(changes []change, reason error) bool {
	for _, c := range changes {
		o.missing.Insert(c.target())
	}
	o.reason = reason
	known := o.told.Has(reason.Error())
	o.told.Insert(reason.Error())
	return !known
}

// written notes changes that are written, and reports whether that was the last of what is missing.
func (o *outage) written(changes []change) bool {
	for _, c := range changes {
		o.missing.Delete(c.target())
	}
	return o.missing.Len() == 0
}
