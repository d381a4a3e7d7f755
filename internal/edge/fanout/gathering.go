package fanout

import (
	"context"
	"slices"
	"sync"
	"time"
)

// gathering is a group of readers that are about to read the objects that there are. It belongs to
// the hub's lock.
type gathering[T any] struct {
	taps []*Tap[T]
	// begun is closed when the group begins to read. No reader joins it after that.
	begun chan struct{}
}

// Expect announces a reader that is about to ask for something, so that Gather waits for it. Here
// is to be called when it has asked, or will not ask. Further calls of it change nothing.
func (h *Hub[T]) Expect() (here func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.expectLocked()
}

func (h *Hub[T]) expectLocked() (here func()) {
	h.expected++
	return sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.expected--
		close(h.come)
		h.come = make(chan struct{})
	})
}

// Gather returns a reader of a watch that begins with the objects that there are. All who ask for
// the same before it begins read it. It begins when nobody is expected any more, or after a second.
// Watch returns the watch, which need not be open yet. It must neither wait nor call the hub. Here
// is that of Expect. The reader is nil if nobody else has asked. The error is context.Cause of ctx.
func (h *Hub[T]) Gather(ctx context.Context, what string, here func(), watch func() Watch[T]) (*Tap[T], error) {
	late := time.NewTimer(openingPatience)
	defer late.Stop()
	g, tap := h.comeTo(what)
	here()
	for isLate := false; ; {
		come, begun, alone := h.begin(what, g, isLate, watch)
		switch {
		case alone:
			return nil, nil
		case begun:
			return tap, nil
		}
		select {
		case <-come:
		case <-g.begun:
		case <-late.C:
			isLate = true
		case <-ctx.Done():
			h.leave(g, tap)
			return nil, context.Cause(ctx)
		}
	}
}

// comeTo adds a reader to those who ask for the same.
func (h *Hub[T]) comeTo(what string) (*gathering[T], *Tap[T]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	g := h.gathering[what]
	if g == nil {
		g = &gathering[T]{begun: make(chan struct{})}
		h.gathering[what] = g
	}
	tap := newTap(h, place{})
	tap.beginning = true
	g.taps = append(g.taps, tap)
	return g, tap
}

// begin has the readers of a gathering read, if nobody is to be waited for. Come is closed when one
// has come who was waited for. Alone reports that there is one reader.
func (h *Hub[T]) begin(what string, g *gathering[T], late bool, watch func() Watch[T]) (come <-chan struct{}, begun, alone bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.gathering[what] != g:
		return nil, true, false
	case h.expected > 0 && !late:
		return h.come, false, false
	}
	delete(h.gathering, what)
	close(g.begun)
	if len(g.taps) == 1 {
		return nil, true, true
	}
	t := newTrunk(h, watch(), "")
	for _, tap := range g.taps {
		t.attachLocked(tap, t.first)
	}
	h.startLocked(t)
	return nil, true, false
}

// leave takes a reader out of a gathering, which may have begun.
func (h *Hub[T]) leave(g *gathering[T], tap *Tap[T]) {
	h.mu.Lock()
	g.taps = slices.DeleteFunc(g.taps, func(other *Tap[T]) bool { return other == tap })
	h.mu.Unlock()
	tap.Close()
}
