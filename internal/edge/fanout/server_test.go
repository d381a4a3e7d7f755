package fanout_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"

	"github.com/rvinformer/informer/internal/edge/fanout"
)

// server has a history of events, whose values count from 1, and watches of it.
type server struct {
	// version is the resource version of an event, and version(0) that before the first.
	version func(n int) string
	size    int

	mu      sync.Mutex
	history int
	grown   chan struct{} // closed when there is more
	reading int
	opened  int
	// ends ends the watches that are open.
	ends chan struct{}
	// swaps has each event that can be divided by it change places with the one after it; zero:
	// none.
	swaps int
	// bookmarks are the numbers of the events after which there are bookmarks, whose value is 0.
	bookmarks []int
}

func newServer(version func(int) string, size int) *server {
	return &server{version: version, size: size, grown: make(chan struct{}), ends: make(chan struct{})}
}

func numbers(n int) string { return strconv.Itoa(1000 + 2*n) }
func opaque(n int) string  { return fmt.Sprintf("v-%x", n*7919) }

func (s *server) write(events int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history += events
	close(s.grown)
	s.grown = make(chan struct{})
}

// resize sets the size of the events that are sent from now on.
func (s *server) resize(size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.size = size
}

// bookmark sends a bookmark after what was written by now.
func (s *server) bookmark() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bookmarks = append(s.bookmarks, s.history)
}

func (s *server) endAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.ends)
	s.ends = make(chan struct{})
}

// shares tells that versions have several events.
func (s *server) shares() bool { return s.version(1) == s.version(2) }

// numberOf is the number of the last event of a resource version.
func (s *server) numberOf(resourceVersion string) int {
	for n := 0; ; n++ {
		if s.version(n) == resourceVersion && s.version(n+1) != resourceVersion {
			return n
		}
	}
}

func (s *server) watch(resourceVersion string) fanout.Watch[int] {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reading++
	s.opened++
	ctx, stop := context.WithCancel(context.Background())
	return &stream{server: s, at: s.numberOf(resourceVersion), ends: s.ends, ctx: ctx, stop: stop}
}

// swapped is the event that is sent in the place of one.
func (s *server) swapped(n int) int {
	switch {
	case s.swaps > 0 && n%s.swaps == 0:
		return n + 1
	case s.swaps > 0 && n%s.swaps == 1 && n > 1:
		return n - 1
	}
	return n
}

// opener is what Follow is given.
func (s *server) opener(resourceVersion string) func() (fanout.Watch[int], error) {
	return func() (fanout.Watch[int], error) { return s.watch(resourceVersion), nil }
}

// open is what GoOn is given.
func (s *server) open(resourceVersion string) (fanout.Watch[int], error) {
	return s.watch(resourceVersion), nil
}

// list is what Gather is given: a watch that begins with the events by now, as objects whose values
// are negative, in the opposite order.
func (s *server) list() fanout.Watch[int] {
	s.mu.Lock()
	at := s.version(s.history)
	objects := s.history
	s.mu.Unlock()
	w := s.watch(at).(*stream)
	w.objects, w.begins = objects, true
	return w
}

// watches is how many watches are open, and openings how many were opened.
func (s *server) watches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reading
}

func (s *server) openings() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

type stream struct {
	server *server
	at     int
	marked int // the last event after which a bookmark was sent
	ends   chan struct{}
	ctx    context.Context
	stop   context.CancelFunc
	closed bool
	// objects are those that are yet to come, and begins tells that what follows them is.
	objects int
	begins  bool
}

func (w *stream) Stop() { w.stop() }

func (w *stream) Close() {
	w.stop()
	if w.closed {
		panic("closed twice")
	}
	w.closed = true
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.server.reading--
}

var errStopped = errors.New("stopped")

func (w *stream) Next() (fanout.Event[int], error) {
	for {
		w.server.mu.Lock()
		history, grown := w.server.history, w.server.grown
		marked := w.marked < w.at && slices.Contains(w.server.bookmarks, w.at)
		size := w.server.size
		w.server.mu.Unlock()
		switch {
		case w.ctx.Err() != nil:
			return fanout.Event[int]{}, errStopped
		case w.objects > 0:
			w.objects--
			return fanout.Event[int]{Value: -w.objects - 1, Bytes: size, ResourceVersion: w.server.version(w.objects + 1)}, nil
		case w.begins:
			w.begins = false
			return fanout.Event[int]{Bytes: size, ResourceVersion: w.server.version(w.at), Bookmark: true, Begins: true}, nil
		case marked:
			w.marked = w.at
			return fanout.Event[int]{Bytes: size, ResourceVersion: w.server.version(w.at), Bookmark: true}, nil
		case w.at < history:
			w.at++
			n := w.server.swapped(w.at)
			return fanout.Event[int]{Value: n, Bytes: size, ResourceVersion: w.server.version(n)}, nil
		}
		select {
		case <-grown:
		case <-w.ends:
			return fanout.Event[int]{}, io.EOF
		case <-w.ctx.Done():
		}
	}
}
