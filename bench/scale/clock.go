package main

import (
	"container/heap"
	"time"
)

// clock is virtual time: what is due is done in order, and at equal times in the order of its
// announcement.
type clock struct {
	now   time.Duration
	due   dues
	count int
}

type due struct {
	at    time.Duration
	count int
	do    func()
}

// at does something at a time, which is now if it has passed.
func (c *clock) at(at time.Duration, do func()) {
	c.count++
	heap.Push(&c.due, due{max(at, c.now), c.count, do})
}

// after does something after a while.
func (c *clock) after(d time.Duration, do func()) { c.at(c.now+d, do) }

// run does what is due until an end.
func (c *clock) run(end time.Duration) {
	for len(c.due) > 0 && c.due[0].at <= end {
		next := heap.Pop(&c.due).(due)
		c.now = next.at
		next.do()
	}
	c.now = end
}

// dues is a heap.
type dues []due

func (d dues) Len() int { return len(d) }
func (d dues) Less(i, j int) bool {
	return d[i].at < d[j].at || d[i].at == d[j].at && d[i].count < d[j].count
}
func (d dues) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *dues) Push(x any)   { *d = append(*d, x.(due)) }
func (d *dues) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}
