package script

import (
	"context"
	"errors"
	"fmt"
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
}

// manners are what a line "handler" says.
type manners struct {
	slow           time.Duration
	errors, panics int // one in how many; 0: none
}

func (b *behaviour) set(m manners) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.manners = m
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

// call is one call. It ends early when the process dies.
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
		}
	}
	switch {
	case b.dice.one(m.panics):
		panic(fmt.Sprint("panic: ", errScript))
	case b.dice.one(m.errors):
		return errScript
	}
	return nil
}

// handler is the innermost handler of a process: it behaves.
type handler struct{ *process }

var (
	_ informer.ResourceEventHandler = handler{}
	_ informer.BatchHandler         = handler{}
)

// A call of a handler has no error to return.
func (h handler) call() { _ = h.behaviour.call(h.died) }

func (h handler) OnAdd(interface{}, bool)                         { h.call() }
func (h handler) OnUpdate(interface{}, interface{})               { h.call() }
func (h handler) OnDelete(interface{})                            { h.call() }
func (h handler) OnSync(interface{})                              { h.call() }
func (h handler) OnBatch(context.Context, []informer.Event) error { return h.behaviour.call(h.died) }

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
