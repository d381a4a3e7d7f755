// Package source reads the objects of one resource: the pages of a list, and the changes of a
// watch.
//
// A Source reads off the wire what a Resource of package server lends, object by object, and takes
// from the ListerWatchers of others what they have decoded. A Feed is one of its watches. Source
// and Feed check that what came is what was asked for, and notice when nothing comes any more; what
// follows from that is decided by their caller.
//
// The machine of an informer has a Source for each Run. The typed factory reads its lists and
// watches with one too.
package source

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/edge/fanout"
	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/engine/listwatch"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/engine/server"
	"github.com/rvinformer/informer/internal/leaf/backoff"
	"github.com/rvinformer/informer/internal/leaf/budget"
	"github.com/rvinformer/informer/internal/leaf/moment"
	"github.com/rvinformer/informer/internal/leaf/rv"
	"github.com/rvinformer/informer/internal/leaf/wire"
)

// Options are what a Source reads, and how.
type Options struct {
	// ListerWatcher has a *server.Resource, or is one of others.
	ListerWatcher cache.ListerWatcherWithContext
	// Memory is what earlier Sources of the ListerWatcher have learnt.
	Memory *Memory
	// Expected are the objects, and Form is how they are asked for on the wire. Neither changes.
	Expected *object.Expected
	Form     *object.Form
	Patience Patience
	// MinWatchTimeout is the least time for which a watch is asked for, if that is more than the
	// default.
	MinWatchTimeout time.Duration
	// Shared, if set, are the lists and watches that the Source has in common with others, and Here
	// tells them that it has asked for its first one: see fanout.Hub.Expect.
	Shared *Shared
	Here   func()
	// Budget, if set, tells when answers may not come through a wide window.
	Budget *budget.Budget
	// Shard is the part of the resource's objects that is read.
	Shard api.Shard
	// Nameless takes objects without a name too, as client-go does, if the ListerWatcher decodes. The
	// key of such an object is "namespace/", or empty. An object off the wire always has a name.
	Nameless bool
	// Prompt tells that the caller takes what is read at once, so that no answer is left unread.
	Prompt bool
	// Report is told when the server has answered, and of errors that no call returns.
	Report *report.Report
}

// Memory is what the answers of a ListerWatcher have taught. It outlives a Source. The zero value
// knows nothing.
type Memory struct {
	lists listMemory
	late  lateKinds
	// leftBehind counts the calls that hang, and that no Source waits for any more.
	leftBehind atomic.Int32
	// cachePaged tells that the server was seen to page a list from "0".
	cachePaged atomic.Bool
	// shared tells that a version was seen to have several events.
	shared atomic.Bool
	// unselected tells that it was reported that the server ignores a selector.
	unselected atomic.Bool
	// resume is why watches of a ListerWatcher of others do not go on from a version; nil if they do.
	resume atomic.Pointer[resumeFailure]
}

// resumeFailure is why a watch did not go on from a version.
type resumeFailure struct {
	why  error
	when time.Time
}

// VersionsAreShared reports whether a version was seen to have several events, and ShareVersions notes
// that one was.
func (m *Memory) VersionsAreShared() bool { return m.shared.Load() }

func (m *Memory) ShareVersions() { m.shared.Store(true) }

// Source reads one resource. It belongs to one goroutine.
type Source struct {
	Options
	// Turn is the list under way, which takes its turn with others; nil without a budget, and
	// between two lists.
	Turn *budget.List
	// Narrow has answers come through a narrow window, since one was left unread for too long.
	Narrow bool
	// resource is the ListerWatcher if objects are read off the wire, else nil.
	resource *server.Resource
	reader   reader
	// read is when the newest bytes were read, or the newest object that was decoded.
	read moment.Moment
	// over is the connection of the newest list or watch that was opened: see server.Body.
	over *tls.ConnectionState
	// lists are the readers of list bodies, by format. They keep their buffers from page to page.
	lists [wire.Formats]wire.ListReader
	// joint is the list that it reads together with others, nil without one.
	joint *joint
}

// New returns a Source.
func New(o Options) *Source {
	return &Source{Options: o, resource: server.Of(o.ListerWatcher)}
}

// sibling returns a Source that reads the same on its own, in another goroutine.
func (s *Source) sibling() *Source {
	other := New(s.Options)
	other.Turn, other.Narrow = s.Turn, s.Narrow
	return other
}

// heard notes that something has come from the server.
func (s *Source) heard(at time.Time) {
	s.read = moment.Of(at)
	s.Report.Contact(at)
}

// Rest lets go of the readers and their buffers, since a follower that only waits has no use for
// them.
func (s *Source) Rest() {
	clear(s.lists[:])
	s.reader = reader{}
	s.leave()
}

// Leave tells those with whom it shares lists that the Source asks for nothing any more.
func (s *Source) Leave() {
	s.leave()
	s.here()
}

// BeginTurn waits until the Budget has room for a list, if there is a Budget. EndTurn is called
// when the request is over.
func (s *Source) BeginTurn(ctx context.Context) (err error) {
	if s.Budget == nil {
		return nil
	}
	s.Report.Attend()
	s.Report.Starved(true)
	s.Turn, err = s.Budget.Begin(ctx, s.Key())
	s.Report.Starved(false)
	s.Report.Rest()
	return err
}

func (s *Source) EndTurn() {
	s.Turn.End()
	s.Turn = nil
}

// Page is what a list request brought beside its objects.
type Page struct {
	ResourceVersion, Continue string
	// Objects counts the objects that were read, and First is the key of the first one, whether
	// they are in the Shard or not. Both are set beside an error too.
	Objects int
	First   string
}

// count counts an object.
func (p *Page) count(it *object.Item) {
	if p.Objects == 0 {
		p.First = strings.Clone(it.Key)
	}
	p.Objects++
}

// Each is called for an object of a list that is in the Shard, or for what is wrong with it. The
// item has the key if that could be read.
type Each func(it object.Item, unreadable error) error

// Page does one list request and hands each object on. An error of each ends it.
func (s *Source) Page(ctx context.Context, opts metav1.ListOptions, each Each) (Page, error) {
	p, err := s.page(ctx, opts, each)
	switch {
	case err != nil:
		s.Memory.lists.refused(err)
	case p.Continue != "" && opts.ResourceVersion == "0":
		s.Memory.cachePaged.Store(true)
	}
	return p, err
}

// HeardList notes what speaks against the resource version of a complete list, and whether the list
// had objects. It reports whether the list is to be believed all the same, because the server shows no
// other ones.
func (s *Source) HeardList(odd listwatch.Oddity, objects bool) (believed bool) {
	return s.Memory.lists.heard(odd, objects, time.Now())
}

// CachePaged reports whether the server was seen to page a list from "0", which its cache would
// have given whole.
func (s *Source) CachePaged() bool { return s.Memory.cachePaged.Load() }

func (s *Source) page(ctx context.Context, opts metav1.ListOptions, each Each) (Page, error) {
	if s.joint != nil {
		return s.jointPage(ctx, each)
	}
	if s.resource != nil {
		return s.streamPage(ctx, opts, each)
	}
	list, of, err := s.listForeign(ctx, opts)
	if err != nil {
		return Page{}, err
	}
	s.heard(time.Now())
	if err := s.Turn.GoesOn(ctx); err != nil {
		return Page{}, err
	}
	return s.readList(list, of, each)
}

// leavesOut reports whether an object is not in the Shard. What could not be read, so that its key
// is not known, may be in it.
func (s *Source) leavesOut(it *object.Item) bool {
	return it.HasKey() && !object.InShard(s.Shard, it.Key, string(it.Version.UID))
}

// Watch opens a watch or, if opts say so, a watch-list. The Feed is to be closed.
func (s *Source) Watch(ctx context.Context, opts metav1.ListOptions) (Feed, error) {
	if s.Shared != nil {
		return s.openShared(ctx, opts)
	}
	return s.openOwn(ctx, opts, s.Patience.opening(opts))
}

// openOwn opens a watch of the Source's own.
func (s *Source) openOwn(ctx context.Context, opts metav1.ListOptions, patience time.Duration) (feed Feed, err error) {
	if s.resource == nil {
		feed, err = s.openChannel(ctx, opts, patience)
	} else {
		feed, err = s.openWire(ctx, opts, patience)
	}
	s.Memory.lists.refused(err)
	return feed, err
}

// Key returns what lists share their turns by: it is equal for all resources of one server, where
// that is known.
func (s *Source) Key() any {
	if s.resource == nil {
		return s.Memory
	}
	return s.resource.Turns()
}

// AwaitServer waits for pause after a request has failed with err. It returns early when ctx ends.
// If the server is away, it waits for its return instead, and reports that pause does not count:
// see server.Resource.Await. The ListerWatchers of others cannot tell.
func (s *Source) AwaitServer(ctx context.Context, pause time.Duration, err error) (outage bool) {
	if s.resource == nil {
		_ = backoff.Sleep(ctx, pause) // the caller sees that ctx has ended
		return false
	}
	return s.resource.Await(ctx, pause, err, s.Report.NoteServerAway)
}

// ServerAway reports whether the server was found away, and has not answered since.
func (s *Source) ServerAway() bool { return s.resource != nil && s.resource.ServerAway() }

// Connection identifies the connection of the newest list or watch, nil if it is not known. Watches
// that are shared may be those of others.
func (s *Source) Connection() *tls.ConnectionState {
	if s.Shared != nil {
		return nil
	}
	return s.over
}

// Period is that of the server: see server.Resource.Period. It is 0 for the ListerWatchers of
// others.
func (s *Source) Period() uint64 {
	if s.resource == nil {
		return 0
	}
	return s.resource.Period()
}

// HasWatchLists reports whether sets can be read with a watch-list, as far as the ListerWatcher
// goes. WatchListFailure returns why one did not work lately, and WatchListFailed notes why one did
// not.
func (s *Source) HasWatchLists() bool { return s.resource != nil }

func (s *Source) WatchListFailure() error {
	return s.resource.ParameterFailure(watchListParameter)
}

func (s *Source) WatchListFailed(why error) { s.resource.ParameterFailed(watchListParameter, why) }

// resumeParameter names what a server does not do that takes a version to go on from, and begins a
// watch with all objects.
const resumeParameter = "resourceVersion of a watch"

// resumeFailureLasts is when it is forgotten for the ListerWatchers of others. A server.Resource has a
// time of its own.
const resumeFailureLasts = time.Hour

// ResumeFailure returns why the server does not go on from a version, as far as that was noticed
// lately, and else nil. ResumeFailed notes why it does not.
func (s *Source) ResumeFailure() error {
	if s.resource != nil {
		return s.resource.ParameterFailure(resumeParameter)
	}
	if f := s.Memory.resume.Load(); f != nil && time.Since(f.when) < resumeFailureLasts {
		return f.why
	}
	return nil
}

func (s *Source) ResumeFailed(why error) {
	if s.resource != nil {
		s.resource.ParameterFailed(resumeParameter, why)
	} else {
		s.Memory.resume.Store(&resumeFailure{why, time.Now()})
	}
}

// GiveUpShared has those that share watches list after the first ResumeFailed.
func (s *Source) GiveUpShared() {
	if s.Shared != nil {
		s.Shared.GiveUp()
	}
}

// ErrNotResumed ends the shared watches of those that are to list: see ResumeFailed.
var ErrNotResumed = fanout.ErrNotResumed

// Shown returns the resource version that the shared watches have come to, empty without any.
func (s *Source) Shown() string {
	if s.Shared == nil {
		return ""
	}
	return s.Shared.ResourceVersion()
}

// CompareToShown compares the resource version of a complete list with what Shown returned when the
// list began. If the list is older, the shared watches tell the state before the server was
// restored, and are given up.
func (s *Source) CompareToShown(listed, shown string) {
	if s.Shared != nil && rv.Compare(listed, shown) == rv.Older {
		s.Shared.WentBack(listed)
	}
}

// minWatchTimeout is as long as client-go's: shorter watches cost the server.
const minWatchTimeout = 5 * time.Minute

// WatchTimeout returns for how long to ask for a watch. It is random, so that many watches do not
// end at one time.
func (s *Source) WatchTimeout() time.Duration {
	longest := s.longestWatch()
	return longest/2 + rand.N(longest/2)
}

// longestWatch is the longest time for which a watch is asked for.
func (s *Source) longestWatch() time.Duration {
	least := max(s.MinWatchTimeout, minWatchTimeout)
	if s.resource != nil {
		least = max(least, server.MinWatchTimeout)
	}
	return 2 * least
}
