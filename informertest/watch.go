package informertest

import (
	"bufio"
	"context"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// defaultWatchTime is how long a watch without timeoutSeconds lasts: the least that a kube-apiserver gives.
const defaultWatchTime = 30 * time.Minute

// farewell is how long before its end a watch gets a last bookmark, so that the next one begins as late as it can.
const farewell = 2 * time.Second

// opening says with what a watch begins.
type opening int

const (
	openingState  opening = iota // the current state as ADDED events
	openingSince                 // the writes after a resource version
	openingNow                   // the writes from now on
	openingStream                // as openingState, and a marked bookmark after it: a watch-list
)

// watchPlan is a watch request, checked and understood, before any state is looked at.
type watchPlan struct {
	selection
	opening   opening
	rv        uint64 // openingSince: events are newer; else the state must not be older
	bookmarks bool
	duration  time.Duration
}

func planWatch(namespace string, opts *metav1.ListOptions) (watchPlan, error) {
	p := watchPlan{bookmarks: opts.AllowWatchBookmarks, duration: defaultWatchTime}
	if err := checkWatchOptions(opts); err != nil {
		return p, err
	}
	var err error
	if p.selection, err = newSelection(namespace, opts); err != nil {
		return p, err
	}
	if s := opts.TimeoutSeconds; s != nil && *s > 0 {
		p.duration = time.Duration(*s) * time.Second
	}
	anyRV := opts.ResourceVersion == "" || opts.ResourceVersion == "0"
	if !anyRV {
		if p.rv, err = parseRV(opts.ResourceVersion); err != nil {
			return p, err
		}
	}
	switch initial := opts.SendInitialEvents; {
	case initial != nil && *initial:
		p.opening = openingStream
	case !anyRV:
		p.opening = openingSince
	case initial != nil:
		p.opening = openingNow
	}
	return p, nil
}

func checkWatchOptions(opts *metav1.ListOptions) error {
	match := opts.ResourceVersionMatch
	switch {
	case opts.SendInitialEvents == nil && match != "":
		return invalidOptions("resourceVersionMatch", "a watch takes it only together with sendInitialEvents")
	case opts.SendInitialEvents != nil && match != metav1.ResourceVersionMatchNotOlderThan:
		return invalidOptions("resourceVersionMatch", "sendInitialEvents needs it to be NotOlderThan")
	case opts.Continue != "":
		return invalidOptions("continue", "a watch has no pages")
	}
	return nil
}

// open begins a watch: the objects to show as ADDED first, and the place from which to follow.
func (s *store) open(t *table, p watchPlan) (Resource, []*object, *cursor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.rv > s.rv {
		return t.resource, nil, nil, tooLarge(p.rv, s.rv)
	}
	c := &cursor{store: s, table: t, rv: s.rv, next: t.end()}
	var initial []*object
	switch p.opening {
	case openingSince:
		if p.rv < s.compacted {
			return t.resource, nil, nil, expired(p.rv, s.compacted)
		}
		c.rv = p.rv
		c.next = t.after(p.rv)
	case openingState, openingStream:
		initial, _ = t.scan(p.selection, "", s.rv, 0)
	}
	t.cursors[c] = struct{}{}
	return t.resource, initial, c, nil
}

// unwritable is the error of an object that a codec cannot write. The client is still there to be told.
type unwritable struct{ error }

// watching is one watch under way.
type watching struct {
	watchPlan
	codec   codec
	media   media
	every   time.Duration // between bookmarks
	cursor  *cursor
	out     *bufio.Writer
	flusher *http.ResponseController

	deadline time.Time
	bookmark time.Time // when the next one is due
}

// run shows the initial state, then follows the writes until the watch is over. An error means that the client is gone,
// or is unwritable.
func (w *watching) run(ctx context.Context, initial []*object) error {
	w.deadline = time.Now().Add(w.duration)
	w.schedule()
	for _, o := range initial {
		if err := w.send(watch.Added, o); err != nil {
			return err
		}
	}
	if w.opening == openingStream && w.bookmarks {
		if err := w.sendBookmark(w.cursor.rv, true); err != nil {
			return err
		}
	}
	if err := w.flush(); err != nil {
		return err
	}
	for {
		now := time.Now()
		if !now.Before(w.deadline) || ctx.Err() != nil {
			return nil
		}
		got := w.cursor.take()
		due := w.bookmarks && !now.Before(w.bookmark)
		switch {
		case got.state == cursorEnded:
			return nil
		case got.state == cursorBehind:
			return w.fail(expired(got.rv, w.cursor.store.newest()))
		case len(got.events) == 0 && !due:
			w.idle(ctx, got.changed)
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

// idle waits for the next thing to do.
func (w *watching) idle(ctx context.Context, changed <-chan struct{}) {
	until := w.deadline
	if w.bookmarks && w.bookmark.Before(until) {
		until = w.bookmark
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// schedule sets the time of the next bookmark: an interval from now, or shortly before the end if that comes first.
func (w *watching) schedule() {
	now := time.Now()
	w.bookmark = now.Add(w.every)
	if last := w.deadline.Add(-farewell); now.Before(last) && last.Before(w.bookmark) {
		w.bookmark = last
	}
}

// follow sends what the selection shows of the writes: an object that begins to match comes into being, one that no
// longer matches ceases to be.
func (w *watching) follow(events []event) error {
	for _, e := range events {
		before := e.old != nil && w.matches(e.old)
		after := e.new != nil && w.matches(e.new)
		var err error
		switch {
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

// fail tells the client inside the stream why it ends, as a kube-apiserver does once a watch is accepted.
func (w *watching) fail(cause error) error {
	s := statusOf(cause)
	status, err := w.media.status(&s)
	if err != nil {
		return err
	}
	if err := w.media.event(w.out, watch.Error, status); err != nil {
		return err
	}
	return w.flush()
}

func (w *watching) send(kind watch.EventType, o *object) error {
	text, err := w.codec.object(nil, o)
	if err != nil {
		return unwritable{err}
	}
	return w.media.event(w.out, kind, text)
}

func (w *watching) sendBookmark(rv uint64, initialEnd bool) error {
	text, err := w.codec.bookmark(rv, initialEnd)
	if err != nil {
		return unwritable{err}
	}
	return w.media.event(w.out, watch.Bookmark, text)
}

func (w *watching) flush() error {
	if err := w.out.Flush(); err != nil {
		return err
	}
	return w.flusher.Flush()
}
