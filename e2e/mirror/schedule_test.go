package mirror

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// step is one thing that happens to a replica, or to what all of them need.
type step struct {
	at   time.Duration // from the beginning of the round
	to   int           // the number of a replica, or one of the constants below
	what action
}

const (
	homeServer = -1 - iota // the API server of the home cluster
	allLeases              // those of the replicas and of their units
	database
)

type action string

const (
	kill   action = "kill"
	pause  action = "pause"
	resume action = "resume"
	stop   action = "stop"
	start  action = "start"
	remove action = "delete"
)

func (s step) String() string {
	to := map[int]string{homeServer: "the API server of the home cluster", allLeases: "all Leases", database: "PostgreSQL"}[s.to]
	if to == "" {
		to = fmt.Sprint("replica ", s.to)
	}
	return fmt.Sprintf("%v: %s %s", s.at.Round(time.Millisecond), s.what, to)
}

// schedule draws what happens in a round of a length: each replica is killed, paused for longer than a lease, or stopped, again and
// again, and goes on after a while. All Leases are deleted once, and then the API server of the home cluster is killed, and is back at once or
// after longer than a lease. So is PostgreSQL, at any time. At the end everything runs.
func schedule(random *rand.Rand, replicas int, length, lease time.Duration) []step {
	var steps []step
	between := func(from, to time.Duration) time.Duration { return from + time.Duration(random.Int64N(int64(to-from))) }
	for i := range replicas {
		for at := between(0, length/3); ; {
			what, back, down := kill, start, between(0, lease)
			switch random.IntN(3) {
			case 1:
				what, back, down = pause, resume, between(lease/2, 2*lease)
			case 2:
				what = stop
			}
			if at+down > length {
				break
			}
			steps = append(steps, step{at, i, what}, step{at + down, i, back})
			at += down + between(lease/5, 2*lease)
		}
	}
	steps = append(steps, step{between(0, length/3), allLeases, remove})
	for _, killed := range []step{{between(length/3, length/2), homeServer, kill}, {between(0, length/2), database, kill}} {
		steps = append(steps, killed, step{killed.at + between(0, lease*3/2), killed.to, start})
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	return steps
}

// A seed always gives the same schedule, and a schedule ends with everything up.
func TestSchedule(t *testing.T) {
	for seed := range uint64(200) {
		draw := func() []step {
			return schedule(rand.New(rand.NewPCG(seed, 0)), 3, time.Minute, 5*time.Second)
		}
		steps := draw()
		require.Equal(t, steps, draw())
		state := map[int]action{}
		for _, s := range steps {
			require.LessOrEqual(t, s.at, time.Minute)
			if s.what == remove {
				continue
			}
			down := state[s.to] == kill || state[s.to] == stop
			switch s.what {
			case start:
				require.True(t, down, "%v", steps)
			case resume:
				require.Equal(t, pause, state[s.to], "%v", steps)
			default:
				require.False(t, down || state[s.to] == pause, "%v", steps)
			}
			state[s.to] = s.what
		}
		for _, last := range state {
			require.Contains(t, []action{start, resume}, last)
		}
		require.Len(t, state, 5, "each replica and each server had its share")
	}
}
