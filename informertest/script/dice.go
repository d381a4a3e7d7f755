package script

import (
	"math/rand/v2"
	"sync"
	"time"
)

// dice is a source of random decisions for several goroutines.
type dice struct {
	mu   sync.Mutex
	rand *rand.Rand
}

func newDice(seed uint64) *dice { return &dice{rand: rand.New(rand.NewPCG(seed, 0))} }

// n is a number below most.
func (d *dice) n(most int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rand.IntN(most)
}

// one is true one time out of n, and never for 0.
func (d *dice) one(n int) bool { return n > 0 && d.n(n) == 0 }

// duration is less than most.
func (d *dice) duration(most time.Duration) time.Duration { return time.Duration(d.n(int(most))) }
