// Package listwatch decides what a reflector does next.
//
// A reflector lists a set of objects, page by page, and then watches it; or it
// opens a watch that begins with the set, a watch-list, and goes on with it. Its
// state is one of three values: Start (nothing listed yet), Listing (some pages
// of a generation were read), Watching (a complete generation was read, and
// what happened since). Policy.Next maps a state and the outcome of its request
// to the next state; Policy.ListOptions and WatchOptions say what to ask the
// server for in a state. Pace says how long to wait before that. Nothing here does I/O or
// knows the time.
package listwatch

import (
	"errors"
	"time"

	clock "github.com/rvinformer/informer/internal/leaf/moment"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// State is where a reflector is: Start, Listing or Watching.
type State interface{ isState() }

// Start begins a generation.
type Start struct {
	// Known is the newest resource version known, empty if there is none: the
	// list must not be older.
	Known string
	// Consistent asks for the newest state of all, because the server could not
	// serve Known.
	Consistent bool
	// Gone tells that the server has said that it does not have Known: it has gone back, and its list
	// may be older.
	Gone bool
	// Expiries counts the generations given up in a row because their continue
	// token had expired.
	Expiries int
	// Failures counts the watch-lists that have failed since a set was read.
	Failures int
	// Lists tells that a list is read in place of a watch-list, because that did not work.
	Lists bool
	// BusySince is when the server refused the first of the newest watch-lists and said when to come
	// again. Zero: the newest one was not refused like that.
	BusySince time.Time
	// RefusedSince is that of the Watching that the list takes the place of.
	RefusedSince clock.Moment
}

// Listing reads the pages of a generation.
type Listing struct {
	// Start is what the generation began from: where it has to begin again.
	Start Start
	// Continue is the token of the next page.
	Continue string
	// First is the key of the first object of the newest page that was read.
	First string
	// Pages counts the pages read. Mark and MarkFirst are the token and the first key of the
	// newest page whose number is a power of two: a page that comes again is found, however
	// long the way round is.
	Pages           int
	Mark, MarkFirst string
	// StuckSince is when the page failed first. Zero: it has not failed.
	StuckSince time.Time
}

// Watching follows the changes since a resource version.
type Watching struct {
	ResourceVersion string
	// Before, Shared and Bookmarks are those of Reached.
	Before    string
	Shared    bool
	Bookmarks uint8
	// Lost tells that an event could not be read, so that what it told is not known:
	// the next time, the set is listed.
	Lost bool
	// Distrusted tells that what was read differs from what the server has, for a reason that is
	// not known: the newest state of all is listed next.
	Distrusted bool
	// Unsure tells that the server may have been away since it has told ResourceVersion, or
	// has not told it to this process. It may have been restored from a backup: it is
	// asked whether it has that version.
	Unsure bool
	// Silent tells that a watch has lasted for its full time without a bookmark, where others of the
	// resource had them: the resource is asked whether it has ResourceVersion.
	Silent bool
	// Fresh is true from a list until a watch has lasted for Steady: another list has to wait
	// for the backoff until then.
	Fresh bool
	// Strikes counts the watches in a row that broke without an event.
	Strikes int
	// StruckAt is when the first of them broke.
	StruckAt clock.Moment
	// StruckLast is when the newest of them broke.
	StruckLast clock.Moment
	// RefusedSince is when the server refused the first of a row of watches, for a reason that may not
	// hold for lists. Zero: the newest watch was opened.
	RefusedSince clock.Moment
}

// Reached is how far the watch has told what happened.
func (s Watching) Reached() rv.Reached {
	return rv.Reached{ResourceVersion: s.ResourceVersion, Before: s.Before, Shared: s.Shared, Bookmarks: s.Bookmarks}
}

// HasPlace reports whether another watch can go on from where s is. It stays false where the list
// had no version.
func (s Watching) HasPlace() bool { return rv.IsPlace(s.ResourceVersion) }

// Moved returns s after an event, or a bookmark, of a resource version, and whether that is a place
// to go on from: see rv.Moves.
func (s Watching) Moved(resourceVersion string, bookmark bool) (at Watching, moved bool) {
	if !rv.Moves(s.ResourceVersion, resourceVersion) {
		return s, false
	}
	r := s.Reached().Moved(resourceVersion, bookmark)
	s.ResourceVersion, s.Before, s.Shared, s.Bookmarks = r.ResourceVersion, r.Before, r.Shared, r.Bookmarks
	return s, true
}

// Repeats reports whether the watch of the state begins with events that were told before.
func (s Watching) Repeats() bool { return s.Reached().IsPartial() }

// forgetsBefore returns s for a watch that begins with ResourceVersion, because the server does not
// have the version before any more. It reports false if more events of ResourceVersion are expected.
func (s Watching) forgetsBefore() (Watching, bool) {
	ok := s.Repeats() && !s.Reached().IsExpected()
	s.Before = ""
	return s, ok
}

func (Start) isState()    {}
func (Listing) isState()  {}
func (Watching) isState() {}

// Pause is how long to wait before the next request.
type Pause int

const (
	// NoPause goes on at once.
	NoPause Pause = iota
	// RetryPause waits for the next step of the backoff of requests that fail, or for as
	// long as the server asked, where that is longer.
	RetryPause
	// AskedPause waits for as long as the server asked.
	AskedPause
	// ListPause is RetryPause with the backoff of lists, so that they are never close together.
	ListPause
	// TurnPause waits until a watch would have lasted for a turn.
	TurnPause
)

// Progress is what a request has achieved. It starts backoffs again.
type Progress int

const (
	// NoProgress starts none again.
	NoProgress Progress = iota
	// RequestProgress starts the backoff of requests that fail again: a page was read to its
	// end, or a watch told something and lasted for a moment, or ended in order after a turn.
	RequestProgress
	// WatchProgress starts all again: a watch lasted for Steady.
	WatchProgress
)

// Effect is what a step means for the generation under way.
type Effect int

const (
	// KeepGeneration leaves it as it is.
	KeepGeneration Effect = iota
	// AbandonGeneration gives it up: nothing is swept.
	AbandonGeneration
	// CompleteGeneration ends it: what it did not show is swept.
	CompleteGeneration
)

// Step is the decision what to do next.
type Step struct {
	State    State
	Effect   Effect
	Progress Progress
	Pause    Pause
	// RetryAfter is for how long the server has asked to be left alone, or, for TurnPause, what is
	// left of the turn.
	RetryAfter time.Duration
	// Fallback tells that a list works where a watch-list did not, which is to be
	// remembered.
	Fallback bool
	// Polls tells that a list takes the place of a watch that was refused, because watches have been
	// refused for long.
	Polls bool
}

// maxStrikes is the number of watches in a row that may break without an event
// before the set is listed again. One break is mended by a watch from the same
// resource version; when that breaks too, what is in the way (an event that
// cannot be decoded, a version that the server silently refuses) is still there.
const maxStrikes = 2

// strikeReset is the quiet time after which a broken watch counts as the first.
const strikeReset = 2 * time.Minute

// Steady is how long a watch has to last so that what follows it need not wait. Proxies that
// cut quiet connections leave them for longer; a server that ends watches sooner is asked no
// more often than one that refuses them.
const Steady = 10 * time.Second

// moment is how long a watch that has told something has to last to count as progress.
const moment = time.Second

// Turn is the least time from the opening of a watch that has ended in order to that of the next
// one. Something on the way may end each watch soon, which is no failure: what changes meanwhile is
// told at most so much later. A watch may need two questions besides, so that these are 72 requests
// a minute, and 109 where every other watch fails at once.
const Turn = 2500 * time.Millisecond

// maxStuck is for how long a page is asked for again that fails. Servers forget a token at
// about that age.
const maxStuck = 5 * time.Minute

// maxRefused is for how long watches may be refused before a list is tried in place of each. A list
// shows what happened meanwhile, and the version that it brings may be one that can be watched.
const maxRefused = 5 * time.Minute

// wholeExpiries is the number of generations in a row that may expire before the list is taken
// whole.
const wholeExpiries = 2

// Next returns what follows when a request of state s had outcome o.
//
// Invariant: each request follows a pause, except
//   - a further page, where the page before it showed objects;
//   - the list in place of one that the server has refused or let expire, or of a watch-list that
//     does not work. Until a set is read, Start.Consistent becomes true once, Start.Expiries
//     becomes 2, and Start.Lists becomes true without a pause maxFailures times;
//   - the one after a watch that lasted for Steady, or after the end of another one that
//     followed it. No list was read between the two;
//   - the watch after one that ended in order and lasted for a Turn.
//
// Invariant: where a watch, or a generation with a page that was read to its end, is followed by a
// list after a pause, that is ListPause.
func (p Policy) Next(s State, o Outcome) Step {
	next := p.next(s, o)
	next.RetryAfter = max(next.RetryAfter, o.RetryAfter)
	if next.Pause == RetryPause && o.Refused && o.RetryAfter > 0 {
		next.Pause = AskedPause
	}
	return next
}

// Again reports whether a request that has failed is made again as it was, and not in another
// way.
func (s Step) Again() bool {
	switch start, _ := s.State.(Start); s.Pause {
	case RetryPause, AskedPause:
		return true
	case ListPause:
		return start.Expiries == 0 || start.Expiries > wholeExpiries
	default:
		return false
	}
}

func (p Policy) next(s State, o Outcome) Step {
	switch s := s.(type) {
	case Start:
		if p.Streams(s) {
			return p.nextStreaming(s, o)
		}
		return p.nextListing(Listing{Start: s}, o)
	case Listing:
		return p.nextListing(s, o)
	case Watching:
		steady := o.Lasted >= Steady
		s.Fresh = s.Fresh && !steady
		s.RefusedSince = refusedSince(s, o)
		next := p.nextWatching(s, o)
		switch {
		case steady:
			next.Progress = WatchProgress
		case o.Moved && o.Lasted >= moment, o.Kind == WatchEnded && o.Lasted >= Turn:
			next.Progress = RequestProgress
		}
		// Between two watches the server may have been down, and restored, unseen.
		if watching, ok := next.State.(Watching); ok && (o.Doubtful || next.Pause != NoPause) {
			watching.Unsure = true
			next.State = watching
		}
		return next
	}
	panic("listwatch: unknown state")
}

// refusedSince is when the row of refusals began that a watch from s with outcome o is in, zero if it
// is in none. A server that is away, or busy, does not end a row.
func refusedSince(s Watching, o Outcome) clock.Moment {
	switch {
	case !o.Refused:
		return 0
	case o.Kind == NoWatch && s.RefusedSince == 0:
		return clock.Of(o.At)
	}
	return s.RefusedSince
}

// maxFailures is the number of watch-lists that may fail before a list is tried, where a list may
// fail in the same way. A second failure says that the way to the server may not carry watch-lists,
// or that the set is too large for the time that the server gives a slow client.
const maxFailures = 2

// maxBusy is for how long a server may say of watch-lists when to come again before a list is tried.
// A kube-apiserver whose watch cache is not ready does so for minutes, and a list would be read from
// etcd meanwhile.
const maxBusy = 5 * time.Minute

func (p Policy) nextStreaming(s Start, o Outcome) Step {
	busy := o.Kind == Failed && o.Refused && o.RetryAfter > 0
	switch {
	case !busy:
		s.BusySince = time.Time{}
	case s.BusySince.IsZero():
		s.BusySince = o.At
	}
	again := s
	again.Failures++
	if o.Shown && o.Kind != Unproven { // that may be newer than what is known
		again.Known = o.ResourceVersion
		again.Consistent = again.Consistent || again.Known == ""
	}
	switch o.Kind {
	case PageRead:
		return completed(s, o)
	case TooLarge, Expired:
		s.Gone = s.Gone || o.Kind == TooLarge
		return consistently(s)
	case Unproven:
		again.Consistent = true // a watch-list may show such a set for ever, and only lists can insist
		return unproven(again, o)
	case NoWatchList, BadRequest:
		again.Lists = true
	default:
		if busy {
			again.Failures, again.Lists = s.Failures, o.At.Sub(s.BusySince) >= maxBusy
			break
		}
		again.Lists = again.Failures >= maxFailures
	}
	next := Step{State: again, Effect: AbandonGeneration, Pause: RetryPause}
	if again.Lists && s.Failures < maxFailures && o.Kind != Failed && o.RetryAfter == 0 {
		next.Pause = NoPause
	}
	return next
}

func (p Policy) nextListing(s Listing, o Outcome) Step {
	switch o.Kind {
	case PageRead:
		if o.Continue == "" {
			next := completed(s.Start, o)
			next.Fallback = s.fellBack()
			return next
		}
		next := Step{State: s.Turned(o.Continue, o.First), Progress: RequestProgress, Fallback: s.fellBack()}
		if !o.Shown {
			// A server can go on like this for ever.
			next.Pause = RetryPause
		}
		return next
	case Circular:
		return s.expired(ListPause)
	case Unproven:
		return unproven(s.Start.withWatchList(), o)
	case Expired, TooLarge:
		s.Start.Gone = s.Start.Gone || o.Kind == TooLarge
		return s.refused(o)
	case BadRequest:
		if s.Continue == "" {
			return Step{State: s.Start.withWatchList(), Effect: AbandonGeneration, Pause: RetryPause}
		}
		return s.expired(ListPause) // a token that is refused once is refused for ever
	default:
		return s.failed(o)
	}
}

// fellBack tells that the first page of s is read in place of a watch-list.
func (s Listing) fellBack() bool { return s.Start.Lists && s.Pages == 0 }

// withWatchList is s after its list was refused as well, so that a watch-list is tried again.
func (s Start) withWatchList() Start {
	s.Lists = false
	return s
}

// Forgive is s after failures that were those of a server that was away: they say nothing of
// watch-lists, and a row of refused watches begins again.
func Forgive(s State) State {
	switch s := s.(type) {
	case Start:
		s.Failures, s.Lists, s.BusySince = 0, false, time.Time{}
		return s
	case Watching:
		s.RefusedSince = 0
		return s
	}
	return s
}

// completed ends a generation that began with s.
func completed(s Start, o Outcome) Step {
	next := Watching{ResourceVersion: o.ResourceVersion, Fresh: true, RefusedSince: s.RefusedSince}
	return Step{State: next, Effect: CompleteGeneration, Progress: RequestProgress}
}

// unproven begins a generation again whose set was complete, and not believed. What it has shown may
// be newer than what is known.
func unproven(again Start, o Outcome) Step {
	again.Consistent = again.Consistent || o.Shown
	return Step{State: again, Effect: AbandonGeneration, Pause: ListPause}
}

// consistently begins a generation again that the server has refused, and asks for its newest
// state.
func consistently(s Start) Step {
	pause := NoPause
	if s.Consistent {
		pause = RetryPause
	}
	s.Consistent = true
	return Step{State: s, Effect: AbandonGeneration, Pause: pause}
}

// Turned is s with another page read.
func (s Listing) Turned(token, first string) Listing {
	s.Continue, s.First, s.StuckSince = token, first, time.Time{}
	if s.Pages++; s.Pages&(s.Pages-1) == 0 {
		s.Mark, s.MarkFirst = token, first
	}
	return s
}

// ErrCircular says that a list has no end: a page of it is Circular.
var ErrCircular = errors.New("a page has the first object of an earlier page, or no object and its continue token")

// Circular reports whether a page has come before: the key of its first object is that of an
// earlier page, because an object stands in one page of a list. A page without a first key has come
// before if its token for the next page has. The tokens of other pages are not compared: a server
// that counts the requests of a list may give the same token with every page.
func (s Listing) Circular(token, first string) bool {
	if first == "" {
		return token == s.Continue || token == s.Mark
	}
	return first == s.First || first == s.MarkFirst
}

// refused begins the generation again, because the server does not have its version.
func (s Listing) refused(o Outcome) Step {
	switch {
	case o.Kind == Expired && s.Continue != "" && s.Start.Expiries < wholeExpiries:
		return s.expired(NoPause)
	case s.Continue != "" && (o.Kind == Expired || s.Start.Consistent):
		return s.expired(ListPause)
	}
	again := s.Start
	if o.Kind == Expired {
		again.Expiries++
	}
	return consistently(again)
}

// expired begins the generation again, because its token leads nowhere. The first time, the rest
// may well be in time when read again; the second time, paging is too slow for this server.
func (s Listing) expired(pause Pause) Step {
	again := s.Start
	again.Consistent = true
	again.Expiries++
	return Step{State: again, Effect: AbandonGeneration, Pause: pause}
}

// failed asks for the page again.
func (s Listing) failed(o Outcome) Step {
	if s.Continue == "" {
		// The first page may have been cut after some of its items. Asked for again,
		// it shows a newer state, and they may be gone from that; and it must not show an
		// older one, though what it has shown may be newer than what is known.
		again := s.Start.withWatchList()
		again.Consistent = again.Consistent || o.Shown
		return Step{State: again, Effect: AbandonGeneration, Pause: RetryPause}
	}
	if s.StuckSince.IsZero() {
		s.StuckSince = o.At
	}
	if o.At.Sub(s.StuckSince) >= maxStuck {
		return s.expired(ListPause)
	}
	// The other pages show the state of the first, however often they are read.
	return Step{State: s, Pause: RetryPause}
}

func (p Policy) nextWatching(s Watching, o Outcome) Step {
	ended := o.Kind == WatchEnded || o.Kind == Stalled
	start := Start{Known: s.ResourceVersion, RefusedSince: s.RefusedSince}
	list := Step{State: start, Pause: ListPause, Polls: o.Kind == NoWatch && clock.Of(o.At).Since(s.RefusedSince) >= maxRefused}
	if !s.Fresh && (ended || o.Kind == Expired) {
		list.Pause = NoPause
	}
	if !s.HasPlace() {
		// Another watch would not tell what was deleted meanwhile.
		start.Known = ""
		list.State = start
		return list
	}
	from, whole := s.forgetsBefore()
	switch {
	case s.Distrusted:
		start.Consistent = true
		list.State = start
		return list
	case p.NoResume:
		return list
	case o.Kind == Expired && o.Forgotten && !s.Lost && whole:
		return Step{State: from, Pause: RetryPause}
	case o.Kind == Expired, ended && s.Lost, list.Polls:
		return list
	case o.Kind == WatchEnded && o.Lasted >= Turn, o.Kind == Stalled && o.Lasted >= Steady:
		return Step{State: s}
	case o.Kind == WatchEnded:
		return Step{State: s, Pause: TurnPause, RetryAfter: Turn - o.Lasted}
	case o.Kind == TooLarge, o.Kind == BadRequest:
		start.Consistent, start.Gone = true, o.Kind == TooLarge
		list.State = start
		return list
	case o.Kind == WatchBroken, o.Kind == WatchTooShort:
		return p.strike(s, o, list)
	default:
		return Step{State: s, Pause: RetryPause}
	}
}

func (p Policy) strike(s Watching, o Outcome, list Step) Step {
	now := clock.Of(o.At)
	if s.Strikes == 0 || now.Since(s.StruckLast) > strikeReset {
		s.Strikes, s.StruckAt = 0, now
	}
	s.Strikes++
	s.StruckLast = now
	if s.Strikes >= maxStrikes && !p.retryInternal(s, o) {
		return list
	}
	return Step{State: s, Pause: RetryPause}
}

func (p Policy) retryInternal(s Watching, o Outcome) bool {
	return o.Internal && clock.Of(o.At).Since(s.StruckAt) < p.InternalErrorRetry
}
