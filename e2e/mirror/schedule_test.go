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

// step is one thing that happens to a replica, to its network, or to what all of them need.
type step struct {
	at   time.Duration // from the beginning of the round
	to   int           // the number of a replica, or one of the constants below
	what action
	way  way // of a replica that is cut off; empty for the replica itself
}

// way is what a replica has connections to.
type way string

const (
	toLeases   way = "from the server of the Leases"
	toClusters way = "from the clusters that it mirrors"
	toDatabase way = "from PostgreSQL"
)

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

	// Of a way: connections are dropped, and refused; or nothing is heard any more, on those that
	// there are and on new ones.
	drop    action = "drop"
	silence action = "silence"
	heal    action = "heal"

	// Of PostgreSQL.
	makeReadOnly action = "make read-only"
	fill         action = "fill the disk of"
	empty        action = "empty the disk of"
	makeWritable action = "make writable"
	fallBehind   action = "let a standby fall behind"
	failOver     action = "fail over to the standby of"
)

func (s step) String() string {
	to := map[int]string{homeServer: "the API server of the home cluster", allLeases: "all Leases", database: "PostgreSQL"}[s.to]
	if to == "" {
		to = fmt.Sprint("replica ", s.to)
	}
	if s.way != "" {
		to += " " + string(s.way)
	}
	return fmt.Sprintf("%v: %s %s", s.at.Round(time.Millisecond), s.what, to)
}

// schedule draws what happens in a round of a length: each replica is killed, paused for longer
// than a lease, or stopped, again and again, and goes on after a while. All Leases are deleted
// once, and then the API server of the home cluster is killed, and is back at once or after longer
// than a lease. Beside that, each replica is cut off from the Leases, the clusters or PostgreSQL,
// one after the other, for as long. PostgreSQL is killed, is read-only, has a full disk, and fails
// over to a standby that lacks the last commits, in any order but for the last: what it has lost is
// mended with what is written then. At the end everything runs.
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
			steps = append(steps, step{at: at, to: i, what: what}, step{at: at + down, to: i, what: back})
			at += down + between(lease/5, 2*lease)
		}
	}
	for i := range replicas {
		ways := []way{toLeases, toClusters, toDatabase}
		share := length / time.Duration(len(ways))
		random.Shuffle(len(ways), func(i, j int) { ways[i], ways[j] = ways[j], ways[i] })
		for n, of := range ways {
			at := time.Duration(n)*share + between(0, share/3)
			how := []action{drop, silence}[random.IntN(2)]
			steps = append(steps, step{at, i, how, of}, step{at + between(0, min(2*lease, share/2)), i, heal, of})
		}
	}
	steps = append(steps, step{at: between(0, length/3), to: allLeases, what: remove})
	killed := between(length/3, length/2)
	steps = append(steps, step{at: killed, to: homeServer, what: kill}, step{at: killed + between(0, lease*3/2), to: homeServer, what: start})

	faults := [][2]action{{fallBehind, failOver}, {kill, start}, {makeReadOnly, makeWritable}, {fill, empty}}
	share := length / time.Duration(len(faults))
	random.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	if last := len(faults) - 1; faults[last][0] == fallBehind {
		faults[last], faults[0] = faults[0], faults[last]
	}
	for n, fault := range faults {
		at := time.Duration(n)*share + between(0, share/3)
		steps = append(steps, step{at: at, to: database, what: fault[0]}, step{at: at + between(0, min(lease*3/2, share/2)), to: database, what: fault[1]})
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
		type part struct {
			of  int
			way way
		}
		broken := map[part]action{}
		mends := map[action][]action{
			start: {kill, stop}, resume: {pause}, heal: {drop, silence}, makeWritable: {makeReadOnly}, empty: {fill}, failOver: {fallBehind},
		}
		for _, s := range steps {
			require.LessOrEqual(t, s.at, time.Minute)
			of := part{s.to, s.way}
			if s.what == remove {
				continue
			}
			if mended, is := mends[s.what]; is {
				require.Contains(t, mended, broken[of], "%v", steps)
				broken[of] = ""
				continue
			}
			require.Empty(t, broken[of], "%v", steps)
			broken[of] = s.what
		}
		for of, is := range broken {
			require.Empty(t, is, "%v", of)
		}
		require.Len(t, broken, 3+3*3+2, "each replica, each way and each server had its share")
	}
}
