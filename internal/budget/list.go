package budget

import (
	"container/list"
	"context"
	"sync/atomic"
	"time"
)

const (
	// listBytes is what a list under way counts for. It holds its reader's buffer, which
	// is half of that, and what the connection has received of it and nobody has read: on
	// average as much again, where many informers start at once.
	listBytes = 128 << 10
	// listShare is the part of the limit that all lists may take, and leastLists is how
	// many fit into it at least: where the limit is small, a list counts for less.
	listShare, leastLists = 4, 16

	// tick is how often it is looked, while lists wait, for one under way that lets
	// another go before it.
	tick = 2 * time.Millisecond
	// unanswered is how long one is under way for which nothing has come, so that not too
	// many are asked for at a time; silence is how long nothing may come between; and turn
	// is after how long it goes to the end of the line whenever it has all that has come.
	unanswered, silence, turn = 50 * time.Millisecond, tick, 100 * time.Millisecond
	// longTurn is how long none may have begun before one makes room that has something
	// to read.
	longTurn = time.Second
)

// lists are the lists under way, and those that wait to be.
type lists struct {
	each, most int64
	// inUse is what those under way have taken of the budget.
	inUse int64
	// under has those under way, the one first that has been longest.
	under *list.List
	// groups has those that had lists since some began to wait, and line those that have
	// some waiting now, the one last that went last.
	groups map[any]*group
	line   *list.List
	// went is the time that the group had used which went last.
	went time.Duration
	// begun is when a list came under way last.
	begun time.Time
	// timer calls tick while some wait, else it is nil.
	timer *time.Timer
}

// group are lists that share their turns with each other. The group goes first that has
// used the least time.
type group struct {
	waiting *list.List
	place   *list.Element // in the line, nil if none waits
	used    time.Duration
}

func newLists(limit int64) lists {
	return lists{
		each:   max(min(listBytes, limit/(listShare*leastLists)), 1),
		most:   limit / listShare,
		under:  list.New(),
		groups: map[any]*group{},
		line:   list.New(),
	}
}

// List is a list that was begun. It takes its bytes of the budget, apart from those of
// its objects, while it is under way. While there is nothing of it to be read it holds
// little, and those that wait go before it; when something comes it waits for its turn
// again. All of a nil List does nothing.
type List struct {
	budget *Budget
	key    any
	// place is that in the lists under way; waiting is that among the lists of its group.
	// At most one of them is set.
	place, waiting *list.Element
	// granted is closed when it has stopped waiting, because it is under way or over;
	// nil before it has waited.
	granted chan struct{}
	// silent tells that it has waited for its server since a time, and answered that
	// something has come before. Entered is when its turn began.
	silent, answered bool
	since, entered   time.Time
	// over is set with the lock.
	over atomic.Bool
}

// Begin waits until a list may be asked for. The lists of a group share its turns with
// each other: one that has many, or large ones, does not hold up others. The error is
// that of ctx. The list has to be ended.
func (b *Budget) Begin(ctx context.Context, group any) (*List, error) {
	l := &List{budget: b, key: group}
	if err := l.enter(ctx); err != nil {
		return nil, err
	}
	l.wait(false)
	return l, nil
}

// Waits notes that all was read that has come, until GoesOn.
func (l *List) Waits() {
	if l == nil || l.over.Load() {
		return
	}
	l.wait(true)
}

func (l *List) wait(answered bool) {
	l.budget.mu.Lock()
	defer l.budget.mu.Unlock()
	l.silent, l.answered, l.since = true, answered, time.Now()
}

// GoesOn notes that something has come, and waits for the list's turn if it has let
// others go before it. The error is that of ctx.
func (l *List) GoesOn(ctx context.Context) error {
	if l == nil || l.over.Load() {
		return nil
	}
	return l.enter(ctx)
}

// enter waits until the list is under way, or over.
func (l *List) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		l.End()
		return context.Cause(ctx)
	}
	granted := l.line()
	if granted == nil {
		return nil
	}
	select {
	case <-granted:
		return nil
	case <-ctx.Done():
		l.End()
		return context.Cause(ctx)
	}
}

// line makes the list wait if it is not under way and there is no room for it. It
// returns what is closed then, nil if it has not to wait.
func (l *List) line() (granted <-chan struct{}) {
	b := l.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	l.silent = false
	switch {
	case l.place != nil || l.over.Load():
		return nil
	case b.lists.line.Len() == 0 && b.lists.room():
		b.enterLocked(l)
		return nil
	}
	l.granted = make(chan struct{})
	b.lists.add(l)
	b.beginLocked()
	return l.granted
}

// End gives back what the list has taken. A second one changes nothing.
func (l *List) End() {
	if l == nil {
		return
	}
	b := l.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	l.over.Store(true)
	switch {
	case l.place != nil:
		b.leaveLocked(l)
		b.beginLocked()
		b.grantLocked()
	case l.waiting != nil:
		b.lists.remove(l)
		b.beginLocked()
	}
}

// beginLocked begins those that wait, for as long as there is room.
func (b *Budget) beginLocked() {
	s := &b.lists
	for s.line.Len() > 0 && s.room() {
		b.enterLocked(s.next())
	}
	switch {
	case s.line.Len() == 0 && s.timer != nil:
		s.timer.Stop()
		s.timer, s.went = nil, 0
		clear(s.groups)
	case s.line.Len() > 0 && s.timer == nil:
		s.timer = time.AfterFunc(tick, b.tick)
	}
}

// enterLocked makes a list one under way.
func (b *Budget) enterLocked(l *List) {
	s := &b.lists
	l.place = s.under.PushBack(l)
	s.inUse += s.each
	s.begun = time.Now()
	l.entered = s.begun
	b.takeLocked(s.each)
}

// leaveLocked takes a list off those under way.
func (b *Budget) leaveLocked(l *List) {
	if g := b.lists.groups[l.key]; g != nil {
		g.used += time.Since(l.entered)
	}
	b.lists.under.Remove(l.place)
	l.place = nil
	b.lists.inUse -= b.lists.each
	b.inUse -= b.lists.each
}

// tick makes room for those that wait: in the place of lists for which nothing comes; or
// else, once in a while, of the one that has been under way longest, whose handler may
// be stuck.
func (b *Budget) tick() {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, now := &b.lists, time.Now()
	s.timer = nil
	for at := s.under.Front(); at != nil; {
		l := at.Value.(*List)
		at = at.Next()
		if l.yields(now) {
			b.leaveLocked(l)
		}
	}
	b.beginLocked()
	if s.line.Len() > 0 && now.Sub(s.begun) >= longTurn {
		b.leaveLocked(s.under.Front().Value.(*List))
		b.beginLocked()
	}
	b.grantLocked()
}

// yields tells whether others go before the list while it waits for its server.
func (l *List) yields(now time.Time) bool {
	patience := unanswered
	if l.answered {
		patience = silence
	}
	return l.silent && (now.Sub(l.since) >= patience || now.Sub(l.entered) >= turn)
}

// room tells whether another list may be under way. There always is for one.
func (s *lists) room() bool { return s.inUse == 0 || s.inUse+s.each <= s.most }

// add puts a list behind those of its group that wait. A group has no claim to time that
// it has let pass.
func (s *lists) add(l *List) {
	g := s.groups[l.key]
	if g == nil {
		g = &group{waiting: list.New()}
		s.groups[l.key] = g
	}
	if g.place == nil {
		g.place = s.line.PushBack(g)
		g.used = max(g.used, s.went)
	}
	l.waiting = g.waiting.PushBack(l)
}

// next takes the list off those that wait whose turn it is.
func (s *lists) next() *List {
	first := s.line.Front()
	for at := first.Next(); at != nil; at = at.Next() {
		if at.Value.(*group).used < first.Value.(*group).used {
			first = at
		}
	}
	g := first.Value.(*group)
	s.went = max(s.went, g.used)
	s.line.MoveToBack(first)
	l := g.waiting.Front().Value.(*List)
	s.remove(l)
	return l
}

// remove takes a list off those that wait.
func (s *lists) remove(l *List) {
	g := s.groups[l.key]
	g.waiting.Remove(l.waiting)
	if l.waiting = nil; g.waiting.Len() == 0 {
		s.line.Remove(g.place)
		g.place = nil
	}
	close(l.granted)
}
