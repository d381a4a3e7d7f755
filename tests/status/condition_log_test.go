package status_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// logbook is a logger that keeps what is logged.
type logbook struct{ klog.Logger }

func newLogbook() logbook {
	return logbook{ktesting.NewLogger(ktesting.NopTL{}, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(3)))}
}

// entry is a line of a log.
type entry struct {
	at      time.Time
	message string
	values  map[string]string
}

// entries returns the lines but for those of starts.
func (l logbook) entries() []entry {
	return slices.DeleteFunc(l.lines(), func(e entry) bool { return e.message == lineSynced || e.message == lineResumed })
}

func (l logbook) lines() (entries []entry) {
	for _, logged := range l.GetSink().(ktesting.Underlier).GetBuffer().Data() {
		e := entry{at: logged.Timestamp, message: logged.Message, values: map[string]string{}}
		for _, list := range [][]any{logged.WithKVList, logged.ParameterKVList} {
			for i := 0; i+1 < len(list); i += 2 {
				e.values[fmt.Sprint(list[i])] = fmt.Sprint(list[i+1])
			}
		}
		entries = append(entries, e)
	}
	return entries
}

const (
	lineHeldUp = "Informer is held up"
	lineGoesOn = "Informer goes on"
	lineEnds   = "Informer is stopping"
	lineEnded  = "Informer has stopped"

	lineSynced  = "Informer is synced"
	lineResumed = "Informer has resumed"

	lineServerAway   = "Server is away"
	lineServerBack   = "Server is back"
	lineServerUnused = "Server is not waited for any more"
)

// outages returns the outages that were logged, each with its duration, and checks that each has a
// begin and an end.
func (l logbook) outages(t *testing.T) (outages []string) {
	t.Helper()
	reason, away := "", false
	for _, e := range l.entries() {
		switch e.message {
		case lineServerAway:
			require.False(t, away, "%+v", e)
			require.NotEmpty(t, e.values["message"])
			require.NotEmpty(t, e.values["since"])
			away = true
			continue
		case lineServerBack, lineServerUnused:
			require.True(t, away, "%+v", e)
			outages = append(outages, "Server "+e.values["lasted"])
			away = false
			continue
		case lineEnds:
			continue
		}
		require.Equal(t, "pods", e.values["informer"], "%+v", e)
		require.Equal(t, reason, e.values["was"], "%+v", e)
		if reason != "" {
			outages = append(outages, reason+" "+e.values["lasted"])
		}
		switch reason = ""; e.message {
		case lineHeldUp:
			reason = e.values["reason"]
			require.NotEmpty(t, e.values["message"])
			since, err := time.Parse(time.RFC3339, e.values["since"])
			require.NoError(t, err)
			require.WithinDuration(t, e.at, since, 6*time.Minute) // a line may have to wait for five
		case lineGoesOn, lineEnded:
		default:
			t.Errorf("unexpected line %+v", e)
		}
	}
	require.Empty(t, reason, "an outage has no end")
	require.False(t, away, "an outage of the server has no end")
	return outages
}

// A start that is well is one line, also where it resumes.
func TestHealthyStartIsOneLine(t *testing.T) {
	for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeWatchList} {
		harness.BubbleRun(t, fmt.Sprint(mode), informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(40)...)
			checkpoint, log := &harness.MemoryCheckpoint{}, newLogbook()
			for range 2 {
				i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
					ListerWatcher: w.Lister(), ListMode: mode, Checkpoint: checkpoint,
					Handler: informer.ResourceEventHandlerFuncs{AddFunc: func(interface{}) { time.Sleep(100 * time.Millisecond) }},
				})
				stop := harness.Start(func(ctx context.Context) { i.RunWithContext(klog.NewContext(ctx, log.Logger)) })
				time.Sleep(time.Hour)
				stop()
			}
			lines := log.lines()
			require.Len(t, lines, 2)
			require.Equal(t, lineSynced, lines[0].message)
			require.Equal(t, map[string]string{"informer": "pods", "objects": "40", "took": "4s"}, lines[0].values)
			require.Equal(t, lineResumed, lines[1].message)
			require.Equal(t, map[string]string{"informer": "pods", "from": "41"}, lines[1].values)
		})
	}
}

// A run that ends as soon as it has synced has its line, too.
func TestShortRunIsOneLine(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		log := newLogbook()
		ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), log.Logger))
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: w.Lister(), Handler: &harness.Recorder{}})
		go func() {
			<-i.HasSyncedChecker().Done()
			cancel()
		}()
		i.RunWithContext(ctx)
		require.Len(t, log.lines(), 1)
		require.Equal(t, lineSynced, log.lines()[0].message)
	})
}

// A handler that blocks is logged 15 seconds after its call at the latest.
func TestBlockedHandlerIsLoggedAfterFifteenSeconds(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		log, release := newLogbook(), make(chan struct{})
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: w.Lister(), ListMode: informer.ListModePaged,
			Handler: informer.ResourceEventHandlerFuncs{AddFunc: func(interface{}) { <-release }},
		})
		defer harness.Start(func(ctx context.Context) { i.RunWithContext(klog.NewContext(ctx, log.Logger)) })()
		defer close(release)
		time.Sleep(time.Hour)
		w.CreatePods("a/1")
		time.Sleep(15 * time.Second)
		require.Len(t, log.entries(), 1)
		require.Equal(t, "HandlerSlow", log.entries()[0].values["reason"])
	})
}

// A day of outages is a line for the begin and one for the end of each, and none for what is tried
// again.
func TestDayOfOutagesIsAFewLines(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(50)...)
		var handlerFails atomic.Bool
		var handlerTakes atomic.Int64
		log := newLogbook()
		defer klog.CaptureState().Restore()
		klog.SetLogger(log.Logger) // what goes past the logger of the context counts too
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: w.Lister(), ListMode: informer.ListModePaged,
			BatchHandler: informer.BatchHandlerFunc(func(context.Context, []informer.Event) error {
				time.Sleep(time.Duration(handlerTakes.Load()))
				if handlerFails.Load() {
					return errors.New("full")
				}
				return nil
			}),
		})
		defer harness.Start(func(ctx context.Context) { i.RunWithContext(klog.NewContext(ctx, log.Logger)) })()

		outage := func(d time.Duration, f informertest.Fault) {
			heal := w.Inject(f)
			w.CloseClientConnections()
			time.Sleep(d)
			heal()
			time.Sleep(time.Hour)
		}
		time.Sleep(time.Hour)
		require.Empty(t, log.entries())
		outage(4*time.Hour, informertest.Fault{Effect: informertest.Refuse()})
		require.Len(t, log.entries(), 2)
		outage(2*time.Hour, informertest.Fault{Effect: informertest.Status(403)})
		outage(time.Hour, informertest.Fault{Match: requests("watch"), Effect: informertest.ErrorEvent(410)})
		outage(time.Hour, informertest.Fault{Effect: informertest.Status(429)})
		outage(time.Second, informertest.Fault{Effect: informertest.Status(503)}) // too short to be told

		handlerFails.Store(true)
		w.UpdatePod(harness.Keys(1)[0], "again")
		time.Sleep(3 * time.Hour)
		handlerFails.Store(false)
		time.Sleep(time.Hour)

		outages := log.outages(t)
		require.Len(t, outages, 5, "%v", outages)
		for n, want := range []string{"Server 4h0m0s", "Forbidden 2h0m0s", "ExpiredLoop 1h0m0s", "Throttled 1h0m0s", "HandlerFailing 3h0m0s"} {
			reason, lasted, _ := strings.Cut(outages[n], " ")
			about, err := time.ParseDuration(lasted)
			require.NoError(t, err)
			require.Equal(t, want, reason+" "+about.Round(10*time.Minute).String())
		}
		require.Len(t, log.entries(), 10)

		// The server flaps: quickly, and slowly.
		before := len(log.entries())
		for range 1800 {
			heal := w.Inject(informertest.Fault{Effect: informertest.Refuse()})
			time.Sleep(time.Second)
			heal()
			time.Sleep(time.Second)
		}
		time.Sleep(time.Hour)
		require.LessOrEqual(t, len(log.entries())-before, 4)
		log.outages(t)

		before = len(log.entries())
		for range 8 * 60 {
			heal := w.Inject(informertest.Fault{Effect: informertest.Refuse()})
			time.Sleep(30 * time.Second)
			heal()
			time.Sleep(30 * time.Second)
		}
		time.Sleep(time.Hour)
		require.LessOrEqual(t, len(log.entries())-before, 20+9*12, "480 outages")
		require.GreaterOrEqual(t, len(log.entries())-before, 20)
		log.outages(t)
	})
}

// A condition ends when its informer is stopped.
func TestOutageThatAnInformerIsStoppedInHasAnEnd(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		log := newLogbook()
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: w.Lister(), Handler: &harness.Recorder{}})
		w.Inject(informertest.Fault{Effect: informertest.Status(401)})
		ctx, cancel := context.WithTimeout(klog.NewContext(context.Background(), log.Logger), 2*time.Hour)
		defer cancel()
		i.RunWithContext(ctx)
		require.Equal(t, []string{"Unauthorized 2h0m0s"}, log.outages(t))
		require.Equal(t, lineEnded, log.entries()[1].message)
	})
}

// The outage of a server is one line at its begin and one at its end, however many informers it
// has. An informer that something else holds up has lines of its own.
func TestOutageOfServerIsTwoLines(t *testing.T) {
	var forbidden atomic.Bool
	refuses := harness.Before(func(rw http.ResponseWriter, r *http.Request) bool {
		if forbidden.Load() && strings.HasSuffix(r.URL.Path, "/widgets") {
			harness.FailWith(rw, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
			return false
		}
		return true
	})
	harness.Bubble(t, informertest.Options{TLS: true, Wrap: refuses}, func(t *testing.T, w *harness.World) {
		log := newLogbook()
		factory := w.Factory()
		ctx, stop := context.WithCancel(klog.NewContext(t.Context(), log.Logger))
		var running sync.WaitGroup
		for n := range 30 {
			resource := harness.Pods
			if n == 0 {
				resource = harness.Widgets
			}
			i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: factory.ForResource("", resource), Handler: &harness.Recorder{}})
			running.Go(func() { i.RunWithContext(ctx) })
		}
		time.Sleep(time.Minute)
		outage := func(lasts time.Duration) {
			heal := w.Inject(informertest.Fault{Effect: informertest.Refuse()})
			time.Sleep(lasts)
			heal()
			time.Sleep(10 * time.Minute)
		}
		for n, lasts := range []time.Duration{time.Minute, 10 * time.Second, time.Hour} {
			outage(lasts)
			entries := log.entries()
			require.Len(t, entries, 2*(n+1))
			require.Equal(t, lineServerAway, entries[2*n].message)
			require.Equal(t, "30", entries[2*n].values["informers"])
			require.Equal(t, w.Config().Host, entries[2*n].values["server"])
			require.Contains(t, entries[2*n+1].values["lasted"], strings.TrimSuffix(lasts.String(), "0s"))
		}
		outage(2 * time.Second)
		require.Len(t, log.entries(), 6, "it was too short to be told")

		forbidden.Store(true) // until after the outage
		outage(time.Minute)
		require.Len(t, log.entries(), 9)
		require.Equal(t, lineHeldUp, log.entries()[8].message)
		require.Equal(t, "Forbidden", log.entries()[8].values["reason"])
		forbidden.Store(false)
		time.Sleep(10 * time.Minute)
		require.Len(t, log.entries(), 10)

		heal := w.Inject(informertest.Fault{Effect: informertest.Refuse()})
		defer heal()
		time.Sleep(time.Minute)
		stop()
		running.Wait()
		require.Len(t, log.entries(), 12)
		require.Equal(t, lineServerUnused, log.entries()[11].message)
	})
}

// slowLog is a log that takes a second for each line.
type slowLog struct{ lines atomic.Int64 }

func (*slowLog) Helper() {}

func (l *slowLog) Log(...any) {
	time.Sleep(time.Second)
	l.lines.Add(1)
}

// Run returns after the last line is logged, also where nothing is left to look at: a program may
// change its logger then.
func TestRunReturnsAfterItsLastLine(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		log := &slowLog{}
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), ktesting.NewLogger(log, ktesting.NewConfig())))
		defer cancel()
		i := harness.Follow(w, informer.InformerConfig{Handler: &harness.Recorder{}})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			i.RunWithContext(ctx)
		}()
		synctest.Wait()
		require.True(t, i.HasSynced())
		require.Zero(t, log.lines.Load(), "the line is being logged")
		cancel()
		<-ended
		require.EqualValues(t, 1, log.lines.Load())
	})
}
