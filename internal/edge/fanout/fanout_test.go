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

// reader reads, and writes down what it was told.
type reader struct {
	server *server
	hub    *fanout.Hub[int]
	tap    *fanout.Tap[int]
	at     string
	told   []int
	lapses int
	// from is the number of the event that it follows. If it lists, it is told so many objects before.
	from    int
	lists   bool
	objects int
}

// end closes readers and waits until the hub has ended their watches.
func end(hub *fanout.Hub[int], readers ...*reader) {
	for _, r := range readers {
		r.tap.Close()
	}
	hub.Wait()
}

func (s *server) reader(t *testing.T, hub *fanout.Hub[int], from int) *reader {
	r := s.readerFrom(hub, from)
	require.NoError(t, r.follow())
	return r
}

func (s *server) readerFrom(hub *fanout.Hub[int], from int) *reader {
	return &reader{server: s, hub: hub, at: s.version(from), from: from}
}

func (r *reader) follow() (err error) {
	r.tap, err = r.hub.Follow(context.Background(), r.at, r.server.opener(r.at))
	return err
}

// relist has the reader begin again, as one that lists by itself.
func (r *reader) relist() error {
	r.tap.Close()
	r.told, r.lists, r.from, r.at = nil, false, r.server.history, r.server.version(r.server.history)
	return r.follow()
}

// read reads what there is, and no more than most.
func (r *reader) read(most int) error {
	for range most {
		begins := r.lists && len(r.told) <= r.objects
		e, err := r.tap.Take()
		lapsed, ended := errors.Is(err, fanout.ErrLapsed), errors.Is(err, io.EOF)
		if lapsed {
			r.lapses++
		}
		switch {
		case errors.Is(err, fanout.ErrNothing):
			return nil
		case begins && (lapsed || ended):
			err = r.relist()
		case lapsed:
			r.tap, err = r.hub.GoOn(context.Background(), r.tap, r.server.open)
		case ended:
			if r.at = r.tap.ResourceVersion(); r.server.shares() {
				r.at = r.tap.Passed()
			}
			r.tap.Close()
			err = r.follow()
		case err == nil:
			r.told = append(r.told, e.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// wants is what the reader is to be told, all objects and all that follows, in order and once.
func (r *reader) wants() (all []int) {
	if r.lists {
		for n := r.objects; n >= 0; n-- {
			all = append(all, -n)
		}
	}
	return append(all, sequence(r.from, r.server.history)...)
}

// missed returns an error unless the reader was told what it wants.
func (r *reader) missed() error {
	if want := r.wants(); fmt.Sprint(r.told) != fmt.Sprint(want) {
		return fmt.Errorf("from %d of %d, with %d objects, was told %v, not %v", r.from, r.server.history, r.objects, r.told, want)
	}
	return nil
}

// sequence is from+1 … to.
func sequence(from, to int) (all []int) {
	for n := from + 1; n <= to; n++ {
		all = append(all, n)
	}
	return all
}

const all = 1 << 30

func TestOneWatch(t *testing.T) {
	for name, version := range map[string]func(int) string{"ordered": numbers, "opaque": opaque} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, hub := newServer(version, 10), fanout.New[int](fanout.Options{})
				a := s.reader(t, hub, 0)
				b := s.reader(t, hub, 0)
				s.write(5)
				synctest.Wait()
				c := s.reader(t, hub, 3) // is still held
				for _, r := range []*reader{a, b, c} {
					require.NoError(t, r.read(all))
				}
				require.Equal(t, 1, s.watches())
				require.Equal(t, 1, s.openings())
				require.Equal(t, sequence(0, 5), a.told)
				require.Equal(t, sequence(0, 5), b.told)
				require.Equal(t, sequence(3, 5), c.told)

				a.tap.Close() // the reader that has opened it
				s.write(1)
				synctest.Wait()
				require.NoError(t, b.read(all))
				require.Equal(t, sequence(0, 6), b.told)
				b.tap.Close()
				require.Equal(t, 1, s.watches())
				c.tap.Close()
				require.Zero(t, s.watches())
				hub.Wait()
			})
		})
	}
}

// A reader that begins where no watch is any more has its own until that has come to where the
// others are.
func TestWatchesJoin(t *testing.T) {
	for name, version := range map[string]func(int) string{"ordered": numbers, "opaque": opaque} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, hub := newServer(version, 10), fanout.New[int](fanout.Options{})
				a := s.reader(t, hub, 0)
				s.write(100)
				synctest.Wait()
				require.NoError(t, a.read(all))
				b := s.reader(t, hub, 20)
				synctest.Wait()
				require.Equal(t, 2, s.openings())
				require.Equal(t, 1, s.watches())
				s.write(3)
				synctest.Wait()
				require.NoError(t, a.read(all))
				require.NoError(t, b.read(all))
				require.Equal(t, sequence(0, 103), a.told)
				require.Equal(t, sequence(20, 103), b.told)
				end(hub, a, b)
			})
		})
	}
}

// A reader that joins where a broken proxy has let events change places misses none, wherever that
// is.
func TestWatchesJoinWhereEventsChangePlaces(t *testing.T) {
	for name, version := range map[string]func(int) string{"ordered": numbers, "opaque": opaque} {
		for written := 60; written < 80; written++ {
			t.Run(fmt.Sprint(name, " ", written), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, hub := newServer(version, 10), fanout.New[int](fanout.Options{})
					a := s.reader(t, hub, 0)
					s.write(written)
					synctest.Wait()
					require.NoError(t, a.read(all))
					s.swaps = 2 // of the connections that are opened from now on
					b := s.reader(t, hub, 21)
					synctest.Wait()
					s.swaps = 0
					s.write(20)
					synctest.Wait()
					require.Equal(t, 1, s.watches())
					require.NoError(t, b.read(all))
					slices.Sort(b.told)
					require.Equal(t, sequence(21, written+20), b.told)
					end(hub, a, b)
				})
			})
		}
	}
}

// A reader that is behind holds the others up for a moment, and then goes its own way until it has
// caught up.
func TestASlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, hub := newServer(numbers, 100), fanout.New[int](fanout.Options{Most: 1000, Kept: 300})
		fast, slow := s.reader(t, hub, 0), s.reader(t, hub, 0)
		s.write(50)
		began := time.Now()
		for require.NoError(t, fast.read(all)); len(fast.told) < 50; require.NoError(t, fast.read(all)) {
			select {
			case <-fast.tap.Ready():
			case <-time.After(time.Second):
				t.Fatalf("held up: %v", fast.told)
			}
		}
		require.Equal(t, 100*time.Millisecond, time.Since(began))
		require.NoError(t, slow.read(1))
		require.Equal(t, 1, slow.lapses)
		require.NoError(t, slow.read(5))
		synctest.Wait()
		require.Equal(t, 2, s.watches())
		for range 50 {
			require.NoError(t, slow.read(3))
			synctest.Wait()
		}
		require.Equal(t, sequence(0, 50), slow.told)
		require.Equal(t, 1, slow.lapses)
		require.Equal(t, 1, s.watches(), "it has caught up")
		end(hub, fast, slow)
	})
}

// He misses nothing where a broken proxy has let events change places, wherever he was.
func TestASlowReaderWhereEventsChangePlaces(t *testing.T) {
	for name, version := range map[string]func(int) string{"ordered": numbers, "opaque": opaque} {
		for read := range 8 {
			t.Run(fmt.Sprint(name, " ", read), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, hub := newServer(version, 100), fanout.New[int](fanout.Options{Most: 1000, Kept: 300})
					s.swaps = 2
					fast, slow := s.reader(t, hub, 0), s.reader(t, hub, 0)
					s.write(51)
					synctest.Wait()
					require.NoError(t, slow.read(read))
					for range 10 {
						require.NoError(t, fast.read(all))
						time.Sleep(time.Second)
					}
					require.Len(t, fast.told, 51)
					s.swaps = 0
					require.NoError(t, slow.read(1))
					for range 51 {
						require.NoError(t, slow.read(3))
						synctest.Wait()
					}
					require.Equal(t, 1, slow.lapses)
					slices.Sort(slow.told)
					if name == "opaque" { // a repeated event is dropped by its reader
						slow.told = slices.Compact(slow.told)
					}
					require.Equal(t, sequence(0, 51), slow.told)
					end(hub, fast, slow)
				})
			})
		}
	}
}

// A slow reader misses nothing where a version has several events, wherever between these it was.
func TestASlowReaderWhereEventsShareAVersion(t *testing.T) {
	for read := range 12 {
		t.Run(fmt.Sprint(read), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, hub := newServer(fours, 100), fanout.New[int](fanout.Options{Most: 1000, Kept: 300})
				fast, slow := s.reader(t, hub, 0), s.reader(t, hub, 0)
				s.write(48)
				synctest.Wait()
				require.NoError(t, slow.read(read))
				for range 10 {
					require.NoError(t, fast.read(all))
					time.Sleep(time.Second)
				}
				require.Equal(t, sequence(0, 48), fast.told)
				require.NoError(t, slow.read(1))
				for range 48 {
					require.NoError(t, slow.read(3))
					synctest.Wait()
				}
				require.Equal(t, 1, slow.lapses)
				require.Equal(t, sequence(0, 48), slow.told)
				end(hub, fast, slow)
			})
		})
	}
}

// While no reader waits for more, a watch is read no faster than its readers read, and none lapses.
func TestBackpressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, hub := newServer(numbers, 100), fanout.New[int](fanout.Options{Most: 1000})
		w := s.watch(s.version(0)).(*stream)
		a := &reader{server: s, hub: hub, tap: hub.Adopt(w, s.version(0))}
		b := s.reader(t, hub, 0)
		s.write(200)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.LessOrEqual(t, w.at, 11)
		for len(a.told) < 200 || len(b.told) < 200 {
			require.NoError(t, a.read(1))
			require.NoError(t, b.read(1))
			synctest.Wait()
		}
		require.Zero(t, a.lapses+b.lapses)
		end(hub, a, b)
	})
}

func TestAWatchThatIsDoubtedIsNotJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, hub := newServer(numbers, 10), fanout.New[int](fanout.Options{})
		a, b := s.reader(t, hub, 0), s.reader(t, hub, 0)
		a.tap.Doubt()
		a.tap.Close()
		require.NoError(t, a.follow())
		require.Equal(t, 2, s.openings())
		s.write(1) // it was alive all the same
		synctest.Wait()
		require.NoError(t, a.read(all))
		require.NoError(t, b.read(all))
		require.Equal(t, 1, s.watches())
		require.Equal(t, []int{1}, a.told)
		require.Equal(t, []int{1}, b.told)
		end(hub, a, b)
	})
}

// A doubted watch that brings an event is no longer doubted: others join it again.
func TestDoubtedWatchIsJoinedAfterAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, hub := newServer(numbers, 10), fanout.New[int](fanout.Options{})
		a := s.reader(t, hub, 0)
		a.tap.Doubt()
		s.write(1)
		synctest.Wait()
		b := s.reader(t, hub, 1)
		require.Equal(t, 1, s.openings())
		end(hub, a, b)
	})
}

// A watch that waits for a slow reader has not reached a newer version: a reader that
// begins there would wait for the slow one, so it gets a watch of its own.
func TestReaderAheadOfAHeldUpWatchGetsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, hub := newServer(numbers, 100), fanout.New[int](fanout.Options{Most: 1000})
		slow := s.reader(t, hub, 0)
		s.write(50)
		synctest.Wait()
		ahead := s.reader(t, hub, 40)
		synctest.Wait()
		require.NoError(t, ahead.read(all))
		require.Equal(t, sequence(40, 50), ahead.told)
		require.Zero(t, slow.lapses)
		end(hub, slow, ahead)
	})
}

// Patience begins when a reader waits, however long the slow one was behind before.
func TestPatienceBeginsWhenAReaderWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, hub := newServer(numbers, 100), fanout.New[int](fanout.Options{Most: 1000, Kept: 300})
		first, second, slow := s.reader(t, hub, 0), s.reader(t, hub, 0), s.reader(t, hub, 0)
		s.write(50)
		synctest.Wait()
		require.NoError(t, first.read(all))
		time.Sleep(50 * time.Millisecond)
		first.tap.Close() // no reader waits any more
		time.Sleep(time.Minute)
		require.NoError(t, second.read(all))
		require.Equal(t, sequence(0, 11), second.told)
		time.Sleep(99 * time.Millisecond)
		synctest.Wait()
		require.NoError(t, second.read(all))
		require.Equal(t, sequence(0, 11), second.told, "held up by the slow one")
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.NoError(t, second.read(all))
		require.Greater(t, len(second.told), 11)
		require.NoError(t, slow.read(1))
		require.Equal(t, 1, slow.lapses)
		end(hub, slow, second)
	})
}

// Readers that are behind at different places lapse one after the other, until there is room.
func TestSlowReadersLapseOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, hub := newServer(numbers, 10), fanout.New[int](fanout.Options{Most: 1000, Kept: 300})
		fast, slow, slower := s.reader(t, hub, 0), s.reader(t, hub, 0), s.reader(t, hub, 0)
		s.write(9)
		synctest.Wait()
		require.NoError(t, slow.read(1))
		require.NoError(t, fast.read(all))
		s.resize(2000)
		s.write(1)
		synctest.Wait()
		s.resize(10)
		s.write(1)
		require.NoError(t, fast.read(all))
		require.Equal(t, sequence(0, 10), fast.told)
		began := time.Now()
		for len(fast.told) < 11 {
			select {
			case <-fast.tap.Ready():
				require.NoError(t, fast.read(all))
			case <-time.After(time.Minute):
				t.Fatal("held up for ever")
			}
		}
		require.Equal(t, 200*time.Millisecond, time.Since(began))
		for _, r := range []*reader{slow, slower} {
			require.NoError(t, r.read(all))
			synctest.Wait()
			require.NoError(t, r.read(all))
			require.Equal(t, 1, r.lapses)
			require.Equal(t, sequence(0, 11), r.told)
		}
		end(hub, fast, slow, slower)
	})
}

// A reader gets only a bookmark for events that it has from elsewhere: the watch is alive.
func TestBookmarksOfWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, hub := newServer(numbers, 10), fanout.New[int](fanout.Options{})
		a := s.reader(t, hub, 0)
		b := s.reader(t, hub, 3) // where the watch is yet to come to
		s.write(2)
		s.bookmark() // of 2
		s.write(1)
		s.bookmark() // of 3
		s.write(1)
		synctest.Wait()
		require.NoError(t, a.read(all))
		require.NoError(t, b.read(all))
		require.Equal(t, []int{1, 2, 0, 3, 0, 4}, a.told)
		require.Equal(t, []int{0, 4}, b.told)
		require.Equal(t, 1, s.watches())
		end(hub, a, b)
	})
}

// A watch that begins with the objects is not shared.
func TestAWatchWithoutAVersionIsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, hub := newServer(numbers, 10), fanout.New[int](fanout.Options{})
		for _, resourceVersion := range []string{"", "0"} {
			a, b := hub.Adopt(s.watch(s.version(0)), resourceVersion), s.reader(t, hub, 0)
			s.write(1)
			synctest.Wait()
			require.Equal(t, 2, s.watches())
			tap, err := hub.Follow(t.Context(), resourceVersion, s.opener(s.version(0)))
			require.NoError(t, err)
			require.Equal(t, 3, s.watches())
			tap.Close()
			a.Close()
			b.tap.Close()
		}
		hub.Wait()
	})
}

func TestWhatCanNotBeOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, hub := newServer(numbers, 10), fanout.New[int](fanout.Options{})
		var waiting sync.WaitGroup
		waiting.Go(func() {
			_, err := hub.Follow(t.Context(), s.version(0), func() (fanout.Watch[int], error) {
				time.Sleep(time.Minute)
				return nil, io.ErrUnexpectedEOF
			})
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		})
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := hub.Follow(ctx, s.version(0), nil)
		require.ErrorIs(t, err, context.Canceled)

		began := time.Now()
		a := s.reader(t, hub, 0)
		require.Equal(t, time.Second, time.Since(began))
		waiting.Wait()
		a.tap.Close()
		hub.Wait()
	})
}

// Whatever the readers, the watches and the time do, each reader is told all that follows where it
// began, in order and once.
func TestReadersMissNoEvent(t *testing.T) {
	for seed := range uint64(120) {
		for _, version := range []func(int) string{numbers, opaque} {
			synctest.Test(t, func(t *testing.T) { require.NoError(t, anyDay(seed, version), "seed %d", seed) })
		}
	}
}

// The same where versions have four events. After the end of a watch, a reader goes on from before the
// version that it is at, and is told its events again. No reader doubts its watch: the hub expects
// nothing more from a watch that has been silent for long.
func TestReadersMissNoEventOfAVersion(t *testing.T) {
	for seed := range uint64(80) {
		synctest.Test(t, func(t *testing.T) { require.NoError(t, anyDay(seed, fours), "seed %d", seed) })
	}
}

// fours is the version of four events.
func fours(n int) string { return numbers((n + 3) / 4) }

func anyDay(seed uint64, version func(int) string) error {
	dice := rand.New(rand.NewPCG(seed, 0))
	s, unit := newServer(version, 1+dice.IntN(200)), 1
	if s.shares() {
		unit = 4
	}
	hub := fanout.New[int](fanout.Options{Most: 1 + dice.IntN(2000), Kept: 1 + dice.IntN(500)})
	type person struct {
		*reader
		pace int
	}
	var people []*person
	leave := func(i int) {
		people[i].tap.Close()
		people = append(people[:i], people[i+1:]...)
	}
	for range 300 {
		switch n := dice.IntN(100); {
		case n < 30:
			s.write(unit * dice.IntN(30/unit))
		case n < 34 && len(people) < 6:
			from := dice.IntN(s.history + 1)
			if dice.IntN(2) == 0 {
				from = s.history
			}
			from -= from % unit
			r := s.readerFrom(hub, from)
			if err := r.follow(); err != nil {
				return err
			}
			people = append(people, &person{r, 1 + dice.IntN(40)})
		case n < 36 && len(people) > 0:
			leave(dice.IntN(len(people)))
		case n < 38:
			s.endAll()
		case n < 40 && len(people) > 0 && unit == 1:
			p := people[dice.IntN(len(people))]
			p.tap.Doubt()
		case n < 70 && len(people) > 0:
			p := people[dice.IntN(len(people))]
			if err := p.read(p.pace); err != nil {
				return err
			}
		case n < 85:
			synctest.Wait()
		default:
			time.Sleep(time.Duration(dice.IntN(200)) * time.Millisecond)
		}
	}
	for round, writes := 0, 4; round < 1000; round++ {
		synctest.Wait()
		time.Sleep(time.Second)
		missing := 0
		for _, p := range people {
			if err := p.read(all); err != nil {
				return err
			}
			if s.shares() { // some may be told again
				slices.Sort(p.told)
				p.told = slices.Compact(p.told)
			}
			missing += len(p.wants()) - len(p.told)
		}
		if missing == 0 {
			if writes == 0 {
				break
			}
			writes--
			s.write(unit) // by which the last watches join
		}
	}
	synctest.Wait()
	for _, p := range people {
		if err := p.missed(); err != nil {
			return err
		}
	}
	if open := s.watches(); open > 1 {
		return fmt.Errorf("%d watches for %d readers", open, len(people))
	}
	for len(people) > 0 {
		leave(0)
	}
	hub.Wait()
	if open := s.watches(); open != 0 {
		return fmt.Errorf("%d watches are open", open)
	}
	return nil
}
