package source

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxUnread is how long an answer may be left unread that comes through a wide window.
const maxUnread = 2 * time.Second

// ErrUnread says that an answer was left unread for too long, and was dropped. What is
// missing is asked for again, through a narrow window.
var ErrUnread = errors.New("left unread")

// mayWiden reports whether the answer to a request may come through a wide window: that of a
// list or a watch-list, if its reader keeps up. Where many lists wait for their turn, together
// they are fast enough, and each would hold what it has received meanwhile.
func (s *Source) mayWiden(opts metav1.ListOptions) bool {
	lists := !opts.Watch || startsWithObjects(opts)
	return lists && !s.Narrow && (s.Budget == nil || !s.Budget.Crowded())
}

// wideWindow is that of an answer, if it has one: the connection may hold much of the answer
// for a reader that does not read, so that it is dropped then.
//
// A reader that is only slow is not given up. It holds a wide window for as long as a list
// takes, and their number is limited by the budget.
type wideWindow struct {
	// unread runs while the answer is not read; nil where the window is narrow.
	unread *time.Timer
	// ending is the first of drop and close. Dropping is waited for by close where drop was first.
	ending   atomic.Int32
	dropping sync.WaitGroup
}

const (
	byDrop int32 = iota + 1
	byClose
)

// open begins with an answer that is read. Drop is called when it is left unread for too long.
func (w *wideWindow) open(drop func()) {
	w.dropping.Add(1)
	w.unread = time.AfterFunc(maxUnread, func() {
		if w.ending.CompareAndSwap(0, byDrop) {
			defer w.dropping.Done()
			drop()
		}
	})
}

// reading begins a read, and read ends it.
func (w *wideWindow) reading() {
	if w.unread != nil {
		w.unread.Stop()
	}
}

func (w *wideWindow) read() {
	if w.unread != nil {
		w.unread.Reset(maxUnread)
	}
}

// close waits for drop, if that was called.
func (w *wideWindow) close() {
	if w.unread == nil {
		return
	}
	w.unread.Stop()
	if !w.ending.CompareAndSwap(0, byClose) && w.ending.Load() == byDrop {
		w.dropping.Wait()
	}
}
