package follow

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/mirror/internal/display"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// said is what an outage said.
type said struct{ lines []string }

func (s *said) say(line string) { s.lines = append(s.lines, line) }

// outOfOrder is the handler of a feed that fails with err.
type outOfOrder struct{ err error }

func (h *outOfOrder) OnBatch(context.Context, []informer.Event) error { return h.err }

// newFeedOf is a feed of pods in a cluster.
func newFeedOf(cluster string, to informer.BatchHandler, o *outage) *feed {
	return &feed{target: fleet.Target{Unit: fleet.Unit{Cluster: cluster}, Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}}, to: to, outage: o}
}

func keys(names ...string) (events []informer.Event) {
	for _, name := range names {
		events = append(events, informer.Event{Type: informer.Added, Key: name})
	}
	return events
}

// It is told once that writing fails, once for each other reason, and once that all is written that
// had failed, although some of it succeeds meanwhile.
func TestOutageIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full, broken := errors.New("disk full"), errors.New("disk broken")
		var told said
		o, to := newOutage("store", told.say), &outOfOrder{}
		f := newFeedOf("here", to, o)
		write := func(err error, names ...string) {
			to.err = err
			require.ErrorIs(t, f.OnBatch(t.Context(), keys(names...)), err)
		}
		write(nil, "small")
		write(full, "a", "b")
		write(full, "c")
		write(nil, "small")
		write(broken, "c")
		write(full, "a", "b")
		require.EqualError(t, o.unwritten(), "store: 3 changes are not written, the next start fetches them again: disk full")

		time.Sleep(time.Minute)
		write(nil, "d")
		write(nil, "b", "a")
		require.Len(t, told.lines, 2, "c is missing yet")
		write(nil, "c", "d")
		require.Equal(t, []string{
			"store: cannot write: disk full; the informers wait while it is tried again",
			"store: still cannot write: disk broken",
			"store: writing again, after 1m0s",
		}, told.lines)
		require.NoError(t, o.unwritten())

		write(full, "e")
		require.Len(t, told.lines, 4, "a new outage is told again")
		require.Equal(t, display.Counts{Added: 7}, f.Counts())
	})
}

// Rows of one name in two resources, or two clusters, are not one. What a unit leaves unwritten is
// forgotten.
func TestOutageTellsRowsApart(t *testing.T) {
	var told said
	o, to := newOutage("store", told.say), &outOfOrder{errors.New("disk full")}
	here, there := newFeedOf("here", to, o), newFeedOf("there", to, o)
	require.Error(t, here.OnBatch(t.Context(), keys("a")))
	to.err = nil
	require.NoError(t, there.OnBatch(t.Context(), keys("a")))
	require.ErrorContains(t, o.unwritten(), "1 changes")
	o.forget(func(u fleet.Unit) bool { return u == there.target.Unit })
	require.Error(t, o.unwritten())
	o.forget(func(u fleet.Unit) bool { return u == here.target.Unit })
	require.NoError(t, o.unwritten())
}

// A database that cannot be used is no outage: the run ends with it.
func TestUnusableDatabaseIsNoOutage(t *testing.T) {
	var told said
	o := newOutage("store", told.say)
	f := newFeedOf("here", &outOfOrder{&sqlsink.UnusableError{Reason: "it is damaged", Remedy: "restore it"}}, o)
	require.Error(t, f.OnBatch(t.Context(), keys("a")))
	require.NoError(t, o.unwritten())
	require.Empty(t, told.lines)
}

// stuck is a checkpoint of a database that does not answer.
type stuck struct{ informer.CheckpointStore }

func (stuck) Save(ctx context.Context, _ func(io.Writer) error) error {
	<-ctx.Done()
	return ctx.Err()
}

// A database that does not answer holds up the end of a run for no longer than a last checkpoint
// may take.
func TestLastCheckpointIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told said
		run, cancel := context.WithCancel(t.Context())
		c := newCheckpoint(run, stuck{}, newFeedOf("here", nil, newOutage("store", told.say)), false)
		cancel()
		synctest.Wait()
		began := time.Now()
		keeper, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, c.Save(keeper, nil), context.DeadlineExceeded)
		require.Equal(t, lastWrite, time.Since(began))
		require.Empty(t, told.lines)
	})
}

// A row that comes later is missing until it is written, and is not said to be refused. The others of
// its batch are written.
func TestRowThatComesLaterIsNotRefused(t *testing.T) {
	var told said
	o, to := newOutage("store", told.say), &outOfOrder{}
	f := newFeedOf("here", to, o)
	locked := errors.New("locked")
	to.err = informer.FailedEvents{{Index: 0, Err: locked, Later: true}, {Index: 1, Err: errors.New("too long")}}
	require.Error(t, f.OnBatch(t.Context(), keys("a", "b", "c")))
	require.EqualError(t, o.unwritten(), "store: 1 changes are not written, the next start fetches them again: locked")
	require.EqualValues(t, 1, f.Counts().Handled())
	to.err = nil
	require.NoError(t, f.OnBatch(t.Context(), keys("a")))
	require.NoError(t, o.unwritten())
	require.Len(t, told.lines, 3)
	require.Equal(t, "store: cannot write: locked; the informers wait while it is tried again", told.lines[0])
	require.Contains(t, told.lines[1], "b is refused: too long")
	require.Contains(t, told.lines[2], "store: writing again, after ")
}
