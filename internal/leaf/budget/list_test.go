package budget_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer/internal/leaf/budget"
)

// limit is that of a budget for four lists at a time, and each is what one takes.
const (
	limit = 16
	each  = 1
)

// listed is a list of a group, as a test follows it.
type listed struct {
	group  int
	list   *budget.List // nil before it has begun
	cancel context.CancelFunc
	// waits tells that it is in Begin or GoesOn, and over that it has ended.
	waits, over bool
	err         error
}

// crowd are lists of a budget. All is read and written while nothing else runs, or one at a time by
// the list that has just begun.
type crowd struct {
	budget  *budget.Budget
	all     []*listed
	objects int64
	begun   chan *listed
}

func newCrowd() *crowd {
	return &crowd{budget: budget.New(limit), begun: make(chan *listed, 1000)}
}

// wait has a list wait in call.
func (c *crowd) wait(l *listed, call func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	l.waits, l.cancel = true, cancel
	go func() {
		l.err = call(ctx)
		c.begun <- l
	}()
	c.settle()
}

// settle notes the lists that have begun, in no certain order.
func (c *crowd) settle() {
	synctest.Wait()
	for len(c.begun) > 0 {
		l := <-c.begun
		l.waits = false
		l.cancel()
		if l.err != nil {
			l.over = true
		}
	}
}

func (c *crowd) begin(group int) *listed {
	l := &listed{group: group}
	c.all = append(c.all, l)
	c.wait(l, func(ctx context.Context) (err error) {
		l.list, err = c.budget.Begin(ctx, group)
		return err
	})
	return l
}

func (c *crowd) goOn(l *listed) { c.wait(l, l.list.GoesOn) }

func (c *crowd) end(l *listed) {
	l.list.End()
	l.over = true
	c.settle()
}

func (c *crowd) sleep(d time.Duration) {
	time.Sleep(d)
	c.settle()
}

// some are the lists that satisfy a condition.
func (c *crowd) some(which func(*listed) bool) (all []*listed) {
	for _, l := range c.all {
		if which(l) {
			all = append(all, l)
		}
	}
	return all
}

func waiting(l *listed) bool { return l.waits }
func idle(l *listed) bool    { return !l.waits && !l.over }

// check is what is true at any time.
func (c *crowd) check(t require.TestingT) {
	under := c.budget.InUse() - c.objects
	require.GreaterOrEqual(t, under, int64(0))
	require.LessOrEqual(t, under, int64(limit/4), "more lists than there may be")
	require.LessOrEqual(t, under, int64(len(c.some(func(l *listed) bool { return !l.over }))))
	if len(c.some(waiting)) > 0 {
		require.EqualValues(t, limit/4, under, "there is room, and one waits")
	}
}

// TestLists is a model of lists that begin, wait for their servers, go on and end: there are as
// many under way as there may be, none waits for ever, and no bytes are lost.
func TestLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// rapid would ask for a deadline, which a bubble does not have.
		rapid.Check(struct{ testing.TB }{t}, func(rt *rapid.T) {
			c := newCrowd()
			pick := func(t *rapid.T, which func(*listed) bool) *listed {
				some := c.some(which)
				if len(some) == 0 {
					t.Skip("there is none")
				}
				return rapid.SampledFrom(some).Draw(t, "list")
			}
			rt.Repeat(map[string]func(*rapid.T){
				"":       func(t *rapid.T) { c.check(t) },
				"begin":  func(t *rapid.T) { c.begin(rapid.IntRange(0, 3).Draw(t, "group")) },
				"begin ": func(t *rapid.T) { c.begin(0) }, // it has many
				"wait":   func(t *rapid.T) { pick(t, idle).list.Waits() },
				"go on":  func(t *rapid.T) { c.goOn(pick(t, idle)) },
				"end":    func(t *rapid.T) { c.end(pick(t, idle)) },
				"cancel": func(t *rapid.T) { pick(t, waiting).cancel(); c.settle() },
				"sleep": func(t *rapid.T) {
					c.sleep(time.Duration(rapid.IntRange(1, 1500).Draw(t, "milliseconds")) * time.Millisecond)
				},
				"objects": func(t *rapid.T) {
					bytes := rapid.Int64Range(-c.objects, 40).Draw(t, "bytes")
					c.objects += bytes
					if bytes < 0 {
						c.budget.Give(-bytes)
					} else {
						c.budget.Take(bytes)
					}
				},
			})
			// Though none ends, each begins.
			c.sleep(time.Duration(len(c.some(waiting))+1) * 1100 * time.Millisecond)
			require.Empty(rt, c.some(waiting))
			for _, l := range c.some(idle) {
				c.end(l)
				l.list.End() // of no effect
			}
			c.budget.Give(c.objects)
			require.Zero(rt, c.budget.InUse())
		})
	})
}

func TestListsOfGroupsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd()
		var order []int
		for range limit / 4 {
			c.begin(0)
		}
		for range 10 {
			c.begin(0)
		}
		for range 2 {
			c.begin(1)
			c.begin(2)
		}
		for range 10 {
			before := c.some(waiting)
			c.end(c.some(idle)[0])
			for _, l := range before {
				if !l.waits {
					order = append(order, l.group)
				}
			}
		}
		require.Equal(t, []int{0, 1, 2, 0, 1, 2, 0, 0, 0, 0}, order)
		for len(c.some(idle)) > 0 {
			c.end(c.some(idle)[0])
		}
		require.Zero(t, c.budget.InUse())
	})
}

// A group that keeps each of its turns for long has no more of the time than others that have all
// read soon.
func TestGroupsHaveEqualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(1)
		var goroutines sync.WaitGroup
		used := map[string]time.Duration{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for group, turn := range map[string]time.Duration{"slow": 400 * time.Millisecond, "quick": 10 * time.Millisecond, "hasty": 3 * time.Millisecond} {
			for range 5 {
				goroutines.Go(func() {
					for {
						l, err := b.Begin(ctx, group)
						if err != nil {
							return
						}
						if l.GoesOn(ctx) != nil {
							return
						}
						time.Sleep(turn)
						used[group] += turn // one at a time
						l.End()
					}
				})
			}
		}
		goroutines.Wait()
		for group, time := range used {
			require.InDelta(t, 20, time.Seconds(), 1, group)
		}
		require.Zero(t, b.InUse())
	})
}

// Lists that wait for their servers hold up no other, and those that do not let one go before them
// each second.
func TestListsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd()
		for range 40 { // begun, and their servers do not answer
			c.begin(0)
		}
		other := c.begin(1)
		c.sleep(50 * time.Millisecond)
		require.False(t, other.waits, "it is the turn of its group")
		c.sleep(3 * time.Second)
		require.Greater(t, len(c.some(waiting)), 20, "the group has others to be answered")
		c.sleep(10 * time.Second)
		require.Empty(t, c.some(waiting))
		for _, l := range c.some(idle)[4:] {
			c.end(l)
		}

		for _, l := range c.some(idle) { // whose handlers do not return
			c.goOn(l)
		}
		slow := c.some(idle)
		for range 3 {
			c.begin(2)
		}
		c.sleep(990 * time.Millisecond)
		require.Len(t, c.some(waiting), 3)
		c.sleep(30 * time.Millisecond)
		require.Len(t, c.some(waiting), 2)
		c.goOn(slow[0])
		require.True(t, slow[0].waits, "which has let another one go before it")
		c.sleep(5 * time.Second)
		require.Empty(t, c.some(waiting))
		for _, l := range c.some(idle) {
			c.end(l)
		}
		require.Zero(t, c.budget.InUse())
	})
}

func TestListsThatAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(1)
		first, err := b.Begin(t.Context(), "a")
		require.NoError(t, err)
		require.EqualValues(t, each, b.InUse())

		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		_, err = b.Begin(ctx, "b")
		require.ErrorIs(t, err, gone)

		// Ended while it waits in another goroutine.
		time.Sleep(10 * time.Second)
		second, err := make(chan *budget.List), error(nil)
		go func() {
			l, err := b.Begin(t.Context(), "c")
			require.NoError(t, err)
			second <- l
		}()
		other := <-second
		returned := make(chan error)
		go func() { returned <- first.GoesOn(t.Context()) }()
		synctest.Wait()
		first.End()
		require.NoError(t, <-returned)
		require.NoError(t, first.GoesOn(ctx), "it is over")
		require.EqualValues(t, each, b.InUse())
		other.End()
		require.Zero(t, b.InUse())

		var none *budget.List
		none.Waits()
		require.NoError(t, none.GoesOn(ctx))
		none.End()
	})
}

// What a list takes does not depend on what objects take, and these do not wait for lists where
// nothing else is.
func TestListsAndObjects(t *testing.T) {
	b := budget.New(64)
	b.Take(1000)
	l, err := b.Begin(t.Context(), 1)
	require.NoError(t, err)
	require.EqualValues(t, 1001, b.InUse())
	c := b.Claim(100)
	b.Give(1000)
	require.True(t, granted(c))
	require.False(t, b.TryTake(1))
	b.Give(100)
	c = b.Claim(64)
	require.True(t, granted(c))
	c = b.Claim(63)
	require.False(t, granted(c))
	b.Give(64)
	require.True(t, granted(c))
	c = b.Claim(1)
	require.False(t, granted(c), "the list takes the last byte")
	l.End()
	require.True(t, granted(c))
	b.Give(64)
	require.Zero(t, b.InUse())
}

// A list costs next to nothing while no other waits.
func BenchmarkList(b *testing.B) {
	shared := budget.New(16 << 20)
	for b.Loop() {
		l, err := shared.Begin(b.Context(), "group")
		if err != nil {
			b.Fatal(err)
		}
		l.Waits()
		if err := l.GoesOn(b.Context()); err != nil {
			b.Fatal(err)
		}
		l.End()
	}
}
