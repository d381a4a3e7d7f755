package informertest

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The verbs that a [Match] names.
const (
	verbList      = "list"
	verbWatch     = "watch"
	verbWatchList = "watch-list" // a watch with sendInitialEvents=true
	verbGet       = "get"
)

// usualVerbs are what a [Match] names that names none.
var usualVerbs = []string{verbList, verbWatch, verbWatchList}

// Page says which pages of a list a [Match] is about.
type Page int

const (
	AnyPage    Page = iota // all pages, and requests that are no lists
	FirstPage              // lists without a continue token
	LaterPages             // lists with one
)

// Match says which requests a [Fault] meets. The zero value means all lists, watches and
// watch-lists.
type Match struct {
	// Verbs are "list", "watch", "watch-list" (a watch with sendInitialEvents=true) and "get" (of
	// an object). Nil means the first three. Writes and discovery are never met, except by what
	// happens to their connections.
	Verbs    []string
	Resource schema.GroupVersionResource // zero: every one
	Page     Page                        // other than AnyPage, only lists are met
	// With and Without name parameters of the query, for instance limit or resourceVersion. Only
	// requests are met that have the one and lack the other. A parameter without a value is
	// lacking.
	With, Without string
}

// Fault is one thing that goes wrong with requests to a [Server]. Its text form, which [ParseFault]
// reads, is one line:
//
//	list page=later 410 times=1
//
// This is a server whose watch cache is behind, so that it serves no consistent list:
//
//	list page=first without=resourceVersion 429 retry-after=1
//
// And this one does not know a parameter:
//
//	with=shardSelector 422
//
// A fault meets only requests that its effect can happen to: one about bookmarks for instance
// counts no lists. One that could meet none at all is invalid. Numbers are at most 2147483647.
type Fault struct {
	Match         // which requests it meets
	Effect Effect // what happens to them; required
	Skip   int    // lets that many matching requests pass first
	Times  int    // how many it meets then; 0: all, until it is healed
	Odds   int    // meets one in Odds of the matching that it does not skip, by the server's dice ([Options].Seed); 0 and 1: all
}

const (
	// maxCount is the largest number in a fault.
	maxCount = 1<<31 - 1
	// maxPadding is how many bytes an object can be padded by.
	maxPadding = 64 << 20
	// maxTime is the longest time in a fault.
	maxTime = 24 * time.Hour
)

// Effect is what happens to a request that a [Fault] meets. Effects are made by functions, one
// each, and are comparable.
type Effect struct {
	kind   effectKind
	n      int  // bytes, a place, a status code or odds, as the kind has it
	size   int  // of effectOversize, in bytes
	option bool // of effectCut: it ends cleanly; of effectErrorEvent: it comes late
	retry  int  // of effectStatus: Retry-After in seconds, 0 for none
	// time is that of effectDelay, effectClose and effectGoAway; 0 for none.
	time time.Duration
}

// Refuse (text: refuse) refuses connections: dialling fails, or on a loopback port the connection
// is reset as soon as it is there. What is connected is cut when the fault is injected. It meets
// connections instead of requests, so its fault has no Match.
func Refuse() Effect { return Effect{kind: effectRefuse} }

// Reset (text: reset) cuts the connection without an answer, with HTTP/2 together with all else
// that it carries. Go's clients ask once more on their own when the connection had carried a
// request before, so that one reset may go unseen.
func Reset() Effect { return Effect{kind: effectReset} }

// Hang (text: hang) leaves the request half-open: no byte more, and no end, until it is healed or
// the client goes. What is under way stops as well. A request that hangs before its answer is
// answered when it is healed. Other streams of the same HTTP/2 connection go on.
func Hang() Effect { return Effect{kind: effectHang} }

// Cut (text: cut=N) breaks the response off after n bytes of its body, or n more if it is under
// way: with HTTP/1.1 the connection is closed, with HTTP/2 the stream is reset. Bytes are counted
// as they are sent, compressed or not.
func Cut(n int) Effect { return Effect{kind: effectCut, n: n} }

// CutClean (text: cut=N,clean) is Cut, but the response ends as if it were whole, as behind a bad
// proxy.
func CutClean(n int) Effect { return Effect{kind: effectCut, n: n, option: true} }

// Slow (text: slow=N) lets no more than n bytes of a body through per second.
func Slow(n int) Effect { return Effect{kind: effectSlow, n: n} }

// Delay (text: delay=D, a duration such as 250ms) makes each item of a list's page and each event of
// a watch that is no bookmark take d, as at a server that asks a slow conversion webhook. A watch
// shows each as soon as it is there. A page is sent when all its items are there, or as many as fill
// the buffer of the server.
func Delay(d time.Duration) Effect { return Effect{kind: effectDelay, time: d} }

// Garbage (text: garbage=I) makes the i-th item of a list's page, or the i-th event of a watch that
// is no bookmark, something that cannot be read as an object, while all around it is well-formed.
// The first is 1; in a watch under way it is the first after the injection.
func Garbage(i int) Effect { return Effect{kind: effectGarbage, n: i} }

// Mistyped (text: mistyped=I) makes the i-th item of a list's page or event of a watch, counted as
// by Garbage, one that does not fit its type, as an object that was stored before its definition
// changed: it can be read, its metadata are as they were, and what else it has is of another type,
// so that no Go type of it can be decoded. There is nothing to see of that in what is asked for as
// metadata only.
func Mistyped(i int) Effect { return Effect{kind: effectMistyped, n: i} }

// Unversioned (text: unversioned=I) takes the resource version of the i-th event of a watch away,
// counted as by Garbage, as a broken proxy may. The event is readable otherwise.
func Unversioned(i int) Effect { return Effect{kind: effectUnversioned, n: i} }

// Oversize (text: oversize=I,BYTES) pads the i-th item of a list's page or event of a watch,
// counted as by Garbage, with an annotation of that many bytes, 64 MiB at most. It stays a readable
// object.
func Oversize(i, bytes int) Effect { return Effect{kind: effectOversize, n: i, size: bytes} }

// Status (text: the code, for instance 503) answers with a Status of that HTTP code, from 400 to
// 599. 410 is what a kube-apiserver says of a forgotten history: to a list the reason Expired, on
// its later pages with a token to go on inconsistently, and to a watch an ERROR event. 400 and 422
// name the parameter of [Match].With, if there is one, as the parameter that is unknown.
func Status(code int) Effect { return Effect{kind: effectStatus, n: code} }

// RetryAfter (text: retry-after=N beside the code) returns the effect with a Retry-After of d,
// rounded up to whole seconds; more than 68 years count as 68. It is for Status, others refuse it.
func (e Effect) RetryAfter(d time.Duration) Effect {
	switch {
	case d < 0:
		e.retry = -1 // which is refused
	case d > maxCount*time.Second:
		e.retry = maxCount
	default:
		e.retry = int((d + time.Second - 1) / time.Second)
	}
	return e
}

// ErrorEvent (text: error-event=CODE) ends a watch with an ERROR event of that code, from 400 to
// 599: one under way at once, a new one before its first event.
func ErrorEvent(code int) Effect { return Effect{kind: effectErrorEvent, n: code} }

// LateErrorEvent (text: error-event=CODE,late) is ErrorEvent, but the ERROR event is preceded by a
// bookmark, if the client takes those and the watch is no watch-list that begins.
func LateErrorEvent(code int) Effect { return Effect{kind: effectErrorEvent, n: code, option: true} }

// NoBookmarks (text: no-bookmarks) withholds the bookmarks of a watch, also the one that ends a
// watch-list's initial events.
func NoBookmarks() Effect { return Effect{kind: effectNoBookmarks} }

// DropBookmarks (text: drop-bookmarks=N) withholds one bookmark in n, by the server's dice.
func DropBookmarks(n int) Effect { return Effect{kind: effectDropBookmarks, n: n} }

// IgnoreWatchList (text: ignore-watch-list) ignores sendInitialEvents, as an old server does: the
// watch-list becomes an ordinary watch from the same resource version.
func IgnoreWatchList() Effect { return Effect{kind: effectIgnoreWatchList} }

// RefuseWatchList (text: refuse-watch-list) refuses a watch-list with 422, as a server does that
// has it disabled.
func RefuseWatchList() Effect { return Effect{kind: effectRefuseWatchList} }

// EndlessWatchList (text: endless-watch-list) never sends the bookmark that ends the initial events
// of a watch-list, nor any later one on that stream, even when it is healed.
func EndlessWatchList() Effect { return Effect{kind: effectEndlessWatchList} }

// CloseWatch (text: close) ends a watch cleanly at once, a new one before its first event.
func CloseWatch() Effect { return Effect{kind: effectClose} }

// CloseWatchAfter (text: close=D, a duration such as 5m) ends a watch cleanly when it has lasted for
// d, also in the midst of the initial events of a watch-list, as a proxy may. 0 is CloseWatch.
func CloseWatchAfter(d time.Duration) Effect { return Effect{kind: effectClose, time: d} }

// GoAway (text: goaway) answers, and tells the client not to use the connection any more: with
// HTTP/2 by a GOAWAY, after which the streams that are there go on, with HTTP/1.1 by "Connection:
// close". A kube-apiserver does so with --goaway-chance: 0.02 is "goaway odds=50".
func GoAway() Effect { return Effect{kind: effectGoAway} }

// GoAwayAndCut (text: goaway=D, a duration such as 10s) is GoAway, but the connection is cut d
// later, with all that it still carries, as by a server that stops.
func GoAwayAndCut(d time.Duration) Effect {
	if d == 0 {
		d = -1 // which is refused
	}
	return Effect{kind: effectGoAway, time: d}
}

// Lag (text: lag) serves from a replica that stands still since the fault was injected, and catches
// up when it is healed. A list or get at resource version "0" or at one that the replica has
// reached shows the replica's state; at a newer one it is told that it is too large, after three
// seconds. A list or get without resource version, and the later pages of a list, are current. A
// watch shows nothing newer. A watch-list without resource version must be current, so that it is
// told that it is too large, if anything was written since.
func Lag() Effect { return Effect{kind: effectLag} }

// Repeat (text: repeat=N) makes a broken proxy: by the server's dice, one event in n of a watch is
// followed by one of the up to eight before it, once more. Bookmarks are not repeated.
func Repeat(n int) Effect { return Effect{kind: effectRepeat, n: n} }

// Swap (text: swap=N) makes a broken proxy: by the server's dice, one event in n of a watch is held
// back and written right behind the next one. A bookmark, the end of the watch and the healing of
// the fault let it go in its own place.
func Swap(n int) Effect { return Effect{kind: effectSwap, n: n} }

// Lose (text: lose=N) makes a server that lies: by the server's dice, one change in n is not told
// to a watch, deletions included, and nothing says so. Bookmarks, and the initial events of a
// watch-list, are told.
func Lose(n int) Effect { return Effect{kind: effectLose, n: n} }

// RepeatToken (text: repeat-token) gives the later pages of a list the token that they were asked
// with, so that they have no end.
func RepeatToken() Effect { return Effect{kind: effectRepeatToken} }

// Foreign (text: foreign) answers a list with 200 and a list of no objects, of a kind that none of
// the server's resources has, as a bad proxy does.
func Foreign() Effect { return Effect{kind: effectForeign} }

// Corrupt (text: corrupt=N) has a compressed body go on, after the first n bytes of its content,
// with what cannot be decompressed. The n bytes can be. It does nothing to a body that is shorter,
// or not compressed; see [Options].GzipAbove and GzipWatches.
func Corrupt(n int) Effect { return Effect{kind: effectCorrupt, n: n} }

// WrongChecksum (text: wrong-checksum) ends a compressed body with a checksum, and a length, that
// are not those of its content. It does nothing to a body that is not compressed.
func WrongChecksum() Effect { return Effect{kind: effectWrongChecksum} }

// validate reports what is wrong with a fault.
func (f Fault) validate() error {
	if err := f.Match.validate(); err != nil {
		return err
	}
	for _, c := range []struct {
		name  string
		value int
	}{{"skip", f.Skip}, {"times", f.Times}, {"odds", f.Odds}} {
		if c.value < 0 || c.value > maxCount {
			return fmt.Errorf("%s must be from 0 to %d, but is %d", c.name, maxCount, c.value)
		}
	}
	if err := f.Effect.validate(); err != nil {
		return err
	}
	if f.Effect.kind == effectRefuse && !f.Match.zero() {
		return errors.New("refuse meets connections, so it takes no verbs, resource, page or parameter")
	}
	if f.Effect.kind != effectRefuse && len(f.verbs()) == 0 {
		return fmt.Errorf("it meets nothing: %s happens to %s only", f.Effect, strings.Join(f.Effect.traits().verbs, ", "))
	}
	return nil
}

// verbs are the requests that the fault can meet.
func (f Fault) verbs() []string {
	verbs := f.Match.verbs()
	return slices.DeleteFunc(verbs, func(verb string) bool { return !slices.Contains(f.Effect.traits().verbs, verb) })
}

// verbs are the requests that can match, in a slice of their own.
func (m Match) verbs() []string {
	verbs := slices.Clone(m.Verbs)
	if m.Verbs == nil {
		verbs = slices.Clone(usualVerbs)
	}
	if m.Page != AnyPage { // which only lists have
		verbs = slices.DeleteFunc(verbs, func(verb string) bool { return verb != verbList })
	}
	return verbs
}

func (m Match) zero() bool {
	return m.Verbs == nil && m.Resource.Empty() && m.Page == AnyPage && m.With == "" && m.Without == ""
}

func (m Match) validate() error {
	for i, verb := range m.Verbs {
		switch verb {
		case verbList, verbWatch, verbWatchList, verbGet:
		default:
			return fmt.Errorf("unknown verb %q: it must be list, watch, watch-list or get", verb)
		}
		if slices.Contains(m.Verbs[:i], verb) {
			return fmt.Errorf("verb %q is named twice", verb)
		}
	}
	if m.Verbs != nil && len(m.Verbs) == 0 {
		return errors.New("an empty list of verbs meets nothing")
	}
	if r := m.Resource; !r.Empty() {
		if r.Version == "" || r.Resource == "" {
			return fmt.Errorf("the resource %q lacks its version or its name", r)
		}
		if strings.ContainsFunc(r.Group+r.Version+r.Resource, func(c rune) bool { return c <= ' ' || c == '/' || c > '~' }) {
			return fmt.Errorf("the resource %q has characters that no resource has", r)
		}
	}
	if m.Page < AnyPage || m.Page > LaterPages {
		return fmt.Errorf("unknown page %d", m.Page)
	}
	if len(m.verbs()) == 0 {
		return fmt.Errorf("only lists have pages, not %s", strings.Join(m.Verbs, ", "))
	}
	for _, name := range []string{m.With, m.Without} {
		if strings.ContainsFunc(name, func(c rune) bool { return (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') }) {
			return fmt.Errorf("no parameter has the name %q", name)
		}
	}
	if m.With != "" && m.With == m.Without {
		return fmt.Errorf("no request has the parameter %s and lacks it", m.With)
	}
	return nil
}

func (e Effect) validate() error {
	least, most := e.traits().least, cmp.Or(e.traits().most, maxCount)
	switch {
	case e.kind == effectNone:
		return errors.New("the fault has no effect")
	case e.n < least || e.n > most:
		return fmt.Errorf("%s: the number must be from %d to %d", e, least, most)
	case e.kind == effectOversize && (e.size < 1 || e.size > maxPadding):
		return fmt.Errorf("%s: the size must be from 1 to %d bytes", e, maxPadding)
	case e.time < 0 || e.time > maxTime || e.time == 0 && e.kind == effectDelay:
		return fmt.Errorf("%s: the time must be more than 0 and at most %v", e, maxTime)
	case e.retry < 0:
		return fmt.Errorf("%s: the time to retry after must not be negative", e)
	case e.retry > 0 && e.kind != effectStatus:
		return fmt.Errorf("%s takes no time to retry after", e)
	}
	return nil
}

func (e Effect) traits() *effectTraits { return &effects[e.kind] }

// inquiry is a request as faults see it.
type inquiry struct {
	verb     string
	resource schema.GroupVersionResource
	page     Page // FirstPage or LaterPages of a list, else AnyPage
	query    url.Values
}

// matches reports whether the fault is about such a request at all.
func (f Fault) matches(q inquiry) bool {
	verbs := f.Verbs
	if verbs == nil { // as Match.verbs has it
		verbs = usualVerbs
	}
	return slices.Contains(verbs, q.verb) &&
		slices.Contains(f.Effect.traits().verbs, q.verb) &&
		(f.Resource.Empty() || f.Resource == q.resource) &&
		(f.Page == AnyPage || f.Page == q.page) &&
		(f.With == "" || q.query.Get(f.With) != "") &&
		(f.Without == "" || q.query.Get(f.Without) == "")
}
