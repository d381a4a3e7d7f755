// Package listwatch decides what a reflector does next.
//
// A reflector lists a set of objects, page by page, and then watches it; or it
// opens a watch that begins with the set, a watch-list, and goes on with it. Its
// state is one of three values: Start (nothing listed yet), Listing (some pages
// of a generation were read), Watching (a complete generation was read, and
// what happened since). Policy.Next maps a state and the outcome of its request
// to the next state; Policy.ListOptions and WatchOptions say what to ask the
// server for in a state. Nothing here does I/O or knows the time.
package listwatch

import (
	"time"
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
	// Expiries counts the generations given up in a row because their continue
	// token had expired.
	Expiries int
	// EarlyEnds counts the watch-lists in a row that ended before their initial
	// events did.
	EarlyEnds int
	// Lists tells that a watch-list did not work: the generation is read with lists.
	Lists bool
}

// Listing reads the pages of a generation.
type Listing struct {
	// Start is what the generation began from: where it has to begin again.
	Start Start
	// Continue is the token of the next page.
	Continue string
}

// Watching follows the changes since a resource version.
type Watching struct {
	ResourceVersion string
	// Lost tells that an event could not be read, so that what it told is not known:
	// the next time, the set is listed.
	Lost bool
	// Unsure tells that the server may have been away since it has told ResourceVersion, or
	// has not told it to this process. It may have been restored from a backup: it is
	// asked whether it has that version.
	Unsure bool
	// Quiet is true until the first event since the list.
	Quiet bool
	// Strikes counts the watches in a row that broke without an event.
	Strikes int
	// StruckAt is when the first of them broke.
	StruckAt time.Time
	// StruckLast is when the newest of them broke.
	StruckLast time.Time
}

func (Start) isState()    {}
func (Listing) isState()  {}
func (Watching) isState() {}

// Pause is how long to wait before the next request.
type Pause int

const (
	// NoPause goes on at once.
	NoPause Pause = iota
	// BackoffPause waits for the next step of the backoff, or for as long as
	// the server asked, where that is longer.
	BackoffPause
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
	State  State
	Effect Effect
	Pause  Pause
	// Fallback tells that a watch-list did not work here, which is to be
	// remembered.
	Fallback bool
}

// maxStrikes is the number of watches in a row that may break without an event
// before the set is listed again. One break is mended by a watch from the same
// resource version; when that breaks too, what is in the way (an event that
// can not be decoded, a version that the server silently refuses) is still there.
const maxStrikes = 2

// strikeReset is the quiet time after which a broken watch counts as the first.
const strikeReset = 2 * time.Minute

// Next returns what follows when a request of state s had outcome o.
func (p Policy) Next(s State, o Outcome) Step {
	switch s := s.(type) {
	case Start:
		if p.Streams(s) {
			return p.nextStreaming(s, o)
		}
		return p.nextListing(Listing{Start: s}, o)
	case Listing:
		return p.nextListing(s, o)
	case Watching:
		next := p.nextWatching(s, o)
		// Between two watches the server may have been down, and restored, unseen.
		if watching, ok := next.State.(Watching); ok && (o.Doubtful || next.Pause != NoPause) {
			watching.Unsure = true
			next.State = watching
		}
		return next
	}
	panic("listwatch: unknown state")
}

// maxEarlyEnds is the number of watch-lists in a row that may end early. A second
// one says that the way to the server does not carry them, or that the set is too
// large for the time that the server gives a slow client.
const maxEarlyEnds = 2

func (p Policy) nextStreaming(s Start, o Outcome) Step {
	again := s
	switch o.Kind {
	case PageRead:
		return Step{State: Watching{ResourceVersion: o.ResourceVersion, Quiet: true}, Effect: CompleteGeneration}
	case EndedEarly:
		again.EarlyEnds++
		if again.EarlyEnds < maxEarlyEnds {
			// What it has shown may be newer than what is known.
			again.Known = o.ResourceVersion
			again.Consistent = again.Known == "" && o.Shown
			return Step{State: again, Effect: AbandonGeneration, Pause: BackoffPause}
		}
		again.Consistent = true
		fallthrough
	case NoWatchList, BadRequest:
		again.EarlyEnds, again.Lists = 0, true
		return Step{State: again, Effect: AbandonGeneration, Fallback: true}
	case TooLarge, Expired:
		again.Consistent = true
		return Step{State: again, Effect: AbandonGeneration, Pause: pauseIf(s.Consistent)}
	default:
		return Step{State: s, Effect: AbandonGeneration, Pause: BackoffPause}
	}
}

func (p Policy) nextListing(s Listing, o Outcome) Step {
	switch o.Kind {
	case PageRead:
		if o.Continue != "" {
			return Step{State: Listing{Start: s.Start, Continue: o.Continue}}
		}
		return Step{State: Watching{ResourceVersion: o.ResourceVersion, Quiet: true}, Effect: CompleteGeneration}
	case Expired:
		// The first time a page goes too late, the rest may well be in time when
		// read again; the second time, paging is too slow for this server.
		again := s.Start
		again.Consistent, again.Expiries = true, s.Start.Expiries+1
		return Step{State: again, Effect: AbandonGeneration, Pause: pauseIf(again.Expiries > 2)}
	case TooLarge:
		again := s.Start
		again.Consistent = true
		return Step{State: again, Effect: AbandonGeneration, Pause: pauseIf(s.Start.Consistent)}
	case BadRequest:
		// A token that is refused once is refused for ever.
		return Step{State: s.Start, Effect: AbandonGeneration, Pause: BackoffPause}
	default:
		if s.Continue == "" {
			// The first page may have been cut after some of its items. Asked for again,
			// it shows a newer state, in which they may be gone; and it must not show an
			// older one, though what it has shown may be newer than what is known.
			again := s.Start
			again.Consistent = again.Consistent || o.Shown
			return Step{State: again, Effect: AbandonGeneration, Pause: BackoffPause}
		}
		// The other pages show the state of the first, however often they are read.
		return Step{State: s, Pause: BackoffPause}
	}
}

func (p Policy) nextWatching(s Watching, o Outcome) Step {
	if s.ResourceVersion == "" || s.ResourceVersion == "0" {
		// There is no place to go on from: another watch would not tell what was
		// deleted meanwhile.
		return Step{State: Start{}, Pause: pauseIf(o.Kind != WatchEnded && o.Kind != Stalled)}
	}
	switch o.Kind {
	case WatchEnded, Stalled:
		if s.Lost {
			return Step{State: Start{Known: s.ResourceVersion}}
		}
		return Step{State: s}
	case Expired:
		// A server whose own list is expired already at the first watch is not
		// asked again at once.
		return Step{State: Start{Known: s.ResourceVersion}, Pause: pauseIf(s.Quiet)}
	case TooLarge, BadRequest:
		return Step{State: Start{Known: s.ResourceVersion, Consistent: true}, Pause: BackoffPause}
	case WatchBroken, WatchTooShort:
		return p.strike(s, o)
	default:
		return Step{State: s, Pause: BackoffPause}
	}
}

func (p Policy) strike(s Watching, o Outcome) Step {
	if s.Strikes == 0 || o.At.Sub(s.StruckLast) > strikeReset {
		s.Strikes, s.StruckAt = 0, o.At
	}
	s.Strikes++
	s.StruckLast = o.At
	if s.Strikes >= maxStrikes && !p.retryInternal(s, o) {
		return Step{State: Start{Known: s.ResourceVersion}, Pause: BackoffPause}
	}
	return Step{State: s, Pause: BackoffPause}
}

func (p Policy) retryInternal(s Watching, o Outcome) bool {
	return o.Internal && o.At.Sub(s.StruckAt) < p.InternalErrorRetry
}

func pauseIf(wait bool) Pause {
	if wait {
		return BackoffPause
	}
	return NoPause
}
