package main

import (
	"math/rand/v2"
	"slices"
	"time"
)

// atOnce is how many writes of unit Leases a replica has under way, as in package shards.
const atOnce = 16

// gather is how long a replica gathers changes before it decides, as in package shards.
const gather = 10 * time.Millisecond

// play is a fleet in virtual time: Leases, the coordinating API server, and replicas that follow
// the protocol of package shards. All replicas see the same Leases, each a little later than they
// were written.
type play struct {
	*world
	clock
	random   *rand.Rand
	replicas []*replica
	named    map[string]*replica // by identity
	leases   []*lease            // of the units
	owners   []string            // the plan
	planned  []string            // its members
	plans    int

	server coordinator
	gaps   []gap
	// started are the units that were started, and moved those of them that were with another owner
	// before. objects are those of the started ones.
	started, moved int
	objectsStarted int64
}

// replica is a process that shares the work.
type replica struct {
	identity string
	up       bool
	leaving  bool
	settled  bool
	renewed  time.Duration
	term     int // counts the times that it had to begin anew
	working  bool
	writing  int
	waiting  []func()
	busy     []time.Duration // until when each core is
}

// lease is that of a unit.
type lease struct {
	unit     int
	holder   *replica
	running  bool // its informers are current
	ending   bool // the holder gives it up
	epoch    int
	begun    int // counts the changes, so that what comes late is not believed
	lost     time.Duration
	isLost   bool
	acquired time.Duration
}

// gap is a time in which a unit was not current: until it had an owner, and until that was current.
type gap struct {
	unit           int
	owned, current time.Duration
}

// coordinator is the API server of the coordinating cluster.
type coordinator struct {
	away    bool
	until   time.Duration // when all that was sent is written
	writes  []time.Duration
	members int // writes of members
}

func newPlay(w *world) *play {
	p := &play{world: w, random: rand.New(rand.NewPCG(w.seed, 2)), named: map[string]*replica{}}
	for i := range w.model.replicas {
		r := &replica{identity: identity(i), up: true, settled: true, working: true, busy: make([]time.Duration, w.costs.cores)}
		p.replicas, p.named[r.identity] = append(p.replicas, r), r
		p.renewFrom(r, time.Duration(p.random.Int64N(int64(w.times.RetryPeriod))))
	}
	p.replan()
	for i, owner := range p.owners {
		p.leases = append(p.leases, &lease{unit: i, holder: p.named[owner], running: true, epoch: 1})
	}
	p.run(30 * time.Second)
	p.count()
	return p
}

// count counts from now on.
func (p *play) count() {
	p.gaps, p.plans, p.started, p.moved, p.objectsStarted = nil, 0, 0, 0, 0
	p.server.writes, p.server.members = nil, 0
}

// renewFrom renews a member Lease from a time on.
func (p *play) renewFrom(r *replica, at time.Duration) {
	term := r.term
	p.at(at, func() {
		if !r.up || r.term != term {
			return
		}
		if !p.server.away {
			p.server.members++
			p.write(func() {})
			p.renewal(r)
		}
		p.renewFrom(r, at+p.times.RetryPeriod)
	})
}

// renewal is what a renewal does that has succeeded.
func (p *play) renewal(r *replica) {
	r.renewed = p.now
	if !r.working {
		r.working = true
		p.resume(r)
	}
	p.after(p.times.RenewDeadline, func() {
		if r.up && r.working && p.now-r.renewed >= p.times.RenewDeadline {
			p.stopWork(r)
		}
	})
	p.after(p.costs.watchDelay+p.times.LeaseDuration, func() {
		if p.now-r.renewed >= p.costs.watchDelay+p.times.LeaseDuration {
			p.expired(r)
		}
	})
}

// stopWork is the end of a term: all informers end, and the Leases still name the replica.
func (p *play) stopWork(r *replica) {
	r.working = false
	for _, l := range p.leases {
		if l.holder == r {
			p.lose(l)
		}
	}
}

// resume takes up what the Leases still name, under new epochs.
func (p *play) resume(r *replica) {
	for _, l := range p.leases {
		if l.holder == r && !l.running {
			p.acquire(l, r)
		}
	}
}

// expired is when the others notice that a member is dead. Nobody decides while no member is seen.
func (p *play) expired(r *replica) {
	if p.server.away || r.working && r.up {
		return
	}
	r.settled = false
	p.decide()
}

// lose notes that a unit is not followed any more.
func (p *play) lose(l *lease) {
	l.begun++
	l.running = false
	if !l.isLost {
		l.isLost, l.lost, l.acquired = true, p.now, 0
	}
}

// write takes a place in the line of the API server's writes.
func (p *play) write(then func()) {
	service := time.Duration(float64(time.Second) / p.costs.writesPerSecond)
	p.server.until = max(p.server.until, p.now+p.costs.latency) + service
	p.server.writes = append(p.server.writes, p.server.until)
	p.at(p.server.until+p.costs.latency, then)
}

// unitWrite writes a unit's Lease. A replica has a few such writes under way.
func (p *play) unitWrite(r *replica, then func()) {
	if r.writing == atOnce {
		r.waiting = append(r.waiting, func() { p.unitWrite(r, then) })
		return
	}
	r.writing++
	p.write(func() {
		r.writing--
		if len(r.waiting) > 0 {
			next := r.waiting[0]
			r.waiting = r.waiting[1:]
			next()
		}
		then()
	})
}

// notice is how long it takes a replica to decide about a write: it may be in the middle of another
// decision.
func (p *play) notice() time.Duration {
	look := p.costs.lookCPU * time.Duration(len(p.units))
	return p.costs.watchDelay + gather + look + time.Duration(p.random.Int64N(int64(look)+1))
}

// replan computes the plan of the members that take part, and reports whether it is another one.
func (p *play) replan() bool {
	var members []string
	for _, r := range p.replicas {
		if r.settled && !r.leaving {
			members = append(members, r.identity)
		}
	}
	if slices.Equal(members, p.planned) {
		return false
	}
	p.plans++
	p.planned, p.owners = members, p.plan(members)
	return true
}

// decide does what a new plan asks for.
func (p *play) decide() {
	if !p.replan() {
		return
	}
	planTime := p.costs.planCPU * time.Duration(len(p.units))
	for _, l := range p.leases {
		owner := p.ownerOf(l)
		switch {
		case owner == nil || owner == l.holder:
		case l.holder == nil, !l.holder.up, !l.holder.settled:
			// A dead owner is confirmed by a read first.
			p.lose(l)
			p.after(p.notice()+planTime+2*p.costs.latency, func() { p.take(l) })
		default:
			p.after(p.notice()+planTime, func() { p.giveUp(l) })
		}
	}
}

// ownerOf returns the replica that the plan gives a unit to, nil if there is none.
func (p *play) ownerOf(l *lease) *replica { return p.named[p.owners[l.unit]] }

// giveUp ends a unit at an owner that is not to have it: it saves the checkpoint, and then releases
// the Lease.
func (p *play) giveUp(l *lease) {
	from := l.holder
	if from == nil || !from.up || l.ending || from == p.ownerOf(l) {
		return
	}
	p.lose(l)
	l.ending = true
	save := 2*p.costs.clusterLatency + p.costs.loadCPU*time.Duration(p.objects[l.unit])
	p.after(save, func() {
		if l.holder != from || !from.up {
			return
		}
		p.unitWrite(from, func() {
			l.holder, l.ending = nil, false
			p.after(p.notice(), func() { p.take(l) })
		})
	})
}

// take gives a unit without an owner to the member that is planned for it.
func (p *play) take(l *lease) {
	if l.holder != nil && l.holder.up && l.holder.settled {
		return
	}
	if owner := p.ownerOf(l); owner != nil && owner.up && owner.working {
		p.moved++
		p.acquire(l, owner)
	}
}

// acquire writes the Lease of a unit with the next epoch, and starts its informers from the
// checkpoint.
func (p *play) acquire(l *lease, r *replica) {
	l.begun++
	begun := l.begun
	l.holder, l.ending = r, false
	p.started++
	p.objectsStarted += p.objects[l.unit]
	p.unitWrite(r, func() {
		if l.begun != begun || !r.up {
			return
		}
		l.epoch++
		l.acquired = p.now
		work := p.costs.informerCPU*time.Duration(p.kinds[l.unit]) + p.costs.loadCPU*time.Duration(p.objects[l.unit])
		// Claim and checkpoint from the database; then connect, and watch.
		ready := r.compute(p.now+2*p.costs.clusterLatency, work) + 4*p.costs.clusterLatency
		p.at(ready, func() {
			if l.begun != begun || !r.up {
				return
			}
			l.running = true
			if l.isLost {
				l.isLost = false
				p.gaps = append(p.gaps, gap{l.unit, l.acquired - l.lost, p.now - l.lost})
			}
		})
	})
}

// compute returns when work is done that a core takes up at a time.
func (r *replica) compute(at, work time.Duration) time.Duration {
	core := 0
	for i, until := range r.busy {
		if until < r.busy[core] {
			core = i
		}
	}
	r.busy[core] = max(r.busy[core], at) + work
	return r.busy[core]
}

// uncovered counts the units that are not current.
func (p *play) uncovered() (n int) {
	for _, l := range p.leases {
		if !l.running {
			n++
		}
	}
	return n
}
