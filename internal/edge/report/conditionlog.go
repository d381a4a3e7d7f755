package report

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/moment"
)

const (
	// overAfter is how long nothing is wrong until that is logged.
	overAfter = 10 * time.Second
	// checkEach is how often the condition is looked at while something is wrong that was logged.
	checkEach = 30 * time.Second
	// stopEach is how often a run that ends says what it waits for.
	stopEach = 10 * time.Second
)

// conditionLog logs what holds an informer up: a line when that changes, and none while it lasts.
// It exists while something is wrong or may become so. It belongs to the lock of Progress, and logs
// without it.
type conditionLog struct {
	timer *time.Timer
	// told is what was logged last, zero if that is over.
	told api.Condition
	// untold counts the conditions since that were not logged.
	untold int
	// seen is the condition of the last look.
	seen  api.ConditionReason
	quota Quota
	// attended counts what may become wrong without a call of the Progress: handlers that are
	// called, waits.
	attended int
	// greets tells that the informer has synced, which is yet to be logged.
	greets bool
	// looking are the calls of look, of this conditionLog and of those before it.
	looking *sync.WaitGroup
}

// line is a line of the log: a condition begins to hold the informer up, or it is over since a moment.
type line struct {
	begins api.Condition
	over   moment.Moment
	values []any
}

// LogTo has conditions logged to the logger of ctx until the informer stops.
func (p *Progress) LogTo(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ctx = ctx
}

// Logger is that of the run under way, or that of the process.
func (p *Progress) Logger() klog.Logger {
	p.mu.Lock()
	ctx := p.ctx
	p.mu.Unlock()
	if ctx == nil {
		return klog.Background()
	}
	return klog.FromContext(ctx)
}

// Attend has the condition looked at from time to time, until Rest: something is under way that may
// hold the informer up.
func (p *Progress) Attend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.armLocked(); p.conditionLog != nil {
		p.conditionLog.attended++
	}
}

// Rest ends an Attend.
func (p *Progress) Rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.conditionLog
	if h == nil || h.attended == 0 {
		return
	}
	if h.attended--; h.attended == 0 && !h.greets && p.observations.incidents == nil && h.told.Reason == "" && h.quota.isFull(moment.Now()) && h.lookNoMore() {
		p.conditionLog = nil
	}
}

// armLocked has the condition looked at soon.
func (p *Progress) armLocked() {
	if p.conditionLog != nil || p.ctx == nil {
		return
	}
	h := &conditionLog{looking: &p.looking}
	p.conditionLog = h
	h.looking.Add(1)
	h.timer = time.AfterFunc(TellAfter, func() {
		defer h.looking.Done()
		p.look(h)
	})
}

// greetLocked has it logged at once that the informer has synced. The caller may hold further
// locks, so that it is not logged here.
func (p *Progress) greetLocked() {
	p.armLocked()
	h := p.conditionLog
	if h == nil {
		return
	}
	h.greets = true
	h.lookIn(0)
}

// lookIn has the condition looked at after a pause. A look may be under way, and another one may be
// waiting, which this one replaces.
func (h *conditionLog) lookIn(pause time.Duration) {
	if !h.timer.Reset(pause) {
		h.looking.Add(1)
	}
}

// lookNoMore drops the look that is waiting, and reports whether there was one.
func (h *conditionLog) lookNoMore() bool {
	dropped := h.timer.Stop()
	if dropped {
		h.looking.Done()
	}
	return dropped
}

// greetingLocked returns how to log that the informer has synced, once if that is yet to be logged,
// else nil.
func (p *Progress) greetingLocked(h *conditionLog) func(context.Context) {
	if !h.greets {
		return nil
	}
	h.greets = false
	values := p.subject()
	if s := p.now.saved; s != nil && s.resumedFrom != "" {
		values = append(values, "from", s.resumedFrom)
		return func(ctx context.Context) { greet(ctx, "Informer has resumed", values) }
	}
	took := time.Duration(p.counters.syncing.Load())
	return func(ctx context.Context) {
		greet(ctx, "Informer is synced", append(values, "objects", p.objects(), "took", took.Round(time.Millisecond).String()))
	}
}

// objects is the number of objects that the consumer has stored, or, where it does not say that, of
// those that were listed.
func (p *Progress) objects() int64 {
	if keeps, ok := p.Consumer.(interface{ Objects() int }); ok {
		return int64(keeps.Objects())
	}
	return p.counters.listed.Load()
}

func greet(ctx context.Context, text string, values []any) {
	LogInfo(ctx, text, values...)
	if o := OverseerOf(ctx); o != nil {
		o.Synced()
	}
}

// subject names the informer in the log.
func (p *Progress) subject() []any {
	if p.Consumer == nil {
		return nil
	}
	return []any{"informer", p.name()}
}

// name is that of the informer, empty without one.
func (p *Progress) name() string {
	if p.Consumer == nil {
		return ""
	}
	return p.Consumer.Subject()
}

// look logs the condition if it has changed and lasts, and looks again later if there is reason to.
func (p *Progress) look(h *conditionLog) {
	p.GivenBack() // what failed may have become a dead letter
	d, pending := p.Delivery(), p.pending()
	p.mu.Lock()
	if p.conditionLog != h { // it has stopped, or nothing is left to look at
		p.mu.Unlock()
		return
	}
	now, ctx := moment.Now(), p.ctx
	if p.observations.stage == stopping {
		waited := now.Since(p.observations.since)
		h.lookIn(stopEach - waited%stopEach)
		p.mu.Unlock()
		if waited >= stopEach && pending != "" {
			values := append(p.subject(), "waitsFor", pending, "for", waited.Round(time.Second).String())
			klog.FromContext(ctx).Info("Informer is stopping", values...)
		}
		return
	}
	greet := p.greetingLocked(h)
	c := p.observations.condition(d, p.counters.listed.Load(), "", now)
	away := p.observations.isServerAway()
	var told *line
	if !away { // else it is logged once for all informers of the server
		told = h.tell(c, p.observations.cleared, now)
	}
	calm := h.told.Reason == "" && !isTrouble(c.Reason)
	if calm && c.Reason == api.ReasonCurrent && now.Since(p.observations.cleared) >= steadyWatch {
		p.observations.incidents = nil
	}
	switch {
	case away && h.idle(now), calm && p.observations.incidents == nil && h.idle(now):
		p.conditionLog = nil
		h.lookNoMore()
	default:
		h.lookIn(h.pause(c, d.Oldest, now))
	}
	p.mu.Unlock()
	if greet != nil {
		greet(ctx)
	}
	if told != nil {
		told.log(ctx, p)
	}
}

// idle reports whether nothing is lost if there is no conditionLog until the next failure, or
// success after it.
func (h *conditionLog) idle(now moment.Moment) bool {
	return h.told.Reason == "" && h.attended == 0 && h.quota.isFull(now)
}

// pause is how long to wait before the next look. Oldest is when the oldest change came that waits;
// zero if none does.
func (h *conditionLog) pause(c api.Condition, oldest, now moment.Moment) time.Duration {
	switch {
	case h.told.Reason == c.Reason:
		return checkEach
	case isTrouble(c.Reason) || h.told.Reason != "":
		return TellAfter
	case oldest != 0: // when the handler counts as slow
		return min(checkEach, max(slowAfter-now.Since(oldest), time.Second))
	}
	return checkEach
}

// tell returns the line to log, nil for none. Cleared is when the newest condition ended.
func (h *conditionLog) tell(c api.Condition, cleared, now moment.Moment) *line {
	trouble := isTrouble(c.Reason)
	if !trouble {
		c = api.Condition{}
	}
	if c.Reason != h.seen {
		h.seen = c.Reason
		h.untold++
	}
	switch {
	case c.Reason == h.told.Reason:
		return nil
	case trouble && now.Since(moment.Of(c.Since)) < TellAfter, !trouble && now.Since(cleared) < overAfter:
		return nil
	case !h.quota.Allows(now):
		return nil
	}
	h.quota.Spend(now)
	values := []any{}
	if trouble {
		values = append(values, "reason", string(c.Reason), "message", c.Message, "since", c.Since.UTC().Format(time.RFC3339), "for", now.Since(moment.Of(c.Since)).Round(time.Second).String())
		cleared = moment.Of(c.Since)
	}
	if h.told.Reason != "" {
		values = append(values, "was", string(h.told.Reason), "lasted", max(0, cleared.Since(moment.Of(h.told.Since))).Round(time.Second).String())
	}
	if h.untold > 1 {
		values = append(values, "unlogged", h.untold-1)
	}
	h.told, h.untold = c, 0
	h.told.Message = ""
	return &line{c, cleared, values}
}

func (l *line) log(ctx context.Context, p *Progress) {
	values, overseer := append(p.subject(), l.values...), OverseerOf(ctx)
	begins := l.begins.Reason != ""
	if begins {
		LogBegin(ctx, "Informer is held up", values...)
	} else {
		LogInfo(ctx, "Informer goes on", values...)
	}
	switch {
	case overseer == nil:
	case begins:
		overseer.HeldUp(p.name(), string(l.begins.Reason), l.begins.Message, l.begins.Since)
	default:
		overseer.GoesOn(p.name(), l.over.Time())
	}
}

// stopLog logs that what was logged has ended with the informer, and waits for the last line. The
// caller does not hold the lock.
func (p *Progress) stopLog() {
	p.mu.Lock()
	h, ctx, cleared := p.conditionLog, p.ctx, moment.Now()
	p.conditionLog, p.ctx = nil, nil
	var told api.Condition
	var greet func(context.Context)
	if h != nil {
		h.lookNoMore()
		told, greet = h.told, p.greetingLocked(h)
	}
	p.mu.Unlock()
	p.looking.Wait() // also for the last look of a conditionLog that is gone
	if greet != nil {
		greet(ctx)
	}
	if told.Reason != "" {
		values := []any{"was", string(told.Reason), "lasted", cleared.Since(moment.Of(told.Since)).Round(time.Second).String()}
		LogInfo(ctx, "Informer has stopped", append(p.subject(), values...)...)
		if o := OverseerOf(ctx); o != nil {
			o.GoesOn(p.name(), cleared.Time())
		}
	}
}

// untroubled are the reasons that need nobody to act.
var untroubled = []api.ConditionReason{"", api.ReasonCurrent, api.ReasonListing, api.ReasonNotStarted, api.ReasonStopping, api.ReasonStopped}

func isTrouble(r api.ConditionReason) bool { return !slices.Contains(untroubled, r) }
