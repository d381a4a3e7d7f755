package budget

import (
	"container/list"
	"context"
	"sync/atomic"
	"time"

	"github.com/rvinformer/informer/internal/leaf/moment"
)

// List is a list that was begun. It takes its bytes of the budget, apart from those of
// its objects, while it is under way. While there is nothing of it to be read it holds
// little, and those that wait go before it; when something comes it waits for its turn
// again. All of a nil List does nothing.
type List struct {
	budget *Budget
	group  *group
	stage  stage
	// at is its place among those under way or that wait.
	at *list.Element
	// granted is closed when it has stopped waiting; nil before it has waited.
	granted chan struct{}
	// answered tells that something has come, and silent that it waits for its server,
	// since a time. Entered is when its turn began.
	answered, silent bool
	since, entered   time.Time
	// busy is since when the consumer has something that was read, a moment.Moment: 0 if it has
	// nothing, and tooLong once the list has let others go before it for that. Then it is stuck.
	busy  atomic.Int64
	stuck bool
	// over is set with the lock.
	over atomic.Bool
}

// stage is where a list is.
type stage int

const (
	// away: it has let others go before it, or is over.
	away stage = iota
	// fresh: it waits to be asked for.
	fresh
	// again: it waits to go on.
	again
	// under way.
	under
)

// Begin waits until a list may be asked for. The lists of a group share its turns with
// each other: one that has many, or large ones, does not hold up others. The error is
// that of ctx. The list has to be ended.
func (b *Budget) Begin(ctx context.Context, key any) (*List, error) {
	l := &List{budget: b}
	if err := l.await(ctx, l.begin(key)); err != nil {
		return nil, err
	}
	l.Waits()
	return l, nil
}

func (l *List) begin(key any) (granted <-chan struct{}) {
	b := l.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.lists.groups[key]
	if g == nil {
		g = &group{key: key}
		b.lists.groups[key] = g
	}
	l.group = g
	g.lists++
	return b.queueLocked(l, fresh)
}

// Waits notes that all was read that has come, until GoesOn.
func (l *List) Waits() {
	if l.Over() {
		return
	}
	l.budget.mu.Lock()
	defer l.budget.mu.Unlock()
	l.silent, l.since = true, time.Now()
}

const tooLong = -1

// Busy notes that the consumer is given what was read, until Idle. A list whose consumer takes
// long, because it has no room or a function of the user blocks, lets others go before it. It waits
// for its turn again when it has read on. Neither waits.
func (l *List) Busy() {
	if !l.Over() {
		l.busy.Store(int64(moment.Now()))
	}
}

// Idle notes that the consumer has returned.
func (l *List) Idle() {
	if l == nil || l.busy.Swap(0) != tooLong {
		return
	}
	l.budget.mu.Lock()
	defer l.budget.mu.Unlock()
	l.freeLocked()
}

func (l *List) freeLocked() {
	if l.stuck {
		l.stuck = false
		l.budget.lists.stuck--
	}
}

// GoesOn notes that something has come, and waits for the list's turn if it has let
// others go before it. The error is that of ctx.
func (l *List) GoesOn(ctx context.Context) error {
	if l.Over() {
		return nil
	}
	return l.await(ctx, l.goOn())
}

func (l *List) goOn() (granted <-chan struct{}) {
	b := l.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.over.Load() {
		return nil
	}
	if l.stage == away && !l.answered {
		l.group.silent--
	}
	l.group.quiet = time.Time{}
	l.silent, l.answered = false, true
	if l.stage != away {
		return nil
	}
	return b.queueLocked(l, again)
}

// await waits until granted is closed, if there is something to wait for.
func (l *List) await(ctx context.Context, granted <-chan struct{}) error {
	if granted != nil {
		select {
		case <-granted:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		l.End()
		return context.Cause(ctx)
	}
	return nil
}

// Over reports whether the list has ended: nothing is to be noted of it any more.
func (l *List) Over() bool { return l == nil || l.over.Load() }

// End gives back what the list has taken. A second one changes nothing.
func (l *List) End() {
	if l == nil {
		return
	}
	b := l.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.over.Swap(true) {
		return
	}
	switch l.stage {
	case under:
		b.leaveLocked(l)
	case fresh, again:
		b.lists.remove(l)
	case away:
		if !l.answered {
			l.group.silent--
		}
	}
	l.freeLocked()
	l.group.lists--
	b.beginLocked()
	b.grantLocked()
	b.lists.forget(l.group)
}
