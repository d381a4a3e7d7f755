package budget

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// began begins a list that has its turn at once.
func began(t *testing.T, b *Budget, key any) *List {
	l, err := b.Begin(t.Context(), key)
	require.NoError(t, err)
	require.NoError(t, l.GoesOn(t.Context()))
	return l
}

// The time that a group has used while no other waited is not held against it.
func TestTimeWithoutWaitersIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(2 * listShare)
		over := began(t, b, "alone")
		time.Sleep(time.Hour)
		held := began(t, b, "alone")
		over.End()
		time.Sleep(time.Hour)
		last := began(t, b, "alone")

		var others []*List
		for range 3 {
			l := &List{budget: b}
			l.begin("others")
			others = append(others, l)
		}
		mine := &List{budget: b}
		granted := mine.begin("alone")
		held.End()
		for _, l := range others[:2] {
			time.Sleep(time.Millisecond)
			l.End()
		}
		require.True(t, isClosed(granted), "the group waits for all others")
		for _, l := range append(others, mine, last) {
			l.End()
		}
		require.Zero(t, b.InUse())
	})
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Nothing is kept of groups whose lists are over, when no list waits any more: also where the last
// one that waited had its turn since another let it go before.
func TestGroupsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(1)
		silent := began(t, b, "silent")
		waits := &List{budget: b}
		granted := waits.begin("waits")
		gone := &List{budget: b}
		gone.begin("gone")
		gone.End()
		silent.Waits()
		<-granted
		waits.End()
		silent.End()
		require.Empty(t, b.lists.groups)
		require.Nil(t, b.lists.timer)
	})
}

// A list that has let others go before it and ends without an answer does not hold up the next list
// of its server.
func TestSilentListThatEndsMakesNoOtherLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(1)
		silent, err := b.Begin(t.Context(), "hung")
		require.NoError(t, err)
		other := &List{budget: b}
		granted := other.begin("other")
		silent.Waits()
		<-granted
		next := &List{budget: b}
		next.begin("hung")
		require.True(t, next.late(time.Now()))
		silent.End()
		require.False(t, next.late(time.Now()))
		other.End()
		next.End()
		require.Empty(t, b.lists.groups)
	})
}

// A tick that comes late, when another timer was set already, does not have it looked twice as
// often from then on.
func TestLateTickSetsNoOtherTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(1)
		first := began(t, b, "first")
		second := &List{budget: b}
		second.begin("second")
		timer := b.lists.timer
		b.tick()
		require.Same(t, timer, b.lists.timer)
		first.End()
		second.End()
		require.Nil(t, b.lists.timer)
	})
}

// A server that does not answer one list, and others at once, is asked for these though others have
// always something to be read.
func TestOneSilentListHoldsUpNoOtherOfItsServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(1)
		ctx, cancel := context.WithCancel(t.Context())
		var busy sync.WaitGroup
		for range 3 {
			busy.Go(func() {
				for ctx.Err() == nil {
					l, err := b.Begin(ctx, "busy")
					if err == nil && l.GoesOn(ctx) == nil {
						time.Sleep(10 * time.Millisecond)
					}
					l.End()
				}
			})
		}
		silent, err := b.Begin(t.Context(), "hung")
		require.NoError(t, err)
		time.Sleep(100 * time.Millisecond) // it has let others go before it
		for range 3 {
			start := time.Now()
			l := began(t, b, "hung")
			require.Less(t, time.Since(start), askedAgain+100*time.Millisecond)
			l.End()
		}
		silent.End()
		cancel()
		busy.Wait()
		require.Zero(t, b.InUse())
	})
}

// Lists that keep their turns are counted before they leave: their group does not take those of
// others as well.
func TestTimeIsCountedWhileItIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(4 * listShare)
		ctx, cancel := context.WithCancel(t.Context())
		var slow, quick sync.WaitGroup
		for range 10 {
			slow.Go(func() {
				l, err := b.Begin(ctx, "slow")
				if err == nil && l.GoesOn(ctx) == nil {
					<-ctx.Done()
				}
				l.End()
			})
			synctest.Wait() // one after the other
			quick.Go(func() {
				l := began(t, b, "quick")
				time.Sleep(10 * time.Millisecond)
				l.End()
			})
			synctest.Wait()
		}
		start := time.Now()
		quick.Wait()
		require.Less(t, time.Since(start), 300*time.Millisecond)
		cancel()
		slow.Wait()
		require.Zero(t, b.InUse())
	})
}

// A list whose consumer has no room lets others go before it, and waits for its turn when it reads
// on.
func TestStuckListGivesItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(1)
		stuck := began(t, b, "stuck")
		stuck.Busy()
		start := time.Now()
		other := began(t, b, "other")
		require.InDelta(t, unanswered, time.Since(start), float64(2*tick))

		stuck.Idle()
		require.Zero(t, b.lists.stuck)
		goesOn := stuck.goOn()
		synctest.Wait()
		require.False(t, isClosed(goesOn), "it is the other's turn")
		other.End()
		<-goesOn
		stuck.End()
		require.Zero(t, b.InUse())
	})
}

// The more lists are stuck, the longer each keeps its turn; but never longer than others do.
func TestStuckListsAreAddedMoreAndMoreSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(1)
		var stuck []*List
		var took []time.Duration
		for range 200 {
			start := time.Now()
			l := began(t, b, len(stuck))
			took = append(took, time.Since(start))
			l.Busy()
			stuck = append(stuck, l)
		}
		require.Less(t, took[10], 200*time.Millisecond)
		require.InDelta(t, longTurn, took[199], float64(2*tick))
		for _, l := range stuck {
			l.End()
		}
		require.Zero(t, b.InUse())
		require.Zero(t, b.lists.stuck)
	})
}
