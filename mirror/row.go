package main

import (
	"time"

	"github.com/rvinformer/informer"
)

// row is the state of one feed, or of one cluster's discovery (a place without a resource), at one
// moment.
type row struct {
	place     place
	phase     string
	condition informer.ConditionReason // of its informer; empty for a cluster
	rows      int                      // objects that the informer knows
	queued    int64                    // bytes on their way to the handler
	counts    counts
	took      time.Duration // the first sync, or the time since it began
	synced    bool
	resumed   bool   // it went on without a list: what happened meanwhile may still be on its way
	failed    bool   // it was given up
	problem   string // what is wrong now; empty if nothing is
	retry     string // when what is wrong is tried again; empty if it is not
}

// settled reports whether the first sync has an outcome.
func (r row) settled() bool { return r.synced || r.failed }

// trouble is the problem, and when it is tried again.
func (r row) trouble() string {
	if r.retry == "" {
		return r.problem
	}
	return r.problem + "; " + r.retry
}

// total adds up what can be added.
func total(rows []row) (sum row) {
	for _, r := range rows {
		sum.rows += r.rows
		sum.queued += r.queued
		sum.counts = sum.counts.plus(r.counts)
	}
	return sum
}
