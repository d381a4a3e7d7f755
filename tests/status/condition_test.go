package status_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// requireCondition checks a condition, and that it began within slack of a time.
func requireCondition(t *testing.T, reason informer.ConditionReason, began time.Time, slack time.Duration, c informer.Condition) {
	t.Helper()
	require.Equal(t, reason, c.Reason, "%+v", c)
	require.WithinDuration(t, began, c.Since, slack, "%+v", c)
}

func requests(verbs ...string) informertest.Match { return informertest.Match{Verbs: verbs} }

// A condition has words also where an error has none, and where nothing is wrong.
func TestConditionsAlwaysHaveWords(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		var failing atomic.Bool
		i := harness.Follow(w, informer.InformerConfig{BatchHandler: informer.BatchHandlerFunc(func(context.Context, []informer.Event) error {
			if failing.Load() {
				return errors.New("")
			}
			return nil
		})})
		requireWords := func(reason informer.ConditionReason) {
			t.Helper()
			c := i.Status().Condition
			require.Equal(t, reason, c.Reason)
			require.NotEmpty(t, strings.TrimSpace(c.Message), reason)
		}
		requireWords(informer.ReasonNotStarted)
		stop := harness.Start(i.RunWithContext)
		time.Sleep(time.Minute)
		requireWords(informer.ReasonCurrent)
		failing.Store(true)
		w.CreatePods("a/2")
		time.Sleep(time.Minute)
		requireWords(informer.ReasonHandlerFailing)
		stop()
		requireWords(informer.ReasonStopped)
	})
}

// Each failure of the server holds the informer up before it has synced and after, has one Since
// however often it is tried again, and is over when the server is well.
func TestConditionTellsWhatFailsAtTheServer(t *testing.T) {
	for name, test := range map[string]struct {
		fault  informertest.Fault
		reason informer.ConditionReason
	}{
		"unauthorized":         {informertest.Fault{Effect: informertest.Status(401)}, informer.ReasonUnauthorized},
		"forbidden":            {informertest.Fault{Effect: informertest.Status(403)}, informer.ReasonForbidden},
		"not found":            {informertest.Fault{Effect: informertest.Status(404)}, informer.ReasonNotFound},
		"refused":              {informertest.Fault{Effect: informertest.Refuse()}, informer.ReasonServerUnreachable},
		"reset":                {informertest.Fault{Effect: informertest.Reset()}, informer.ReasonServerUnreachable},
		"internal error":       {informertest.Fault{Effect: informertest.Status(500)}, informer.ReasonFailing},
		"not implemented":      {informertest.Fault{Effect: informertest.Status(501)}, informer.ReasonFailing},
		"bad gateway":          {informertest.Fault{Effect: informertest.Status(502)}, informer.ReasonServerUnreachable},
		"gateway timeout":      {informertest.Fault{Effect: informertest.Status(504)}, informer.ReasonServerUnreachable},
		"unavailable":          {informertest.Fault{Effect: informertest.Status(503)}, informer.ReasonServerUnreachable},
		"throttled":            {informertest.Fault{Effect: informertest.Status(429)}, informer.ReasonThrottled},
		"throttled for long":   {informertest.Fault{Effect: informertest.Status(429).RetryAfter(time.Minute)}, informer.ReasonThrottled},
		"unavailable for long": {informertest.Fault{Effect: informertest.Status(503).RetryAfter(time.Minute)}, informer.ReasonThrottled},
		"bad request":          {informertest.Fault{Effect: informertest.Status(400)}, informer.ReasonFailing},
	} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			i := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}})
			require.Equal(t, informer.Condition{Reason: informer.ReasonNotStarted, Message: "Run was not called"}, i.Status().Condition)
			for round := range 2 {
				heal := w.Inject(test.fault)
				began := time.Now()
				if round == 0 {
					defer harness.Start(i.RunWithContext)()
				} else {
					w.CloseClientConnections()
				}
				time.Sleep(time.Second)
				for range 10 {
					time.Sleep(3 * time.Minute)
					c := i.Status().Condition
					requireCondition(t, test.reason, began, time.Minute, c)
					require.NotEmpty(t, c.Message)
				}
				if round == 0 {
					require.True(t, began.Equal(i.Status().Condition.Since), "the first request has failed at once")
				}
				healed := time.Now()
				heal()
				time.Sleep(5 * time.Minute)
				requireCondition(t, informer.ReasonCurrent, healed, 2*time.Minute, i.Status().Condition)
			}
		})
	}
}

// A server that answers nothing is silent since its last byte.
func TestConditionStalledBeginsWithTheSilence(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		i := harness.Running(w, informer.InformerConfig{Handler: &harness.Recorder{}})
		time.Sleep(10*time.Minute + 10*time.Second)
		requireCondition(t, informer.ReasonCurrent, time.Now(), 11*time.Minute, i.Status().Condition)
		last := i.Status().LastContact
		heal := w.Inject(informertest.Fault{Match: requests("list", "watch", "watch-list", "get"), Effect: informertest.Hang()})
		time.Sleep(time.Minute)
		require.Equal(t, informer.ReasonCurrent, i.Status().Condition.Reason, "a watch may be silent for longer")
		for range 10 {
			time.Sleep(3 * time.Minute)
			requireCondition(t, informer.ReasonStalled, last, 5*time.Second, i.Status().Condition)
		}
		healed := time.Now()
		heal()
		time.Sleep(5 * time.Minute)
		requireCondition(t, informer.ReasonCurrent, healed, 2*time.Minute, i.Status().Condition)
	})
}

// One expired version is everyday; a row of them is a loop, until a watch has lasted.
func TestConditionExpiredLoopIsARow(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		i := harness.Running(w, informer.InformerConfig{Handler: &harness.Recorder{}})
		time.Sleep(10 * time.Minute)
		for range 5 {
			w.Inject(informertest.Fault{Match: requests("watch"), Effect: informertest.ErrorEvent(410), Times: 1})
			time.Sleep(10 * time.Second)
			require.Equal(t, informer.ReasonCurrent, i.Status().Condition.Reason, "%+v", i.Status().Condition)
			time.Sleep(10 * time.Minute)
		}
		began := time.Now()
		heal := w.Inject(informertest.Fault{Match: requests("watch"), Effect: informertest.ErrorEvent(410)})
		time.Sleep(time.Minute)
		for range 100 {
			time.Sleep(13 * time.Second)
			requireCondition(t, informer.ReasonExpiredLoop, began, time.Second, i.Status().Condition)
		}
		heal()
		time.Sleep(5 * time.Minute)
		requireCondition(t, informer.ReasonCurrent, time.Now().Add(-4*time.Minute), time.Minute, i.Status().Condition)
	})
}

// A handler that fails for one object goes on failing while it takes others, until it has taken
// that one.
func TestConditionHandlerFailingLastsUntilAllIsTaken(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		var full atomic.Bool
		full.Store(true)
		i := harness.Running(w, informer.InformerConfig{MaxBatch: 1, BatchHandler: informer.BatchHandlerFunc(func(_ context.Context, events []informer.Event) error {
			if full.Load() && events[0].Key == "a/bad" {
				return errors.New("full")
			}
			return nil
		})})
		time.Sleep(time.Minute)
		began := time.Now()
		w.CreatePods("a/bad")
		for range 20 {
			w.CreatePods(harness.Keys(1)...)
			time.Sleep(17 * time.Second)
			requireCondition(t, informer.ReasonHandlerFailing, began, time.Second, i.Status().Condition)
			require.Contains(t, i.Status().Condition.Message, "full")
			w.DeletePods(harness.Keys(1)...)
		}
		full.Store(false)
		healed := time.Now()
		time.Sleep(2 * time.Minute)
		// The handler is called again within 30 s, and the end of the condition is seen within 30 s
		// of that where no status is asked for.
		requireCondition(t, informer.ReasonCurrent, healed, 61*time.Second, i.Status().Condition)
	})
}

// A handler that takes its time is slow since the change came that it takes too long for, and one
// that is busy is not.
func TestConditionHandlerSlowBeginsWithTheChangeThatWaits(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		var takes atomic.Int64
		before := func(string) { time.Sleep(time.Duration(takes.Load())) }
		log := newLogbook()
		shared := harness.Share(w, informer.InformerConfig{})
		i, err := shared.AddHandler(informer.HandlerConfig{Handler: &harness.Recorder{Before: before}})
		require.NoError(t, err)
		fast := harness.AddHandler(t, shared, &harness.Recorder{})
		defer harness.Start(func(ctx context.Context) { shared.RunWithContext(klog.NewContext(ctx, log.Logger)) })()
		time.Sleep(time.Minute)
		takes.Store(int64(5 * time.Second))
		for range 10 {
			w.CreatePods(fmt.Sprint("a/", time.Now().Unix()))
			time.Sleep(6 * time.Second)
			require.Equal(t, informer.ReasonCurrent, i.Status().Condition.Reason, "it is behind by less than ten seconds")
		}
		takes.Store(int64(time.Hour))
		began := time.Now()
		w.CreatePods("a/slow")
		for range 9 {
			time.Sleep(time.Second)
			require.Equal(t, informer.ReasonCurrent, i.Status().Condition.Reason)
		}
		time.Sleep(2 * time.Second)
		for range 58 {
			requireCondition(t, informer.ReasonHandlerSlow, began, time.Second, i.Status().Condition)
			requireCondition(t, informer.ReasonHandlerSlow, began, time.Second, shared.Status().Condition)
			require.Equal(t, informer.ReasonCurrent, fast.Status().Condition.Reason)
			time.Sleep(time.Minute)
		}
		time.Sleep(10 * time.Minute)
		requireCondition(t, informer.ReasonCurrent, began.Add(time.Hour), time.Minute, i.Status().Condition)
		entries := log.entries()
		require.Len(t, entries, 2, "%v", entries)
		require.Equal(t, "HandlerSlow", entries[0].values["reason"])
		require.Regexp(t, "^1h0m", entries[1].values["lasted"])
		require.Equal(t, i.Name(), entries[1].values["informer"])
	})
}

// A list says how far it has come, and how fast.
func TestConditionListingTellsThePace(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(1000)...)
		w.Inject(informertest.Fault{Match: requests("list"), Effect: informertest.Slow(20_000)})
		i := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}, WatchListPageSize: 100})
		began := time.Now()
		defer harness.Start(i.RunWithContext)()
		time.Sleep(5 * time.Second)
		c := i.Status().Condition
		requireCondition(t, informer.ReasonListing, began, 0, c)
		require.Regexp(t, `^[1-9]\d* objects, 0\.\d MB read in 5s: [1-9]\d* objects/s, 0\.0 MB/s$`, c.Message)
		for !i.HasSynced() {
			requireCondition(t, informer.ReasonListing, began, 0, i.Status().Condition)
			time.Sleep(time.Second)
		}
		requireCondition(t, informer.ReasonCurrent, time.Now(), time.Second, i.Status().Condition)
	})
}

// A checkpoint that cannot be saved, and an object that cannot be read, are told as long as nothing
// else holds the informer up.
func TestConditionTellsWhatLasts(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		w.Inject(informertest.Fault{Match: requests("list"), Effect: informertest.Garbage(2), Times: 1})
		var full atomic.Bool
		s := &harness.MemoryCheckpoint{OnSave: func(context.Context, int) error {
			if full.Load() {
				return errors.New("the disk is full")
			}
			return nil
		}}
		i := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}, Checkpoint: s})
		began := time.Now()
		stop := harness.Start(i.RunWithContext)
		time.Sleep(time.Hour)
		requireCondition(t, informer.ReasonUndecodableObjects, began, time.Second, i.Status().Condition)

		full.Store(true)
		w.CreatePods("a/new")
		saved := time.Now()
		time.Sleep(30 * time.Minute)
		requireCondition(t, informer.ReasonCheckpointFailing, saved, 2*time.Minute, i.Status().Condition)
		require.Contains(t, i.Status().Condition.Message, "the disk is full")

		heal := w.Inject(informertest.Fault{Effect: informertest.Status(403)})
		w.CloseClientConnections()
		time.Sleep(5 * time.Minute)
		require.Equal(t, informer.ReasonForbidden, i.Status().Condition.Reason)
		heal()
		time.Sleep(5 * time.Minute)
		requireCondition(t, informer.ReasonCheckpointFailing, saved, 2*time.Minute, i.Status().Condition)
		full.Store(false)
		time.Sleep(5 * time.Minute)
		requireCondition(t, informer.ReasonUndecodableObjects, began, time.Second, i.Status().Condition)

		healed := time.Now()
		w.Inject(informertest.Fault{Match: requests("watch"), Effect: informertest.ErrorEvent(410), Times: 1})
		time.Sleep(5 * time.Minute)
		requireCondition(t, informer.ReasonCurrent, healed, 2*time.Minute, i.Status().Condition)
		stopped := time.Now()
		stop()
		requireCondition(t, informer.ReasonStopped, stopped, 0, i.Status().Condition)

		defer harness.Start(i.RunWithContext)()
		time.Sleep(time.Minute)
		requireCondition(t, informer.ReasonCurrent, stopped, 3*time.Second, i.Status().Condition)
	})
}

// A checkpoint that another informer uses keeps one from starting.
func TestConditionOfACheckpointInUse(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		path := informer.FileCheckpoint(filepath.Join(t.TempDir(), "pods"))
		other := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}, Checkpoint: path})
		i := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}, Checkpoint: path})
		stop := harness.Start(other.RunWithContext)
		time.Sleep(time.Minute)
		began := time.Now()
		defer harness.Start(i.RunWithContext)()
		time.Sleep(10 * time.Minute)
		requireCondition(t, informer.ReasonCheckpointFailing, began, time.Second, i.Status().Condition)
		stop()
		time.Sleep(time.Minute)
		require.Equal(t, informer.ReasonCurrent, i.Status().Condition.Reason, "%+v", i.Status().Condition)
	})
}

// Reading that waits for a Budget which others have used up says so, and one that waits for its own
// handler does not.
func TestConditionBudgetFullIsForWhoStarves(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		budget := informer.NewBudget(4 << 10)
		w.CreatePods(harness.Keys(100)...)
		gate := make(chan struct{})
		hog := harness.Follow(w, informer.InformerConfig{Budget: budget, Handler: &harness.Recorder{Before: func(string) { <-gate }}})
		stop := harness.Start(hog.RunWithContext)
		time.Sleep(time.Minute)
		poor := harness.Follow(w, informer.InformerConfig{Budget: budget, MaxBatch: 1, BatchHandler: informer.BatchHandlerFunc(func(context.Context, []informer.Event) error {
			time.Sleep(5 * time.Second)
			return nil
		})})
		began := time.Now()
		defer harness.Start(poor.RunWithContext)()
		time.Sleep(3 * time.Second)
		requireCondition(t, informer.ReasonBudgetFull, began, time.Second, poor.Status().Condition)
		close(gate)
		time.Sleep(20 * time.Minute)
		require.Equal(t, informer.ReasonCurrent, poor.Status().Condition.Reason, "%+v", poor.Status().Condition)
		stop()
	})
}

// The page for operators has each reason, in the order of precedence, which is that of the
// constants.
func TestConditionsAreDocumentedInTheirOrder(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../api/condition.go", nil, 0)
	require.NoError(t, err)
	var constants []string
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			constants = append(constants, strings.TrimPrefix(spec.Names[0].Name, "Reason"))
		}
		return true
	})
	page, err := os.ReadFile("../../docs/status.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## Conditions\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|[^|]+\\|[^|]+\\|$").FindAllStringSubmatch(section, -1) {
		documented = append(documented, row[1])
	}
	require.Equal(t, constants, documented)
	require.Len(t, constants, 20)
	require.EqualValues(t, "NotStarted", informer.ReasonNotStarted)
}

// A server that is back is not said to be away while a long first list is read: what holds the
// informer up then is its handler.
func TestConditionOfAServerThatIsBackWhileItsListIsDelivered(t *testing.T) {
	for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeFull, informer.ListModeWatchList} {
		harness.BubbleRun(t, mode.String(), informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(100)...)
			heal := w.Inject(informertest.Fault{Effect: informertest.Refuse()})
			i := harness.Running(w, informer.InformerConfig{
				ListMode: mode, WatchListPageSize: 10, Workers: 1, Budget: informer.NewBudget(1), // so that reading waits for the handler
				Handler: &harness.Recorder{Before: func(string) { time.Sleep(time.Minute) }},
			})
			time.Sleep(10 * time.Minute)
			require.Equal(t, informer.ReasonServerUnreachable, i.Status().Condition.Reason)
			heal()
			time.Sleep(2 * time.Minute)
			for range 30 {
				time.Sleep(time.Minute)
				s := i.Status()
				require.False(t, s.Listed, "the list is under way")
				require.Contains(t, []informer.ConditionReason{informer.ReasonHandlerSlow, informer.ReasonListing}, s.Condition.Reason, s.Condition.Message)
				require.NoError(t, s.LastError)
			}
			require.Equal(t, informer.ReasonHandlerSlow, i.Status().Condition.Reason)
		})
	}
}
