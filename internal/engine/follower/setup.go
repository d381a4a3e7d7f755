package follower

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/engine/known"
	"github.com/rvinformer/informer/internal/engine/listwatch"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/engine/server"
	"github.com/rvinformer/informer/internal/engine/sink"
	"github.com/rvinformer/informer/internal/engine/source"
	"github.com/rvinformer/informer/internal/leaf/budget"
	"github.com/rvinformer/informer/internal/leaf/prune"
)

// Setup is what one reflector follows, and what its runs have in common: what they have learnt, and
// where they report. Init fills it. It must not be copied, and does not change while a run is under
// way.
type Setup struct {
	// Name is for logs and errors.
	Name          string
	ListerWatcher cache.ListerWatcherWithContext
	// Resource is what is read off the wire, nil where the ListerWatcher decodes.
	Resource *server.Resource
	// Server tells which objects are followed, and at which server.
	Server server.Identifier
	// Expected are the objects, and Form is how they are asked for on the wire.
	Expected object.Expected
	Form     object.Form
	// Shared, if set, are the lists and watches that the reflector has in common with others. Here
	// tells them that the next run has asked for its first one.
	Shared *source.Shared
	Here   func()
	// Shard is the part of the set that is followed.
	Shard api.Shard
	// Nameless is that of source.Options.
	Nameless bool
	// Budget, if set, limits the lists that are under way at a time.
	Budget *budget.Budget
	// Memory is what the ListerWatcher has taught, also other reflectors that have it.
	Memory *source.Memory
	// Cluster is that of the known objects.
	Cluster known.Cluster
	// Report needs a Handler before the first run.
	Report report.Report
}

// Init sets what lw lists and watches, and what is expected of it. The Shard is that of a
// ListerWatcher that divides its objects.
func (s *Setup) Init(name string, lw cache.ListerWatcher, expected object.Expected) {
	s.Name = name
	lw, s.Shard = server.Undivided(lw)
	s.ListerWatcher = cache.ToListerWatcherWithContext(lw)
	s.Resource = server.Of(lw)
	s.Server = server.IdentifierOf(lw)
	s.Expected = expected
	s.Memory = &source.Memory{}
	s.UseFields(nil)
}

// UseFields has only these fields of the objects read, if they come off the wire.
func (s *Setup) UseFields(fields *prune.Fields) {
	if s.Resource == nil {
		s.Form = s.Expected.Given()
	} else {
		s.Form = s.Expected.Form(s.Resource.AsksProtobuf(), fields)
		if s.Resource.OnlyJSON() {
			s.Form.OnlyJSON()
		}
	}
}

// Tuning is how a run asks and waits. The zero value of each field is its default.
type Tuning struct {
	// ListMode is how sets are read. CacheFirst reads them as client-go does, in place of it.
	ListMode   api.ListMode
	CacheFirst bool
	// PageSize is the number of objects to ask for in each page of a list.
	PageSize int64
	// InternalErrorRetry is for how long a watch that breaks with an internal error is tried again.
	InternalErrorRetry time.Duration
	// MinWatchTimeout is the least time for which a watch is asked for.
	MinWatchTimeout time.Duration
	// StallTimeout is the silence after which a watch counts as broken.
	StallTimeout time.Duration
	// Backoff is how long to wait after a failed request.
	Backoff *wait.Backoff
	// ResyncPeriod, if set, is how often the sink repeats what it has, unless ShouldResync says no.
	ResyncPeriod time.Duration
	ShouldResync func() bool
}

// Follower returns a follower for one run, which puts what it reads into a sink.
func (s *Setup) Follower(into sink.Sink, t Tuning) *Follower {
	f := &Follower{Setup: s, Tuning: t, Source: source.New(s.sourceOptions(t)), Sink: into, Policy: t.policy()}
	f.Policy.CachePaged = f.Source.CachePaged()
	if t.ResyncPeriod > 0 {
		f.resync = newResync(t.ResyncPeriod, f.repeat)
	}
	return f
}

// Objects returns the followed objects that a label selector selects, for a redelivery.
func (s *Setup) Objects(selector string, t Tuning) (*source.Objects, error) {
	return source.NewObjects(s.sourceOptions(t), selector, t.PageSize, t.Backoff, s.Report.Handler)
}

func (s *Setup) sourceOptions(t Tuning) source.Options {
	return source.Options{
		ListerWatcher:   s.ListerWatcher,
		Memory:          s.Memory,
		Expected:        &s.Expected,
		Form:            &s.Form,
		Patience:        source.Patience(t.StallTimeout),
		MinWatchTimeout: t.MinWatchTimeout,
		Shared:          s.Shared,
		Here:            s.Here,
		Shard:           s.Shard,
		Nameless:        s.Nameless,
		Budget:          s.Budget,
		Report:          &s.Report,
	}
}

func (t Tuning) policy() listwatch.Policy {
	p := listwatch.Policy{PageSize: t.PageSize, InternalErrorRetry: t.InternalErrorRetry}
	switch {
	case t.CacheFirst:
		p.Style = listwatch.CacheFirst
	case t.ListMode == api.ListModeFull:
		p.Style = listwatch.Full
	default:
		p.Style = listwatch.Paged
	}
	return p
}

// triesWatchLists reports whether sets are read with a watch-list, if it works.
func (t Tuning) triesWatchLists() bool {
	return !t.CacheFirst && (t.ListMode == api.ListModeAuto || t.ListMode == api.ListModeWatchList)
}
