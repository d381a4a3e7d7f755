package informertest

import (
	"bufio"
	"context"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// defaultWatchTime is how long a watch without timeoutSeconds lasts: the least that a
// kube-apiserver gives.
const defaultWatchTime = 30 * time.Minute

// farewell is how long before its end a watch gets a last bookmark, so that the next one begins as
// late as it can.
const farewell = 2 * time.Second

// opening says with what a watch begins.
type opening int

const (
	openingStream opening = iota // the current state as ADDED events, and a marked bookmark after it
	openingSince                 // the writes after a resource version
	openingNow                   // the writes from now on
)

// watchPlan is a watch request, checked and understood, before any state is looked at.
type watchPlan struct {
	selection
	opening opening
	rv      uint64 // openingSince: events are newer; else the state must not be older
	// openingStream: the state must not be older than when it was asked for.
	consistent bool
	marked     bool // a marked bookmark follows the initial state
	bookmarks  bool
	duration   time.Duration
}

func planWatch(v versions, namespace string, opts *metav1.ListOptions) (watchPlan, error) {
	p := watchPlan{bookmarks: opts.AllowWatchBookmarks, duration: defaultWatchTime}
	initial, err := checkOptions(opts)
	if err != nil {
		return p, err
	}
	if p.selection, err = newSelection(namespace, opts); err != nil {
		return p, err
	}
	if s := opts.TimeoutSeconds; s != nil && *s != 0 { // below 0, the watch ends at once
		p.duration = time.Duration(*s) * time.Second
	}
	anyRV := anyVersion(opts)
	if !anyRV {
		if p.rv, err = v.parse(opts.ResourceVersion); err != nil {
			return p, unread(opts.ResourceVersion, err)
		}
	}
	switch {
	case initial:
		p.opening, p.consistent, p.marked = openingStream, opts.ResourceVersion == "", p.bookmarks
	case !anyRV:
		p.opening = openingSince
	default:
		p.opening = openingNow
	}
	return p, nil
}

// open begins a watch: the objects to show as ADDED first, and the place from which to follow.
//
// A watch from a resource version that is not reached is silent until it is passed. One from before
// the last compaction is answered, where its replica has not seen that.
func (s *store) open(t *table, p watchPlan, old *replica) (Resource, []*object, *cursor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.removed {
		return t.resource, nil, nil, unknownResource(t.resource.GroupVersionResource)
	}
	old = s.presentLocked(old)
	reached := s.reachedLocked(old)
	if p.opening == openingStream && p.rv > reached {
		return t.resource, nil, nil, tooLarge(s.versions, p.rv, reached)
	}
	c := &cursor{store: s, table: t, rv: s.rv, next: t.end()}
	if old != nil {
		c = old.of(t).follow(s, old.rv)
	}
	var initial []*object
	switch {
	case p.opening == openingSince && (old == nil || p.rv < old.rv || p.rv < t.born):
		if oldest := s.oldestLocked(t); p.rv < oldest {
			return t.resource, nil, nil, expired(s.versions, p.rv, oldest)
		}
		c = &cursor{store: s, table: t, next: t.after(p.rv)}
		fallthrough
	case p.opening == openingSince:
		c.rv = p.rv
		if p.rv > reached {
			c.future = p.rv
		}
	case p.opening == openingNow:
	case old != nil:
		initial, _ = old.of(t).state.scan(p.selection, "", old.rv, 0)
	default:
		initial, _ = t.scan(p.selection, "", s.rv, 0)
	}
	t.cursors[c] = struct{}{}
	return t.resource, initial, c, nil
}

// unwritable is the error of an object that a codec cannot write. The client is still there to be
// told.
type unwritable struct{ error }

// watching is one watch under way.
type watching struct {
	watchPlan
	strain
	exchange *exchange
	target   target
	resource Resource

	codec   codec
	media   media
	speech  speech
	every   time.Duration // between bookmarks
	cursor  *cursor
	out     *bufio.Writer
	zip     *zipper // what out writes to, nil unless the watch is compressed
	flusher *http.ResponseController

	began    time.Time
	bookmark time.Time // when the next one is due
}

// run shows the initial state, then follows the writes until the watch is over. An error means that
// the client is gone, or is unwritable.
func (w *watching) run(ctx context.Context, initial []*object) error {
	w.began = time.Now()
	w.schedule()
	for _, o := range initial {
		if over, err := w.act(); over {
			return err
		}
		if err := w.send(watch.Added, o); err != nil {
			return err
		}
	}
	if over, err := w.act(); over {
		return err
	}
	if w.marked {
		if err := w.sendBookmark(w.cursor.rv, true); err != nil {
			return err
		}
	}
	if err := w.flush(); err != nil {
		return err
	}
	for {
		faulty := w.exchange.wait()
		if over, err := w.act(); over {
			return err
		}
		if ctx.Err() != nil {
			return w.end()
		}
		now := time.Now()
		got := w.cursor.take(w.exchange.replica())
		due := w.bookmarks && !now.Before(w.bookmark)
		switch {
		case due && got.silent && w.speech.OwnStore:
			got.rv = got.reached
		case due && got.silent:
			w.schedule()
			due = false
		}
		switch {
		case got.state == cursorEnded:
			return w.end()
		case got.state == cursorBehind:
			return w.fail(expired(w.resource.versions, got.rv, w.cursor.store.newest()))
		case len(got.events) == 0 && !due:
			w.idle(ctx.Done(), got.changed, faulty)
			continue
		}
		if err := w.follow(got.events); err != nil {
			return err
		}
		if due {
			w.schedule()
			if err := w.sendBookmark(got.rv, false); err != nil {
				return err
			}
		}
		if err := w.flush(); err != nil {
			return err
		}
	}
}

// schedule sets the time of the next bookmark: an interval from now, or shortly before the end if
// that comes first.
func (w *watching) schedule() {
	now := time.Now()
	w.bookmark = now.Add(w.every)
	if last := w.began.Add(w.duration - farewell); now.Before(last) && last.Before(w.bookmark) {
		w.bookmark = last
	}
}

// follow sends what the selection shows of the writes: an object that begins to match comes into
// being, one that no longer matches ceases to be.
func (w *watching) follow(events []event) error {
	for _, e := range events {
		before := e.old != nil && w.matches(e.old)
		after := e.new != nil && w.matches(e.new)
		var err error
		switch {
		case (before || after) && w.loses():
		case before && after:
			err = w.send(watch.Modified, e.new)
		case after:
			err = w.send(watch.Added, e.new)
		case before:
			err = w.send(watch.Deleted, e.old.at(e.rv))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fail tells the client inside the stream why it ends, as a kube-apiserver does once a watch is
// accepted.
func (w *watching) fail(cause error) error {
	s := statusOf(cause)
	status, err := w.media.status(&s)
	if err != nil {
		return err
	}
	if err := w.release(); err != nil {
		return err
	}
	if err := w.say(watch.Error, status); err != nil {
		return err
	}
	return w.flush()
}

func (w *watching) send(kind watch.EventType, o *object) error {
	if err := w.dawdle(); err != nil || w.overtaken {
		return err
	}
	text, err := w.codec.object(nil, w.speech.event(kind, o), w.exchange.taint())
	if err != nil {
		return unwritable{err}
	}
	return w.emit(frame{kind: kind, object: text})
}

func (w *watching) sendBookmark(rv uint64, initialEnd bool) error {
	if err := w.release(); err != nil {
		return err
	}
	if w.overtaken || w.withholds(initialEnd) { // it would tell of objects that were not shown
		return nil
	}
	version, ok := w.speech.bookmark(rv, initialEnd)
	if !ok {
		return nil
	}
	text, err := w.codec.bookmark(version, initialEnd)
	if err != nil {
		return unwritable{err}
	}
	return w.say(watch.Bookmark, text)
}

// say writes an event as it is.
func (w *watching) say(kind watch.EventType, object []byte) error {
	return w.speech.writeEvent(w.out, w.media, kind, object)
}

func (w *watching) flush() error {
	err := w.out.Flush()
	if err == nil && w.zip != nil {
		err = w.zip.end()
	}
	if err != nil {
		return err
	}
	return w.flusher.Flush()
}
