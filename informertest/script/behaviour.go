package script

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/rvinformer/informer"
)

// errScript is what a handler fails with because the script says so.
var errScript = errors.New("the script says so")

// behaviour is how the handler takes what it is told.
type behaviour struct {
	dice *dice

	mu sync.Mutex
	manners
	held chan struct{} // nil: nothing is held
	over chan struct{} // closed when the script is over
	lose func()        // called before it ends a goroutine: what it was called with is passed over
}

// manners are what a line "handler" says.
type manners struct {
	slow                  time.Duration
	errors, panics, exits int // one in how many; 0: none
}

func (b *behaviour) set(m manners) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.manners = m
}

// end lets go all calls, as a script does that is over. It is called once.
func (b *behaviour) end() {
	b.set(manners{})
	b.release()
	close(b.over)
}

// hold makes calls wait until release.
func (b *behaviour) hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held == nil {
		b.held = make(chan struct{})
	}
}

func (b *behaviour) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held != nil {
		close(b.held)
		b.held = nil
	}
}

func (b *behaviour) holds() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held != nil
}

// call is one call. It ends early when the process dies, and when the script is over.
func (b *behaviour) call(died <-chan struct{}) error {
	b.mu.Lock()
	m, held := b.manners, b.held
	b.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-died:
		}
	}
	if m.slow > 0 {
		timer := time.NewTimer(b.dice.duration(m.slow))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-died:
		case <-b.over:
		}
	}
	switch {
	case b.dice.one(m.panics):
		panic(fmt.Sprint("panic: ", errScript))
	case b.dice.one(m.exits):
		b.lose()
		runtime.Goexit()
	case b.dice.one(m.errors):
		return errScript
	}
	return nil
}

// handler is the innermost handler of a process: it behaves, and keeps what it may.
type handler struct{ *process }

var (
	_ informer.ResourceEventHandler = handler{}
	_ informer.BatchHandler         = handler{}
)

// A call of a handler has no error to return.
func (h handler) call(obj interface{}) {
	h.kept.keep(h.dice, obj)
	_ = h.behaviour.call(h.died)
}

func (h handler) OnAdd(obj interface{}, _ bool)  { h.call(obj) }
func (h handler) OnUpdate(_, newObj interface{}) { h.call(newObj) }
func (h handler) OnDelete(obj interface{})       { h.call(obj) }
func (h handler) OnSync(obj interface{})         { h.call(obj) }

func (h handler) OnBatch(_ context.Context, events []informer.Event) error {
	for _, e := range events {
		h.kept.keep(h.dice, e.Object)
	}
	err := h.behaviour.call(h.died)
	if err == nil || h.dice.one(2) {
		return err
	}
	return h.someOf(events, err)
}

// someOf is err of some of the events of a batch, of one at least.
func (h handler) someOf(events []informer.Event, err error) (failed informer.FailedEvents) {
	first := h.dice.n(len(events))
	for i := range events {
		if i == first || h.dice.one(4) {
			failed = append(failed, informer.FailedEvent{Index: i, Err: err, Later: h.dice.one(3)})
		}
	}
	return failed
}

// gate is the outermost handler of a process: nothing passes once that is dead.
type gate struct {
	*process
	each  informer.ResourceEventHandler
	batch informer.BatchHandler
}

var (
	_ informer.ResourceEventHandler = gate{}
	_ informer.BatchHandler         = gate{}
)

func (g gate) pass(told string, call func()) {
	if !g.burn() {
		return
	}
	g.counts.tell(told)
	call()
	g.burn()
}

func (g gate) OnAdd(obj interface{}, isInInitialList bool) {
	g.pass("added "+keyOf(obj), func() { g.each.OnAdd(obj, isInInitialList) })
}

func (g gate) OnUpdate(oldObj, newObj interface{}) {
	told := "updated "
	if sameVersion(oldObj, newObj) {
		told = "synced "
	}
	g.pass(told+keyOf(newObj), func() { g.each.OnUpdate(oldObj, newObj) })
}

func (g gate) OnDelete(obj interface{}) {
	g.pass("deleted "+keyOf(obj), func() { g.each.OnDelete(obj) })
}

func (g gate) OnSync(obj interface{}) {
	g.pass("synced "+keyOf(obj), func() { g.each.OnSync(obj) })
}

func (g gate) OnBatch(ctx context.Context, events []informer.Event) (err error) {
	if !g.burn() {
		return errDead
	}
	for _, e := range events {
		g.counts.tell(fmt.Sprintf("%s %s", typeNames[e.Type], e.Key))
	}
	err = g.batch.OnBatch(ctx, events)
	g.burn()
	return err
}
