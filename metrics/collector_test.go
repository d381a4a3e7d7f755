package metrics_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/metrics"
	"github.com/rvinformer/informer/tests/harness"
)

// state is an informer that is as it says.
type state informer.Status

func (s state) Status() informer.Status { return informer.Status(s) }

var busy = state{
	Synced: true, ResourceVersion: "1234567890123456789", Objects: 7, Queued: 3, QueuedBytes: 1000, Skipped: 2, Stale: 4, DeadLetters: 5,
	LastContact: time.Now(), Checkpoint: "file", CheckpointTime: time.Now(),
	Condition:   informer.Condition{Reason: informer.ReasonHandlerSlow},
	CurrentAsOf: time.Now().Add(-5 * time.Minute), OldestQueued: time.Now().Add(-10 * time.Minute),
	LastAudit: &informer.AuditResult{Time: time.Now(), Took: time.Minute, Missing: 1, Stale: 2, Superfluous: 3, Repaired: 4},
	Counts: informer.Counts{
		Lists:   informer.ListCounts{Initial: 1, Expired: 2, Restored: 3, Lost: 4, Failed: 5},
		Watches: informer.WatchCounts{Listed: 1, Resumed: 2, Ended: 3, Failed: 4},
		Events:  informer.EventCounts{Added: 1, Modified: 2, Deleted: 3, Bookmarks: 4},
		Listed:  9, ReceivedBytes: 12345,
		Restores: 1, Unselected: 6, HandlerCalls: 8, HandlerFailures: 1, StoredBytes: 500, TimeToSync: 2 * time.Second,
		CheckpointSaves: 2, CheckpointDuration: time.Second,
	},
}

// gathered is the value of each series, by name and labels. That of a histogram is its count.
func gathered(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(c))
	families, err := registry.Gather()
	require.NoError(t, err)
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			all[f.GetName()+"{"+strings.Join(labels, ",")+"}"] = valueOf(m)
		}
	}
	return all
}

func valueOf(m *dto.Metric) float64 {
	switch {
	case m.Gauge != nil:
		return m.Gauge.GetValue()
	case m.Counter != nil:
		return m.Counter.GetValue()
	}
	return float64(m.Histogram.GetSampleCount())
}

var podLabels = metrics.Labels{Cluster: "east", Version: "v1", Resource: "pods", Informer: "mirror"}

func TestMetricsPassPromtool(t *testing.T) {
	c := metrics.NewCollector()
	c.Add(podLabels, busy)
	runPods(t, c)
	problems, err := testutil.CollectAndLint(c)
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestStatusIsShown(t *testing.T) {
	c := metrics.NewCollector()
	remove := c.Add(podLabels, busy)
	all := gathered(t, c)
	const labels = "cluster=east,group=,informer=mirror,resource=pods,version=v1}"
	for name, want := range map[string]float64{
		"objects": 7, "queued_items": 3, "queued_bytes": 1000, "skipped_items_total": 2, "stale_events_total": 4, "dead_letters": 5, "synced": 1,
		"stored_bytes": 500, "restores_total": 1, "unselected_objects_total": 6, "handler_calls_total": 8, "handler_failures_total": 1, "time_to_sync_seconds": 2,
		"checkpoint_duration_seconds": 1, "checkpoint_saves_total": 2, "listed_objects_total": 9, "received_bytes_total": 12345,
		"audit_duration_seconds": 60, "audit_repaired_objects": 4, "audit_complete": 1, "store_resource_version": 567890123456789,
	} {
		require.Contains(t, all, "rvinformer_"+name+"{"+labels)
		require.InDelta(t, want, all["rvinformer_"+name+"{"+labels], 0, name)
	}
	for name, want := range map[string]float64{
		"lists_total{cluster=east,group=,informer=mirror,reason=lost,resource=pods,version=v1}":          4,
		"watches_total{cluster=east,group=,informer=mirror,reason=ended,resource=pods,version=v1}":       3,
		"watch_events_total{cluster=east,group=,informer=mirror,resource=pods,type=deleted,version=v1}":  3,
		"watch_events_total{cluster=east,group=,informer=mirror,resource=pods,type=bookmark,version=v1}": 4,
		"audit_differences{cluster=east,group=,informer=mirror,kind=stale,resource=pods,version=v1}":     2,
		"condition{cluster=east,group=,informer=mirror,reason=HandlerSlow,resource=pods,version=v1}":     1,
		"budget_limit_bytes{budget=default}": 16 << 20,
	} {
		require.InDelta(t, want, all["rvinformer_"+name], 0, name)
	}
	require.Less(t, all["rvinformer_checkpoint_age_seconds{"+labels], 60.0)
	require.InDelta(t, 300, all["rvinformer_current_age_seconds{"+labels], 60)
	require.InDelta(t, 600, all["rvinformer_oldest_queued_change_age_seconds{"+labels], 60)

	remove()
	remove()
	for name := range gathered(t, c) {
		require.NotContains(t, name, "pods")
	}
}

func TestInformersWithEqualLabelsAreOne(t *testing.T) {
	c := metrics.NewCollector()
	c.Add(podLabels, busy)
	behind := busy
	behind.Synced, behind.ResourceVersion, behind.CheckpointTime = false, "17", time.Now().Add(-time.Hour)
	behind.Condition.Reason = informer.ReasonForbidden
	c.Add(podLabels, behind)
	c.Add(podLabels, busy)
	c.Add(podLabels, state{})
	all := gathered(t, c)
	const labels = "{cluster=east,group=,informer=mirror,resource=pods,version=v1}"
	for name, of := range map[string]float64{"objects": 7, "queued_items": 3, "queued_bytes": 1000, "skipped_items_total": 2, "stale_events_total": 4, "dead_letters": 5} {
		require.InDelta(t, 3*of, all["rvinformer_"+name+labels], 0, name)
	}
	require.InDelta(t, 2, all["rvinformer_condition{cluster=east,group=,informer=mirror,reason=HandlerSlow,resource=pods,version=v1}"], 0)
	require.InDelta(t, 1, all["rvinformer_condition{cluster=east,group=,informer=mirror,reason=Forbidden,resource=pods,version=v1}"], 0)
	require.InDelta(t, 9, all["rvinformer_audit_differences{cluster=east,group=,informer=mirror,kind=superfluous,resource=pods,version=v1}"], 0)
	require.InDelta(t, 24, all["rvinformer_handler_calls_total"+labels], 0)
	require.InDelta(t, 0, all["rvinformer_synced"+labels], 0)
	require.InDelta(t, 3600, all["rvinformer_checkpoint_age_seconds"+labels], 60)
	require.InDelta(t, 600, all["rvinformer_oldest_queued_change_age_seconds"+labels], 60)
	require.NotContains(t, all, "rvinformer_current_age_seconds"+labels, "one of them has none")
	require.NotContains(t, all, "rvinformer_store_resource_version"+labels, "one of them has none")
	require.NotContains(t, all, "rvinformer_time_to_sync_seconds"+labels, "one of them is not synced")
}

// A standby that was not started, and a former leader that has ended, have no ages, and take none
// from an informer beside them that runs.
func TestOnlyInformersThatRunHaveAges(t *testing.T) {
	running := busy
	running.AuditEvery, running.LastAudited = time.Hour, time.Now().Add(-time.Minute)
	stopped := running
	stopped.Synced, stopped.CheckpointTime, stopped.LastContact = false, time.Now().Add(-time.Hour), time.Now().Add(-time.Hour)
	stopped.LastAudited = stopped.LastContact
	stopped.Condition = informer.Condition{Reason: informer.ReasonStopped, Since: time.Now()}
	standby := state{Condition: informer.Condition{Reason: informer.ReasonNotStarted}}
	starting := standby
	starting.Condition.Since = time.Now()
	ages := []string{"checkpoint_age", "contact_age", "current_age", "unaudited", "audit_interval"}
	series := func(name string) string {
		return "rvinformer_" + name + "{cluster=,group=,informer=,resource=,version=}"
	}
	for _, states := range [][]state{{running, stopped, standby}, {stopped, standby, running}} {
		c := metrics.NewCollector()
		for _, s := range states {
			c.Add(metrics.Labels{}, s)
		}
		all := gathered(t, c)
		require.InDelta(t, 1, all[series("running")], 0, "%v", all)
		require.InDelta(t, 1, all[series("synced")], 0)
		for _, age := range ages[:2] {
			require.Contains(t, all, series(age+"_seconds"))
			require.Less(t, all[series(age+"_seconds")], 1800.0)
		}
		require.InDelta(t, 60, all[series("unaudited_seconds")], 30)
	}
	for _, s := range []state{stopped, standby} {
		c := metrics.NewCollector()
		c.Add(metrics.Labels{}, s)
		all := gathered(t, c)
		require.Contains(t, all, series("running"))
		require.Zero(t, all[series("running")])
		require.Zero(t, all[series("oldest_queued_change_age_seconds")])
		for _, age := range ages {
			require.NotContains(t, all, series(age+"_seconds"))
		}
	}
	c := metrics.NewCollector()
	c.Add(metrics.Labels{}, starting)
	require.InDelta(t, 1, gathered(t, c)[series("running")], 0, "it looks for where to go on from")
}

func TestLabelsMayHaveAnyBytes(t *testing.T) {
	c := metrics.NewCollector()
	c.Add(metrics.Labels{Cluster: "bad \xff", Informer: "a\"b\\c\nd"}, busy)
	require.Contains(t, gathered(t, c), "rvinformer_objects{cluster=bad \uFFFD,group=,informer=a\"b\\c\nd,resource=,version=}")
}

// What is streamed is what a registry shows.
func TestTextIsThatOfARegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that no time passes between the two
		c := metrics.NewCollector()
		c.AddBudget("a \"budget\" \\ \xff", informer.NewBudget(3))
		c.Add(podLabels, busy)
		c.Add(metrics.Labels{Cluster: "a \xff", Informer: "a\"b\\c\nd"}, state{Condition: informer.Condition{Reason: "a \"reason\" \xff"}})
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
			ListerWatcher: podsOf("a", 1),
			BatchHandler:  informer.BatchHandlerFunc(func(context.Context, []informer.Event) error { return nil }),
		})
		c.Add(metrics.Labels{Informer: "running"}, i)
		stop := harness.Synced(i)
		synctest.Wait()
		answer := httptest.NewRecorder()
		c.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		require.Contains(t, answer.Header().Get("Content-Type"), "text/plain; version=0.0.4")
		require.Contains(t, answer.Body.String(), "rvinformer_batch_size_events_bucket")
		require.NoError(t, testutil.CollectAndCompare(c, answer.Body))
		stop()
	})
}

func TestTextThatCannotBeWritten(t *testing.T) {
	c := metrics.NewCollector()
	require.ErrorIs(t, c.WriteText(broken{}), io.ErrClosedPipe)
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestBudgetsOfOneNameAreAddedUp(t *testing.T) {
	c := metrics.NewCollector()
	c.AddBudget("slow", informer.NewBudget(10))
	remove := c.AddBudget("slow", informer.NewBudget(5))
	require.InDelta(t, 15, gathered(t, c)["rvinformer_budget_limit_bytes{budget=slow}"], 0)
	remove()
	require.InDelta(t, 10, gathered(t, c)["rvinformer_budget_limit_bytes{budget=slow}"], 0)
}

// Series of a factory come and go with its informers.
func TestFactory(t *testing.T) {
	c, f := metrics.NewCollector(), factory.New()
	defer f.Shutdown()
	remove := c.AddFactory(f)
	require.NotContains(t, fmt.Sprint(gathered(t, c)), "widgets")
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	for _, opts := range []factory.InformerOptions{
		{Cluster: "east", Namespace: "secret-namespace", LabelSelector: "app=secret-label"}, {Cluster: "east"}, {Cluster: "west", Variant: "index"},
	} {
		lease, err := f.AcquireResourceVersion(widgets, opts, func() informer.ResourceVersionInformer {
			return informer.NewResourceVersionInformer("widgets", informer.InformerConfig{ListerWatcher: &cache.ListWatch{}, Handler: informer.ResourceEventHandlerFuncs{}})
		})
		require.NoError(t, err)
		defer lease.Release()
	}
	f.InformerFor(widgets, factory.InformerOptions{}, func() cache.SharedIndexInformer {
		return cache.NewSharedIndexInformer(&cache.ListWatch{}, nil, 0, nil)
	})
	all := gathered(t, c)
	for _, key := range []string{
		"objects{cluster=east,group=example.com,informer=resource-version,resource=widgets,version=v1}",
		"objects{cluster=west,group=example.com,informer=resource-version/index,resource=widgets,version=v1}",
		"synced{cluster=,group=example.com,informer=standard,resource=widgets,version=v1}",
	} {
		require.Contains(t, all, "rvinformer_"+key)
	}
	require.NotContains(t, all, "rvinformer_objects{cluster=,group=example.com,informer=standard,resource=widgets,version=v1}", "client-go does not tell")
	require.NotContains(t, fmt.Sprint(all), "secret")
	f.StopCluster("east")
	all = gathered(t, c)
	require.NotContains(t, fmt.Sprint(all), "east")
	require.Contains(t, fmt.Sprint(all), "west")
	remove()
	require.NotContains(t, fmt.Sprint(gathered(t, c)), "west")
}

func TestScrapesSideBySide(t *testing.T) {
	c := metrics.NewCollector()
	stop := runPods(t, c)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	var scrapes sync.WaitGroup
	for range 4 {
		scrapes.Go(func() {
			for i := range 50 {
				remove := c.Add(metrics.Labels{Informer: fmt.Sprint(i)}, busy)
				_, err := registry.Gather()
				remove()
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	scrapes.Wait()
	stop()
}

// A registry refuses a second collector with one of client-go's names and other labels. So the
// names are others.
func TestNamesOfClientGoAreLeftToIt(t *testing.T) {
	c := metrics.NewCollector()
	descs := make(chan *prometheus.Desc, 100)
	c.Describe(descs)
	close(descs)
	for d := range descs {
		require.Contains(t, d.String(), `fqName: "rvinformer_`)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	ofClientGo := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "informer_queued_items", Help: "[ALPHA] Number of items currently queued in the FIFO."}, []string{"name", "group", "version", "resource"})
	require.NoError(t, registry.Register(ofClientGo))
	ours := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "informer_queued_items", Help: "[ALPHA] Number of items currently queued in the FIFO."}, []string{"cluster", "group", "version", "resource", "informer"})
	require.Error(t, registry.Register(ours))
}

// Programs that do not import the package are built without client_golang.
func TestPrometheusComesWithMetricsOnly(t *testing.T) {
	for dir, imports := range map[string]bool{"..": false, "../factory": false, "../objectcache": false, "../controller": false, ".": true} {
		out, err := exec.Command("go", "list", "-deps", dir).Output()
		require.NoError(t, err)
		require.Equal(t, imports, strings.Contains(string(out), "github.com/prometheus/"), dir)
	}
}

// runPods runs an informer of a simulated server that has begun to call its handler.
func runPods(t *testing.T, c *metrics.Collector) (stop func()) {
	t.Helper()
	server, lw := harness.Simulated("pod-0", "pod-1", "pod-2")
	called := make(chan struct{}, 100)
	i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
		ListerWatcher: lw,
		BatchHandler: informer.BatchHandlerFunc(func(context.Context, []informer.Event) error {
			called <- struct{}{}
			return nil
		}),
	})
	c.Add(metrics.Labels{Version: "v1", Resource: "pods", Informer: "running"}, i)
	end := harness.Synced(i)
	<-called
	stop = sync.OnceFunc(func() {
		end()
		server.Close()
	})
	t.Cleanup(stop)
	return stop
}
