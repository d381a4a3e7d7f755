package moment

import (
	"sync"
	"time"
)

const (
	// beatEach is how often a pulse beats.
	beatEach = 500 * time.Millisecond
	// maxPause is how long a process may have stood still unnoticed. It is longer than a beat is
	// late on a busy machine.
	maxPause = time.Second
)

// pulse knows whether the process has run all the time. A process stands still while it is
// suspended (SIGSTOP), its cgroup is frozen or its machine is migrated. Nothing in it notices that,
// but that the beats of a timer do not come.
type pulse struct {
	mu    sync.Mutex
	users int
	timer *time.Timer
	// last is when it has beaten last, and wall the wall clock then.
	last Moment
	wall time.Time
	// resumed is when the process went on after the newest pause.
	resumed Moment
}

// process is the pulse of this process. It beats while there are users, so that an idle process
// without informers is not woken up.
var process pulse

// Attend has the pauses of this process noticed until leave is called.
//
// In a testing/synctest bubble it does nothing: the time of a bubble stands still with its
// goroutines.
func Attend() (leave func()) {
	if !isMonotonic(time.Now()) {
		return func() {}
	}
	process.enter(time.Now())
	return sync.OnceFunc(process.leave)
}

// Ran reports whether this process is known to have run all the time from a moment until now, but
// for pauses that are too short to be noticed. There is to be a user of Attend.
func Ran(from Moment) bool {
	now := time.Now()
	return !isMonotonic(now) || process.ran(from, now)
}

func (p *pulse) enter(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.users++; p.users > 1 {
		return
	}
	p.last, p.wall = Of(now), now.Round(0)
	if p.timer == nil {
		p.timer = time.AfterFunc(beatEach, func() { p.beat(time.Now()) })
	} else {
		p.timer.Reset(beatEach)
	}
}

func (p *pulse) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.users--; p.users == 0 {
		p.timer.Stop()
	}
}

// beat notes that the process runs.
func (p *pulse) beat(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.users == 0 {
		return
	}
	if p.stoodStillLocked(now) {
		p.resumed = Of(now)
	}
	p.last, p.wall = Of(now), now.Round(0)
	p.timer.Reset(beatEach)
}

func (p *pulse) ran(from Moment, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.resumed <= from && !p.stoodStillLocked(now)
}

// stoodStillLocked reports whether the process has not run all the time since the last beat. A wall
// clock that went further than the other one is a pause of the machine, whose clock may have stood
// still as well.
func (p *pulse) stoodStillLocked(now time.Time) bool {
	return max(Of(now).Since(p.last), now.Round(0).Sub(p.wall)) > maxPause
}
