package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/informertest"
)

// logbook keeps what a fleet logs at a verbosity.
type logbook struct{ klog.Logger }

func newLogbook(verbosity int) logbook {
	return logbook{ktesting.NewLogger(ktesting.NopTL{}, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(verbosity)))}
}

// run returns a function that runs a fleet with the logger.
func (l logbook) run(f *fleet.Fleet) func(context.Context) {
	return func(ctx context.Context) { f.Run(klog.NewContext(ctx, l.Logger)) }
}

// follow runs a fleet with the logger, until the test ends or stop is called. It follows one cluster,
// "east", into a mirror.
func (l logbook) follow(t *testing.T, m *mirror, east *informertest.Server) (f *fleet.Fleet, stop func()) {
	t.Helper()
	f = newFleet(t, m, fleet.Config{})
	require.NoError(t, f.Add("east", east.Config()))
	return f, start(t, l.run(f))
}

// logged is a line of the log, with its values by name.
type logged struct {
	text   string
	values map[string]string
}

// lines are those that were logged, or only those with a text.
func (l logbook) lines(text ...string) (all []logged) {
	for _, entry := range l.GetSink().(ktesting.Underlier).GetBuffer().Data() {
		if len(text) > 0 && entry.Message != text[0] {
			continue
		}
		line := logged{entry.Message, map[string]string{}}
		for i := 0; i+1 < len(entry.ParameterKVList); i += 2 {
			line.values[fmt.Sprint(entry.ParameterKVList[i])] = fmt.Sprint(entry.ParameterKVList[i+1])
		}
		all = append(all, line)
	}
	return all
}

// requireAfter returns what was logged after the first n lines: lines with these texts.
func (l logbook) requireAfter(t *testing.T, n int, texts ...string) []logged {
	t.Helper()
	lines := l.lines()
	require.Len(t, lines, n+len(texts), "%v", lines)
	lines = lines[n:]
	for i, text := range texts {
		require.Equal(t, text, lines[i].text)
	}
	return lines
}

// The lines of the log that are of a fleet.
const (
	heldUp   = "Cluster is held up"
	goesOn   = "Cluster goes on"
	isSynced = "Cluster is synced"
	isLeft   = "Cluster is not followed any more"
)

func TestDeadClusterIsLoggedOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		east := serve(t, informertest.Options{})
		revive := east.Inject(informertest.Fault{Effect: informertest.Refuse()})
		log := newLogbook(0)
		f, _ := log.follow(t, newMirror(), east)
		time.Sleep(time.Hour)
		lines := log.requireAfter(t, 0, heldUp)
		require.Equal(t, "east", lines[0].values["cluster"])
		require.Equal(t, "ServerUnreachable", lines[0].values["reason"])
		require.Contains(t, lines[0].values["informer"], "discovery")
		require.NotEmpty(t, lines[0].values["message"])

		revive()
		require.NoError(t, f.WaitForSync(t.Context()))
		time.Sleep(time.Minute)
		lines = log.requireAfter(t, 1, goesOn, isSynced)
		require.Equal(t, "ServerUnreachable", lines[0].values["was"])
		lasted, err := time.ParseDuration(lines[0].values["lasted"])
		require.NoError(t, err)
		require.InDelta(t, time.Hour, lasted, float64(2*time.Minute))
	})
}

func TestSyncedClusterIsOneLine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		east := serve(t, informertest.Options{})
		create(t, east, pods, "a", "b")
		create(t, east, deployments, "c")
		log, detailed := newLogbook(0), newLogbook(2)
		for _, l := range []logbook{log, detailed} {
			f, _ := l.follow(t, newMirror(), east)
			require.NoError(t, f.WaitForSync(t.Context()))
		}
		time.Sleep(time.Minute)
		lines := log.requireAfter(t, 0, isSynced)
		require.Equal(t, "3", lines[0].values["resources"])
		require.Equal(t, "3", lines[0].values["objects"])
		require.Len(t, detailed.lines("Informer is synced"), 3)
	})
}

// While the server is away, what informers and discovery say of it is one line.
func TestLostClusterIsLoggedOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		east := serve(t, informertest.Options{})
		log := newLogbook(0)
		f, _ := log.follow(t, newMirror(), east)
		require.NoError(t, f.WaitForSync(t.Context()))
		time.Sleep(time.Minute)
		revive := east.Inject(informertest.Fault{Effect: informertest.Refuse()})
		east.CloseClientConnections()
		time.Sleep(time.Hour)
		lines := log.requireAfter(t, 1, heldUp)
		require.Equal(t, "ServerUnreachable", lines[0].values["reason"])
		revive()
		time.Sleep(10 * time.Minute)
		log.requireAfter(t, 2, goesOn)
	})
}

// A reason is logged with the first informer that it holds for, and ends with the last one.
func TestEachReasonIsLoggedOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var refused atomic.Bool
		refused.Store(true)
		east := serve(t, informertest.Options{Wrap: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if refused.Load() && (strings.HasSuffix(r.URL.Path, "/pods") || strings.HasSuffix(r.URL.Path, "/deployments")) {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusForbidden)
					fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no","code":403}`)
					return
				}
				next.ServeHTTP(w, r)
			})
		}})
		create(t, east, widgets, "w")
		log, m := newLogbook(0), newMirror()
		_, stop := log.follow(t, m, east)
		time.Sleep(10 * time.Minute)
		lines := log.requireAfter(t, 0, heldUp)
		require.Equal(t, "Forbidden", lines[0].values["reason"])
		require.Regexp(t, "pods|deployments", lines[0].values["informer"])

		m.stall(errors.New("disk full"))
		create(t, east, widgets, "x")
		time.Sleep(10 * time.Minute)
		lines = log.requireAfter(t, 1, heldUp)
		require.Equal(t, "HandlerFailing", lines[0].values["reason"])
		require.Contains(t, lines[0].values["message"], "disk full")
		require.Contains(t, lines[0].values["informer"], "widgets")

		refused.Store(false)
		time.Sleep(10 * time.Minute)
		lines = log.requireAfter(t, 2, isSynced, goesOn)
		require.Equal(t, "Forbidden", lines[1].values["was"])

		stop()
		lines = log.lines(isLeft)
		require.Len(t, lines, 1, "%v", log.lines())
		require.Equal(t, "HandlerFailing", lines[0].values["was"])
	})
}

func TestFailingConfigureIsLoggedOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		east := serve(t, informertest.Options{})
		log, m := newLogbook(0), newMirror()
		fail := func(err error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.fail = func(fleet.Target) error { return err }
		}
		fail(errors.New("no table"))
		log.follow(t, m, east)
		time.Sleep(time.Hour)
		lines := log.requireAfter(t, 0, heldUp)
		require.Equal(t, "ConfigureFailing", lines[0].values["reason"])
		require.Equal(t, "no table", lines[0].values["message"])
		require.Contains(t, lines[0].values["informer"], "deployments")

		fail(nil)
		time.Sleep(5 * time.Minute)
		lines = log.lines(goesOn)
		require.Len(t, lines, 1, "%v", lines)
		require.Equal(t, "ConfigureFailing", lines[0].values["was"])
		require.Len(t, log.lines(), 3, "and that the cluster is synced")
	})
}
