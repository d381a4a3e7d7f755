package deltaqueue_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/engine/deltaqueue"
)

// crew are consumers that a queue hires; each takes a second for an entry.
type crew struct {
	queue          *deltaqueue.Queue
	running        sync.WaitGroup
	present, taken atomic.Int32
	retries        atomic.Int32
}

func newCrew(ctx context.Context, workers int) *crew {
	c := &crew{}
	c.queue, _ = newQueue(deltaqueue.Options{Workers: workers, Hire: func() { c.running.Go(func() { c.work(ctx) }) }})
	return c
}

func (c *crew) work(ctx context.Context) {
	c.present.Add(1)
	defer c.present.Add(-1)
	for {
		e, err := c.queue.Take(ctx)
		if err != nil {
			return
		}
		time.Sleep(time.Second)
		if c.retries.Add(-1) >= 0 {
			c.queue.Retry(e, time.Minute)
			continue
		}
		c.queue.Done(e)
		c.taken.Add(1)
	}
}

// Consumers come when there is something to take, as many as may, and go when
// there is nothing.
func TestConsumersComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := newCrew(ctx, 3)
		require.Zero(t, c.present.Load())
		for round := range 3 {
			put(t, c.queue, delta(cache.Added, "first", strconv.Itoa(100*round+1)))
			synctest.Wait()
			require.EqualValues(t, 1, c.present.Load())
			for n := range 10 {
				put(t, c.queue, delta(cache.Added, "k"+strconv.Itoa(n), strconv.Itoa(100*round+n)))
			}
			synctest.Wait()
			require.EqualValues(t, 3, c.present.Load())
			time.Sleep(5 * time.Second)
			synctest.Wait()
			require.EqualValues(t, 11*(round+1), c.taken.Load())
			time.Sleep(5 * time.Second)
			synctest.Wait()
			require.Zero(t, c.present.Load())
		}
		cancel()
		c.running.Wait()
	})
}

// A consumer does not leave what is to be tried again.
func TestAConsumerWaitsForWhatIsParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := newCrew(ctx, 1)
		c.retries.Store(3)
		put(t, c.queue, delta(cache.Added, "k", "1"))
		time.Sleep(3*time.Minute + 5*time.Second)
		synctest.Wait()
		require.EqualValues(t, 1, c.taken.Load())
		require.Zero(t, c.present.Load())
		put(t, c.queue, delta(cache.Added, "k", "2"))
		cancel()
		c.running.Wait()
	})
}

// What comes while a consumer waits may be too much for that one.
func TestAConsumerThatWaitsIsHelped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := newCrew(ctx, 2)
		put(t, c.queue, delta(cache.Added, "first", "1"))
		time.Sleep(1500 * time.Millisecond)
		require.EqualValues(t, 1, c.taken.Load())
		require.EqualValues(t, 1, c.present.Load())
		put(t, c.queue, delta(cache.Added, "a", "2"), delta(cache.Added, "b", "3"))
		synctest.Wait()
		require.EqualValues(t, 2, c.present.Load())
		cancel()
		c.running.Wait()
	})
}
