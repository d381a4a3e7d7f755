package main

import "time"

// crash ends replicas at once, without a word.
func (p *play) crash(n int) {
	for _, r := range p.replicas[:n] {
		r.up = false
		p.stopWork(r)
	}
}

// coordinatorAway takes the coordinating API server away for a while.
func (p *play) coordinatorAway(d time.Duration) {
	p.server.away = true
	p.after(d, func() { p.server.away = false })
}

// roll restarts all replicas, so many at a time, and returns how long it took. The next ones stop
// when those before take part again and no unit is without an owner.
func (p *play) roll(atATime int) time.Duration {
	began := p.now
	for from := 0; from < len(p.replicas); from += atATime {
		some := p.replicas[from:min(from+atATime, len(p.replicas))]
		for _, r := range some {
			r.leaving = true
		}
		p.decide()
		p.settle()
		for _, r := range some {
			r.up, r.working, r.settled = false, false, false
			r.term++
		}
		p.after(p.costs.podStart, func() {
			for _, r := range some {
				r.up, r.leaving, r.working, r.renewed = true, false, true, p.now
				p.renewFrom(r, p.now)
				p.after(p.times.SettleTime+p.times.RetryPeriod, func() {
					r.settled = true
					p.decide()
				})
			}
		})
		p.run(p.now + p.costs.podStart + p.times.SettleTime + 2*p.times.RetryPeriod)
		p.settle()
	}
	return p.now - began
}

// settle goes on until all units are current, and at least for a second.
func (p *play) settle() {
	p.run(p.now + time.Second)
	for end := p.now + 10*time.Minute; p.uncovered() > 0 && p.now < end; {
		p.run(p.now + 100*time.Millisecond)
	}
}
