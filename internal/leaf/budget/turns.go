package budget

import (
	"container/list"
	"time"

	"github.com/rvinformer/informer/internal/leaf/moment"
)

const (
	// listBytes is what a list under way counts for. It holds its reader's buffer, a
	// quarter of that, and what the connection has received of it and was not read.
	// That may be up to 4 MiB with HTTP/2, and the whole of a small list where more come
	// than can be read.
	listBytes = 256 << 10
	// listShare is the part of the limit that all lists may take, and leastLists is how
	// many fit into it at least: where the limit is small, a list counts for less.
	listShare, leastLists = 4, 16

	// tick is how often it is looked, while lists wait, for one under way that lets
	// another go before it. It costs 0.3 µs where 10 lists wait, and 12 µs where 1,000 do. A timer
	// for the next one that is due would have to be set anew with each read.
	tick = 2 * time.Millisecond
	// unanswered is how long one is under way for which nothing has come, so that not too
	// many are asked for at a time. It is askedAgain if those that wait are of servers that
	// have others to answer, and after that such a server is asked again. Silence is how long
	// nothing may come between; and turn is after how long it goes to the end of the line
	// whenever all was read that has come.
	unanswered, askedAgain, silence, turn = 50 * time.Millisecond, time.Second, tick, 100 * time.Millisecond
	// stuckTurns is how many times as many lists as may be under way have to be stuck, and have
	// let others go before them, for the next one to keep its turn twice as long.
	stuckTurns = 4
	// longTurn is how long none may have had its turn, or have been asked for, before one
	// makes room that has something to be read.
	longTurn = time.Second
)

// lists are the lists under way, and those that wait to be.
type lists struct {
	each, most int64
	// inUse is what those under way have taken of the budget.
	inUse int64
	// under has those under way, the one first that has been longest.
	under *list.List
	// groups has those with lists, and those that had some since others began to wait.
	groups map[any]*group
	// line has the groups that have lists waiting, the one last that went last.
	line *list.List
	// again counts those that wait to go on, and stuck those that have let others go before
	// them since their consumer is busy.
	again, stuck int64
	// went is the time that the group had used which went last.
	went time.Duration
	// begun is when a list had its turn last, and asked is when one was asked for.
	begun, asked time.Time
	// timer calls tick while some wait, else it is nil.
	timer *time.Timer
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

// group are lists that share their turns with each other.
type group struct {
	key any
	// lists counts all that are not over, and silent those of them that have let others go
	// before them and for which nothing has come yet.
	lists, silent int
	// quiet is when the last of these has, if nothing has come of any since.
	quiet time.Time
	// fresh and again are those that wait to be asked for, and to go on.
	fresh, again list.List
	place        *list.Element // in the line, nil if none waits
	// under counts those under way, and used is the time that they have had, until counted,
	// while others waited.
	under   int
	used    time.Duration
	counted time.Time
}

func (g *group) usedBy(now time.Time) time.Duration {
	return g.used + time.Duration(g.under)*now.Sub(g.counted)
}

func (g *group) count(now time.Time) { g.used, g.counted = g.usedBy(now), now }

// queueLocked has a list wait, and returns what is closed when it has its turn; nil
// if it has it at once.
func (b *Budget) queueLocked(l *List, as stage) (granted <-chan struct{}) {
	s := &b.lists
	if s.line.Len() == 0 && s.room() {
		b.enterLocked(l, as)
		return nil
	}
	l.granted = make(chan struct{})
	s.add(l, as)
	b.beginLocked()
	return l.granted
}

// beginLocked begins those that wait, for as long as there is room.
func (b *Budget) beginLocked() {
	s := &b.lists
	for s.room() {
		l := s.next(false)
		if l == nil {
			break
		}
		b.turnLocked(l)
	}
	switch {
	case s.line.Len() == 0 && s.timer != nil:
		s.timer.Stop()
		s.timer = nil
		for _, g := range s.groups {
			s.forget(g)
		}
	case s.line.Len() > 0 && s.timer == nil:
		s.timer = time.AfterFunc(tick, b.tick)
	}
}

// turnLocked gives a list that waits its turn.
func (b *Budget) turnLocked(l *List) {
	s, as := &b.lists, l.stage
	s.went = max(s.went, l.group.usedBy(time.Now()))
	s.line.MoveToBack(l.group.place)
	s.remove(l)
	b.enterLocked(l, as)
}

// enterLocked makes a list one under way.
func (b *Budget) enterLocked(l *List, from stage) {
	s := &b.lists
	l.at, l.stage = s.under.PushBack(l), under
	l.entered = time.Now()
	l.group.count(l.entered)
	l.group.under++
	if s.begun = l.entered; from == fresh {
		s.asked = l.entered
	}
	s.inUse += s.each
	b.takeLocked(s.each)
}

// leaveLocked takes a list off those under way.
func (b *Budget) leaveLocked(l *List) {
	s := &b.lists
	s.under.Remove(l.at)
	l.at, l.stage = nil, away
	l.group.count(time.Now())
	l.group.under--
	s.inUse -= s.each
	b.inUse -= s.each
}

// yieldLocked has a list let others go before it.
func (b *Budget) yieldLocked(l *List) {
	b.leaveLocked(l)
	if !l.answered {
		l.group.silent++
		l.group.quiet = time.Now()
	}
}

// tick makes room for those that wait: in the place of lists for which nothing comes, or that
// are stuck; or else, once in a while, of the one that has been under way longest.
func (b *Budget) tick() {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, now := &b.lists, time.Now()
	next := s.next(false)
	for at := s.under.Front(); at != nil && next != nil; {
		l := at.Value.(*List)
		at = at.Next()
		if s.yields(l, next, now) {
			b.yieldLocked(l)
			b.beginLocked()
			next = s.next(false)
		}
	}
	if l := s.overdue(now); l != nil {
		b.yieldLocked(s.under.Front().Value.(*List))
		b.turnLocked(l)
	}
	b.beginLocked()
	b.grantLocked()
	if s.timer != nil {
		s.timer.Reset(tick)
	}
}

// yields tells whether another one goes before a list that is under way.
func (s *lists) yields(l, next *List, now time.Time) bool {
	return s.isStuck(l) || l.silent && l.yields(next, now)
}

// isStuck reports whether the consumer of a list is busy for too long. It notes that it is.
func (s *lists) isStuck(l *List) bool {
	since := l.busy.Load()
	if !l.stuck && since > 0 && moment.Now().Since(moment.Moment(since)) >= s.stuckPatience() && l.busy.CompareAndSwap(since, tooLong) {
		l.stuck = true
		s.stuck++
	}
	return l.stuck
}

// stuckPatience is how long a list keeps its turn that is stuck. What the server has sent of it
// stays in memory, so the more there are of them, the fewer are added in a time.
func (s *lists) stuckPatience() time.Duration {
	most := max(s.most/s.each, 1)
	return min(unanswered+unanswered*time.Duration(s.stuck)/time.Duration(stuckTurns*most), longTurn)
}

// yields tells whether another one goes before the list, which waits for its server.
func (l *List) yields(next *List, now time.Time) bool {
	patience := silence
	switch {
	case l.answered:
		if now.Sub(l.entered) >= turn {
			patience = 0
		}
	case next.late(now):
		patience = askedAgain
	case l.group.silent == 0:
		patience = unanswered
	}
	return now.Sub(l.since) >= patience
}

// overdue is the next list if it is long since one had its turn, or was asked for.
func (s *lists) overdue(now time.Time) *List {
	if now.Sub(s.begun) >= longTurn {
		return s.next(false)
	}
	if now.Sub(s.asked) >= longTurn {
		return s.next(true)
	}
	return nil
}

// room tells whether another list may be under way. There always is for one.
func (s *lists) room() bool { return s.inUse == 0 || s.inUse+s.each <= s.most }

// add puts a list behind those of its group that wait. A group has no claim to time that
// it has let pass.
func (s *lists) add(l *List, as stage) {
	g := l.group
	if s.line.Len() == 0 {
		s.contend()
	}
	if g.place == nil {
		g.place = s.line.PushBack(g)
		g.count(time.Now())
		g.used = max(g.used, s.went)
	}
	l.stage = as
	if as == again {
		s.again++
		l.at = g.again.PushBack(l)
	} else {
		l.at = g.fresh.PushBack(l)
	}
}

// contend notes that some wait from now on: all groups have the same claim.
func (s *lists) contend() {
	now := time.Now()
	s.begun, s.asked, s.went = now, now, 0
	for _, g := range s.groups {
		g.used, g.counted = 0, now
	}
}

// next is the list whose turn it is, nil if there is none: of the group that has used the
// least time, but one that waits for an answer comes last. As many as there is room for
// may wait to go on before others are asked for; unless asked is true, for then it
// is a fresh one's turn.
func (s *lists) next(asked bool) (next *List) {
	mayAsk, now := asked || (s.again+1)*s.each <= s.most || s.again == 0, time.Now()
	for at := s.line.Front(); at != nil; at = at.Next() {
		g := at.Value.(*group)
		l := g.first(asked, mayAsk)
		if l != nil && (next == nil || l.before(next, now)) {
			next = l
		}
	}
	return next
}

// first is the list of the group whose turn it is.
func (g *group) first(asked, mayAsk bool) *List {
	switch {
	case g.again.Len() > 0 && !asked:
		return g.again.Front().Value.(*List)
	case g.fresh.Len() > 0 && mayAsk:
		return g.fresh.Front().Value.(*List)
	default:
		return nil
	}
}

// before tells whether a list goes before one of another group that stands before it.
func (l *List) before(other *List, now time.Time) bool {
	if mine, others := l.late(now), other.late(now); mine != others {
		return others
	}
	return l.group.usedBy(now) < other.group.usedBy(now)
}

// late tells that the list's server has another to answer. Since it may never answer that
// one, and others at once, it is asked again after a while.
func (l *List) late(now time.Time) bool {
	return l.stage == fresh && l.group.silent > 0 && now.Sub(l.group.quiet) < askedAgain
}

// remove takes a list off those that wait.
func (s *lists) remove(l *List) {
	g := l.group
	if l.stage == again {
		s.again--
		g.again.Remove(l.at)
	} else {
		g.fresh.Remove(l.at)
	}
	l.at, l.stage = nil, away
	if g.again.Len()+g.fresh.Len() == 0 {
		s.line.Remove(g.place)
		g.place = nil
	}
	close(l.granted)
}

// forget drops a group without lists when no list waits.
func (s *lists) forget(g *group) {
	if g.lists == 0 && s.line.Len() == 0 {
		delete(s.groups, g.key)
	}
}
