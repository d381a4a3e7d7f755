package fanout_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/internal/edge/fanout"
)

// gather has n readers ask for all objects, who are expected. Those that have nobody beside them
// are nil.
func (s *server) gather(hub *fanout.Hub[int], n int) (readers []*reader) {
	var asking sync.WaitGroup
	readers = make([]*reader, n)
	var heres []func()
	for range n {
		heres = append(heres, hub.Expect())
	}
	for i := range n {
		asking.Go(func() {
			tap, err := hub.Gather(context.Background(), "all", heres[i], s.list)
			if err != nil {
				panic(err)
			}
			if tap != nil {
				readers[i] = s.readerFrom(hub, s.history)
				readers[i].tap, readers[i].lists, readers[i].objects = tap, true, s.history
			}
		})
	}
	asking.Wait()
	return readers
}

func TestThoseWhoGatherReadOneWatch(t *testing.T) {
	for name, version := range map[string]func(int) string{"ordered": numbers, "opaque": opaque} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, hub := newServer(version, 10), fanout.New[int](fanout.Options{})
				s.write(3)
				readers := s.gather(hub, 3)
				synctest.Wait()
				s.write(2)
				synctest.Wait()
				late := s.reader(t, hub, 3) // joins what follows the objects
				for _, r := range readers {
					require.NoError(t, r.read(all))
					require.Equal(t, []int{-3, -2, -1, 0, 4, 5}, r.told)
				}
				require.NoError(t, late.read(all))
				require.Equal(t, []int{4, 5}, late.told)
				require.Equal(t, 1, s.openings())
				end(hub, append(readers, late)...)
			})
		})
	}
}

// One who is alone is told so at once, and gets nothing to read.
func TestNobodyElseGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, hub := newServer(numbers, 10), fanout.New[int](fanout.Options{})
		began := time.Now()
		require.Equal(t, []*reader{nil}, s.gather(hub, 1))
		require.Zero(t, time.Since(began))
		hub.Wait()
	})
}

// Those who gather wait for the ones that are expected, for a second.
func TestOneIsExpectedWhoDoesNotCome(t *testing.T) {
	for name, c := range map[string]struct {
		says time.Duration // that it does not come
		want time.Duration
	}{"and says so": {300 * time.Millisecond, 300 * time.Millisecond}, "and says so late": {time.Minute, time.Second}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, hub := newServer(numbers, 10), fanout.New[int](fanout.Options{})
				here := hub.Expect()
				time.AfterFunc(c.says, here)
				time.AfterFunc(c.says, here) // a second time changes nothing
				began := time.Now()
				readers := s.gather(hub, 2)
				require.Equal(t, c.want, time.Since(began))
				end(hub, readers...)
				time.Sleep(time.Minute)
				require.Equal(t, []*reader{nil}, s.gather(hub, 1))
			})
		})
	}
}

// One who stops waiting is not waited for, and does not read.
func TestOneLeavesAGathering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, hub := newServer(numbers, 10), fanout.New[int](fanout.Options{})
		here := hub.Expect()
		ctx, cancel := context.WithCancelCause(t.Context())
		var asking sync.WaitGroup
		asking.Go(func() {
			_, err := hub.Gather(ctx, "all", hub.Expect(), s.list)
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		})
		synctest.Wait()
		cancel(io.ErrUnexpectedEOF)
		asking.Wait()
		here()
		require.Equal(t, []*reader{nil}, s.gather(hub, 1))
		hub.Wait()
	})
}

// Those who ask for something else read something else.
func TestGatheringsAreOfThoseWhoAskForTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, hub := newServer(numbers, 10), fanout.New[int](fanout.Options{})
		var asking sync.WaitGroup
		for _, what := range []string{"one", "other"} {
			here := hub.Expect()
			asking.Go(func() {
				tap, err := hub.Gather(t.Context(), what, here, s.list)
				require.NoError(t, err)
				require.Nil(t, tap)
			})
		}
		asking.Wait()
		hub.Wait()
	})
}

// A reader that is too slow for the others lapses before the objects have ended, and learns that.
func TestASlowReaderOfObjects(t *testing.T) {
	for name, pause := range map[string]time.Duration{"hangs": time.Hour, "slow each time": 50 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, hub := newServer(numbers, 100), fanout.New[int](fanout.Options{Most: 1000, Kept: 300})
				s.write(500)
				readers := s.gather(hub, 2)
				fast, slow := readers[0], readers[1]
				var reading sync.WaitGroup
				reading.Go(func() {
					defer slow.tap.Close()
					for {
						switch _, err := slow.tap.Take(); {
						case errors.Is(err, fanout.ErrLapsed):
							return
						case err != nil && !errors.Is(err, fanout.ErrNothing):
							panic(err)
						}
						time.Sleep(pause)
					}
				})
				began := time.Now()
				for len(fast.told) < 501 {
					require.NoError(t, fast.read(all))
					time.Sleep(time.Millisecond)
				}
				require.Less(t, time.Since(began), time.Second)
				fast.tap.Close()
				reading.Wait()
				hub.Wait()
			})
		})
	}
}

// One that is a little slower than the others does not lapse.
func TestAReaderOfObjectsThatIsALittleSlower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, hub := newServer(numbers, 100), fanout.New[int](fanout.Options{Most: 1000, Kept: 300})
		s.write(2000)
		readers := s.gather(hub, 2)
		var reading sync.WaitGroup
		for i, r := range readers {
			reading.Go(func() {
				for len(r.told) < 2001 {
					if err := r.read(1); err != nil {
						panic(err)
					}
					time.Sleep(time.Duration(10+4*i) * time.Millisecond)
				}
			})
		}
		reading.Wait()
		for _, r := range readers {
			require.Zero(t, r.lapses)
			r.tap.Close()
		}
		hub.Wait()
	})
}

// lateBegin is a watch-list whose end of the initial events has been read when it is stopped.
type lateBegin struct {
	stream
	stopped chan struct{}
	n       int
}

func (w *lateBegin) Stop() {
	select {
	case <-w.stopped:
	default:
		close(w.stopped)
	}
	w.stream.Stop()
}

func (w *lateBegin) Next() (fanout.Event[int], error) {
	if w.n++; w.n == 1 {
		<-w.stopped
		return fanout.Event[int]{Bytes: 1, ResourceVersion: w.server.version(w.at), Bookmark: true, Begins: true}, nil
	}
	return w.stream.Next()
}

// The last reader leaves when the end of the objects has been read: nobody joins a watch that is
// not read.
func TestNobodyReadsWhenTheObjectsHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, hub := newServer(numbers, 10), fanout.New[int](fanout.Options{})
		s.write(3)
		open := func() fanout.Watch[int] {
			return &lateBegin{stream: *(s.watch(s.version(3)).(*stream)), stopped: make(chan struct{})}
		}
		taps := make(chan *fanout.Tap[int], 2)
		h1, h2 := hub.Expect(), hub.Expect()
		go func() { tap, _ := hub.Gather(context.Background(), "all", h1, open); taps <- tap }()
		go func() { tap, _ := hub.Gather(context.Background(), "all", h2, open); taps <- tap }()
		a, b := <-taps, <-taps
		a.Close()
		b.Close()
		hub.Wait()
		require.Zero(t, s.watches())
		require.Empty(t, hub.ResourceVersion())
		tap, err := hub.Follow(context.Background(), s.version(3), s.opener(s.version(3)))
		require.NoError(t, err)
		s.write(1)
		time.Sleep(time.Hour)
		e, err := tap.Take()
		require.NoError(t, err)
		require.Equal(t, 4, e.Value)
		tap.Close()
	})
}

// Whatever their pace, those who gather are told all objects, and then all that follows, in order
// and once, or that they are too slow.
func TestReadersOfObjectsMissNothing(t *testing.T) {
	for seed := range uint64(200) {
		for _, version := range []func(int) string{numbers, opaque} {
			synctest.Test(t, func(t *testing.T) { require.NoError(t, anyGathering(seed, version), "seed %d", seed) })
		}
	}
}

func anyGathering(seed uint64, version func(int) string) error {
	dice := rand.New(rand.NewPCG(seed, 1))
	s := newServer(version, 1+dice.IntN(200))
	hub := fanout.New[int](fanout.Options{Most: 1 + dice.IntN(2000), Kept: 1 + dice.IntN(500)})
	s.write(dice.IntN(100))
	readers := s.gather(hub, 2+dice.IntN(3))
	paces := make([]int, len(readers))
	for i := range readers {
		paces[i] = 1 + dice.IntN(20)
	}
	for range 200 {
		i := dice.IntN(len(readers))
		switch n := dice.IntN(100); {
		case n < 20:
			s.write(dice.IntN(20))
		case n < 21:
			s.endAll()
		case n < 70:
			if err := readers[i].read(paces[i]); err != nil {
				return err
			}
		case n < 85:
			synctest.Wait()
		default:
			time.Sleep(time.Duration(dice.IntN(100)) * time.Millisecond)
		}
	}
	missing := func() bool {
		return slices.ContainsFunc(readers, func(r *reader) bool { return len(r.told) < len(r.wants()) })
	}
	for round := 0; round < 10 || missing() && round < 1000; round++ {
		synctest.Wait()
		time.Sleep(time.Second)
		for _, r := range readers {
			if err := r.read(all); err != nil {
				return err
			}
		}
	}
	for _, r := range readers {
		if err := r.missed(); err != nil {
			return err
		}
		r.tap.Close()
	}
	hub.Wait()
	if open := s.watches(); open != 0 {
		return fmt.Errorf("%d watches are open", open)
	}
	return nil
}
