package display

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Place is one resource of one cluster: what one informer follows, and what every message names. A
// place without a resource is the discovery of the cluster.
type Place struct {
	Cluster  string
	Resource schema.GroupResource
}

func (p Place) String() string { return strings.TrimSuffix(p.Cluster+" "+p.Name(), " ") }

// Name is that of the resource, as kubectl takes it: pods, deployments.apps.
func (p Place) Name() string { return p.Resource.String() }

// Row is how a place is at one moment.
type Row struct {
	Place   Place
	Objects int   // that the database has
	Queued  int64 // bytes on their way to the database
	Counts  Counts
	Took    time.Duration // the first sync, or the time since it began
	Synced  bool
	Resumed bool   // it went on without a list: what happened meanwhile may still be on its way
	Failed  bool   // there is no sense in waiting for its first sync
	Unknown bool   // the cluster has not said what it has
	Problem string // what is wrong now; empty if nothing is
	Retry   string // when what is wrong is tried again; empty if it is not
}

// Settled reports whether the first sync has an outcome.
func (r Row) Settled() bool { return r.Synced || r.Failed }

// trouble is the problem, and when it is tried again; empty if there is none.
func (r Row) trouble() string { return strings.TrimSuffix(r.Problem+"; "+r.Retry, "; ") }

// Plus is r with the objects, bytes and counts of both.
func (r Row) Plus(other Row) Row {
	r.Objects += other.Objects
	r.Queued += other.Queued
	r.Counts = r.Counts.plus(other.Counts)
	return r
}

// Total adds up what can be added.
func Total(rows []Row) (sum Row) {
	for _, r := range rows {
		sum = sum.Plus(r)
	}
	return sum
}
