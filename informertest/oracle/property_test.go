package oracle_test

import (
	"errors"
	"flag"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer/informertest/oracle"
)

// blames is which guarantees a bug may break. One of them at least is to be found
// broken, and no other.
var blames = map[bug][]string{
	loses:        {"reliable", "equal", "bookmarkable", "resumable", "synced"},
	losesDelete:  {"reliable", "equal", "bookmarkable", "resumable", "ordered", "no-false-delete", "synced"},
	repeats:      {"unique"},
	reorders:     {"ordered", "reliable", "bookmarkable", "resumable", "synced", "unique"},
	resurrects:   {"ordered", "reliable", "bookmarkable", "resumable", "unique", "synced"},
	deletes:      {"no-false-delete", "ordered", "reliable", "bookmarkable", "resumable", "unique", "synced"},
	merges:       {"ordered"},
	invents:      {"authentic", "reliable", "ordered", "resumable", "synced", "bookmarkable"},
	mixesUp:      {"authentic", "ordered", "reliable", "resumable", "synced", "bookmarkable", "no-false-delete", "unique"},
	claimsEarly:  {"bookmarkable"},
	savesEarly:   {"resumable", "reliable", "bookmarkable", "equal", "synced", "ordered"},
	jumps:        {"resumable", "reliable", "bookmarkable", "equal", "synced", "ordered", "no-false-delete"},
	mislabels:    {"initial-list"},
	forgetsLabel: {"initial-list"},
	syncsEarly:   {"synced", "initial-list"},
	forgetsSweep: {"reliable", "equal", "resumable", "ordered", "synced", "bookmarkable", "unique"},
	keepsStale:   {"equal"},
	parallel:     {"ordered", "equal", "no-false-delete", "unique", "reliable", "bookmarkable", "resumable", "synced", "initial-list"},
	scatters:     {"ordered"},
	undercounts:  {"memory"},
	overcounts:   {"memory"},
	hammers:      {"paced"},
}

var errFull = errors.New("full")

// drive plays one random history.
func drive(t *rapid.T, b bug) (*oracle.Oracle, *toyInformer) {
	opaque := rapid.Bool().Draw(t, "opaque")
	// Without a clock of the machine: what fails is the same when it is tried again.
	now := time.Unix(0, 0)
	lists := rapid.Bool().Draw(t, "sees lists")
	o := oracle.New(oracle.Options{SeesLists: lists, Now: func() time.Time { now = now.Add(time.Millisecond); return now }})
	s := newToyServer(o, opaque)
	i := newToyInformer(s, b)
	i.listed = lists
	batches := rapid.IntRange(1, 3).Draw(t, "batch")
	key := func() string { return fmt.Sprint("pod-", rapid.IntRange(0, 3).Draw(t, "key")) }
	acts := []func(){
		func() { s.put(key()) },
		func() { s.put(key()) },
		func() { s.remove(key()) },
		func() { k := key(); s.remove(k); s.put(k) },
		s.other,
		i.read, i.read, i.read,
		func() { i.take(batches) },
		func() { i.take(batches) },
		func() { i.finishOne(t, nil) },
		func() { i.finishOne(t, nil) },
		func() { i.finishOne(t, []error{errFull, oracle.ErrPanic}[rapid.IntRange(0, 1).Draw(t, "error")]) },
		i.look, i.status, i.save,
		func() { i.count(false) },
		i.settle,
		func() { i.restart(t) },
		s.save,
		s.restore,
	}
	// A bug may need a history without the last ones.
	acts = acts[:len(acts)-rapid.SampledFrom([]int{0, 2, 3, 4}).Draw(t, "left out")]
	for range rapid.IntRange(0, 3).Draw(t, "before") {
		s.put(key())
	}
	i.start(nil)
	for range rapid.IntRange(5, 120).Draw(t, "acts") {
		acts[rapid.IntRange(0, len(acts)-1).Draw(t, "act")]()
	}
	i.settle()
	return o, i
}

func (i *toyInformer) finishOne(t *rapid.T, err error) {
	if len(i.calls) > 0 {
		i.finish(rapid.IntRange(0, len(i.calls)-1).Draw(t, "call"), err)
	}
}

// restart ends the run in one way, and begins the next in another.
func (i *toyInformer) restart(t *rapid.T) {
	killed := rapid.Bool().Draw(t, "killed")
	i.stop(killed)
	for range rapid.IntRange(0, 3).Draw(t, "meanwhile") {
		i.server.put(fmt.Sprint("pod-", rapid.IntRange(0, 3).Draw(t, "key")))
		i.server.remove(fmt.Sprint("pod-", rapid.IntRange(0, 3).Draw(t, "key")))
	}
	switch how := rapid.IntRange(0, 3).Draw(t, "how"); {
	case how == 0:
		i.start(nil)
	case how == 1 && i.saved != nil: // the version is compacted, or not saved
		listed := *i.saved
		listed.resume = -1
		i.start(&listed)
	default:
		i.start(i.saved)
	}
}

func TestWhatIsRightIsNotBlamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, _ := drive(t, noBug)
		require.NoError(t, o.Check())
	})
}

func TestEveryBugIsFound(t *testing.T) {
	for b, names := range blames {
		t.Run(string(b), func(t *testing.T) {
			shown := false
			seed := flag.Lookup("rapid.seed").Value.String()
			defer func() { require.NoError(t, flag.Set("rapid.seed", seed)) }()
			for round := range 100 { // from one seed on, so that they are the same in each run
				first, err := strconv.ParseUint(seed, 10, 64)
				require.NoError(t, err)
				require.NoError(t, flag.Set("rapid.seed", fmt.Sprint(first+uint64(round)<<32)))
				rapid.Check(t, func(t *rapid.T) {
					o, i := drive(t, b)
					found := guarantees(o.Check())
					if i.shown {
						shown = true
						require.NotEmpty(t, found)
					}
					require.Subset(t, names, found, "%v", o.Check())
				})
				if shown {
					return
				}
			}
			require.Fail(t, "it never had an effect")
		})
	}
}
