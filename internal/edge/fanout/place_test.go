package fanout_test

import (
	"context"
	"io"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/internal/edge/fanout"
)

// scripted is a watch that brings what is sent to it.
type scripted struct {
	events chan fanout.Event[int]
	stop   func()
	ended  <-chan struct{}
}

func newScripted() *scripted {
	ctx, stop := context.WithCancel(context.Background())
	return &scripted{events: make(chan fanout.Event[int], 10), stop: sync.OnceFunc(stop), ended: ctx.Done()}
}

func (s *scripted) Next() (fanout.Event[int], error) {
	select {
	case e := <-s.events:
		return e, nil
	case <-s.ended:
		return fanout.Event[int]{}, io.EOF
	}
}

func (s *scripted) Stop()  { s.stop() }
func (s *scripted) Close() {}

// tell brings events, whose values are their numbers, and bookmarks of value 0.
func (s *scripted) tell(events ...fanout.Event[int]) {
	for _, e := range events {
		s.events <- e
	}
	synctest.Wait()
}

// take returns the values of all events that there are.
func take(t *testing.T, tap *fanout.Tap[int]) (values []int) {
	t.Helper()
	for {
		e, err := tap.Take()
		if err != nil {
			require.ErrorIs(t, err, fanout.ErrNothing)
			return values
		}
		values = append(values, e.Value)
	}
}

// After versions with an order, one without does not move a watch, or a reader. It is read all the
// same.
func TestVersionWithoutAnOrderMovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, hub := newScripted(), fanout.New[int](fanout.Options{})
		a := hub.Adopt(w, "5")
		w.tell(fanout.Event[int]{Value: 1, ResourceVersion: "7"}, fanout.Event[int]{Value: 2, ResourceVersion: "x"}, fanout.Event[int]{ResourceVersion: "0", Bookmark: true})
		require.Equal(t, []int{1, 2, 0}, take(t, a))
		require.Equal(t, "7", a.ResourceVersion())
		require.Equal(t, "7", hub.ResourceVersion())
		b, err := hub.Follow(t.Context(), "7", nil)
		require.NoError(t, err)
		w.tell(fanout.Event[int]{Value: 3, ResourceVersion: "9"})
		require.Equal(t, []int{3}, take(t, a))
		require.Contains(t, take(t, b), 3)
		require.Equal(t, "9", b.ResourceVersion())
		a.Close()
		b.Close()
		hub.Wait()
	})
}

// A watch from no version gets no place from its events.
func TestWatchFromNoVersionGetsNoPlace(t *testing.T) {
	for _, resourceVersion := range []string{"", "0"} {
		synctest.Test(t, func(t *testing.T) {
			w, hub := newScripted(), fanout.New[int](fanout.Options{})
			tap := hub.Adopt(w, resourceVersion)
			w.tell(fanout.Event[int]{Value: 1, ResourceVersion: "7"}, fanout.Event[int]{ResourceVersion: "8", Bookmark: true})
			require.Equal(t, []int{1, 0}, take(t, tap))
			require.Equal(t, resourceVersion, tap.ResourceVersion())
			require.Empty(t, hub.ResourceVersion())
			_, err := hub.GoOn(t.Context(), tap, nil)
			require.ErrorIs(t, err, fanout.ErrLapsed)
			hub.Wait()
		})
	}
}

// The end of the objects without a version gives a list of several readers no place.
func TestObjectsWithoutAVersionGiveNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, hub := newScripted(), fanout.New[int](fanout.Options{})
		var taps [2]*fanout.Tap[int]
		var asking sync.WaitGroup
		for i := range taps {
			here := hub.Expect()
			asking.Go(func() {
				tap, err := hub.Gather(context.Background(), "all", here, func() fanout.Watch[int] { return w })
				if err == nil {
					taps[i] = tap
				}
			})
		}
		asking.Wait()
		w.tell(fanout.Event[int]{Value: 1, ResourceVersion: "7"}, fanout.Event[int]{ResourceVersion: "0", Bookmark: true, Begins: true}, fanout.Event[int]{Value: 2, ResourceVersion: "8"})
		for _, tap := range taps {
			require.Equal(t, []int{1, 0, 2}, take(t, tap))
			require.Equal(t, "0", tap.ResourceVersion())
		}
		require.Empty(t, hub.ResourceVersion())
		for _, tap := range taps {
			tap.Close()
		}
		hub.Wait()
	})
}
