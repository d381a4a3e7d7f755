package dashboards_test

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/template"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
)

// faults are those that each alert is for. The first one is none.
var faults = map[string]fault{
	"": {},
	"InformerNotSynced": {config: func(w *world, c *informer.InformerConfig) {
		c.BatchHandler = informer.BatchHandlerFunc(w.hang)
		w.failing.Store(true)
	}},
	"InformerOutOfContact": {begin: func(w *world) {
		w.Inject(informertest.Fault{Effect: informertest.Refuse()})
		w.CloseClientConnections()
	}},
	"InformerRefused": {begin: func(w *world) {
		w.Inject(informertest.Fault{Effect: informertest.Status(403)})
		w.CloseClientConnections()
	}},
	"InformerPolls": {begin: func(w *world) {
		w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch", "watch-list"}}, Effect: informertest.Status(405)})
		w.CloseClientConnections()
	}},
	"InformerServerFailing": {begin: func(w *world) {
		w.Inject(informertest.Fault{Effect: informertest.Status(503)})
		w.CloseClientConnections()
	}},
	"InformerHandlerSlow": {
		config: func(w *world, c *informer.InformerConfig) { c.BatchHandler = informer.BatchHandlerFunc(w.hang) },
		begin:  func(w *world) { w.failing.Store(true) },
	},
	"InformerBehind": {
		config: func(w *world, c *informer.InformerConfig) { c.BatchHandler = informer.BatchHandlerFunc(w.hang) },
		begin:  func(w *world) { w.failing.Store(true) },
	},
	"InformerDiffers": {
		config: func(w *world, c *informer.InformerConfig) { c.Storage, c.AuditEvery = w.storage, 10*time.Minute },
		begin: func(w *world) {
			require.NoError(w.t, w.storage.Add(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gone", UID: "x", ResourceVersion: "1"}}))
		},
	},
	"InformerNotAudited": {
		config: func(w *world, c *informer.InformerConfig) {
			c.BatchHandler, c.AuditEvery = informer.BatchHandlerFunc(w.hang), 10*time.Minute
			c.Storage = w.storage
		},
		begin: func(w *world) { w.failing.Store(true) },
	},
	"InformerHandlerFailing": {begin: func(w *world) { w.failing.Store(true) }},
	"InformerDeadLetters": {
		config: func(w *world, c *informer.InformerConfig) {
			c.BatchHandler = informer.BatchHandlerFunc(func(_ context.Context, events []informer.Event) (failed error) {
				if w.failing.Swap(false) {
					return informer.FailedEvents{{Index: 0, Err: errors.New("the row is refused")}}
				}
				return nil
			})
			c.MaxAttempts = 1
		},
		begin: func(w *world) { w.failing.Store(true) },
	},
	"InformerListsAgain": {begin: func(w *world) {
		w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch"}}, Effect: informertest.ErrorEvent(410)})
		w.CloseClientConnections()
	}},
	"InformerSkipsItems": {
		config: func(w *world, c *informer.InformerConfig) {
			c.Transform, c.BatchHandler = w.transform, informer.BatchHandlerFunc(func(context.Context, []informer.Event) error { return nil })
		},
		begin: func(w *world) { w.failing.Store(true) },
	},
	"InformerBudgetFull": {
		config: func(w *world, c *informer.InformerConfig) {
			c.Budget, c.BatchHandler = informer.NewBudget(20000), informer.BatchHandlerFunc(w.hang)
			w.collector.AddBudget("broken", c.Budget)
		},
		begin: func(w *world) { w.failing.Store(true) },
	},
	"InformerCheckpointOld": {begin: func(w *world) { w.full.Store(true) }},
	"InformerServerRestored": {begin: func(w *world) {
		w.Restore(w.backup)
		w.CloseClientConnections()
	}},
}

// healthy are scenes in which nothing is wrong.
var healthy = map[string]fault{
	"a standby that is not started": {config: func(w *world, _ *informer.InformerConfig) { w.standby = true }},
	"a former leader":               {begin: func(w *world) { w.stop() }},
	"a former leader that was not synced": {
		config: func(w *world, c *informer.InformerConfig) {
			c.BatchHandler = informer.BatchHandlerFunc(w.hang)
			w.failing.Store(true)
			time.AfterFunc(time.Minute, func() { w.stop() })
		},
	},
	"quiet":                   {quiet: true},
	"quiet without bookmarks": {quiet: true, begin: withoutBookmarks},
	"quiet with long watches, without bookmarks": {quiet: true, config: func(_ *world, c *informer.InformerConfig) { c.MinWatchTimeout = 15 * time.Minute }, begin: withoutBookmarks},
	"quiet with a rare checkpoint": {
		quiet: true, config: func(_ *world, c *informer.InformerConfig) { c.CheckpointInterval = 10 * time.Minute },
	},
	"a rare checkpoint": {config: func(_ *world, c *informer.InformerConfig) { c.CheckpointInterval = 10 * time.Minute }},
	"quiet with a default checkpoint": {
		quiet: true, config: func(_ *world, c *informer.InformerConfig) { c.CheckpointInterval = 0 },
		begin: withoutBookmarks,
	},
	"audits": {config: func(w *world, c *informer.InformerConfig) {
		c.Storage, c.AuditEvery = w.storage, 20*time.Minute
	}},
	"audits of a former leader": {config: func(w *world, c *informer.InformerConfig) {
		c.Storage, c.AuditEvery = w.storage, 20*time.Minute
	}, begin: func(w *world) { w.stop() }},
}

func withoutBookmarks(w *world) {
	w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch"}}, Effect: informertest.NoBookmarks()})
	w.CloseClientConnections()
}

// No alert fires where nothing is wrong.
func TestNoAlertFiresWhereAllIsWell(t *testing.T) {
	for name, f := range healthy {
		t.Run(name, func(t *testing.T) {
			seen, began := play(t, f)
			for _, a := range evaluate(t, seen) {
				t.Errorf("%v: %s %s", a.at.Sub(began), a.name, a.of)
			}
		})
	}
}

// blamed are alerts that do not fire for a fault, because they blame something else.
var blamed = map[string][]string{
	"InformerHandlerSlow": {"InformerOutOfContact", "InformerServerFailing"},
	"InformerBudgetFull":  {"InformerOutOfContact", "InformerServerFailing"},
}

// Each alert fires for its fault, and none for an informer that is well.
func TestAlertsFireForTheirFaults(t *testing.T) {
	names := map[string]bool{"": true}
	for _, r := range alerts(t) {
		names[r.Alert] = true
	}
	plays := map[string]func(t *testing.T) (scrapes, time.Time){}
	for name, f := range faults {
		plays[name] = func(t *testing.T) (scrapes, time.Time) { return play(t, f) }
	}
	for name, begin := range fleetFaults {
		plays[name] = func(t *testing.T) (scrapes, time.Time) { return playFleet(t, begin) }
	}
	for name, play := range plays {
		require.True(t, names[name], "there is no alert %s", name)
		delete(names, name)
		t.Run(name, func(t *testing.T) {
			seen, began := play(t)
			fired := evaluate(t, seen)
			for _, a := range fired {
				t.Logf("%v: %s %s", a.at.Sub(began), a.name, a.of)
				require.NotEqual(t, "well", a.of.Get("cluster"))
				require.NotEqual(t, "default", a.of.Get("budget"))
				if fleetFaults[name] != nil {
					require.True(t, a.at.After(began), "%s fires before the fault", a.name)
				}
			}
			if name == "" {
				require.Empty(t, fired)
				return
			}
			require.Contains(t, namesOf(fired), name)
			for _, other := range blamed[name] {
				require.NotContains(t, namesOf(fired), other)
			}
		})
	}
	require.Empty(t, names, "alerts without a fault")
}

// firing is an alert that fires, and since when.
type firing struct {
	name string
	of   labels.Labels
	at   time.Time
}

func namesOf(all []firing) (names []string) {
	for _, f := range all {
		names = append(names, f.name)
	}
	return names
}

// evaluate returns the alerts that have fired, with the time when each did first.
func evaluate(t *testing.T, seen scrapes) (fired []firing) {
	engine, samples := newEngine(t), seen.queryable()
	for _, r := range alerts(t) {
		for _, series := range queryRange(t, engine, samples, seen, r.Expr, scrapeEvery) {
			of := labels.NewBuilder(series.Metric).Del(model.MetricNameLabel).Labels()
			at, fires := since(series.Floats, time.Duration(r.For))
			if !fires {
				continue
			}
			for name, text := range r.Annotations {
				requireExpands(t, r.Alert+", "+name, text, promql.Sample{Metric: of, T: at})
			}
			fired = append(fired, firing{r.Alert, of, time.UnixMilli(at)})
		}
	}
	return fired
}

// since returns when a condition first had held for a while. Its points are the times of scrapes
// at which it held.
func since(points []promql.FPoint, held time.Duration) (at int64, ever bool) {
	var began, before int64
	for i, p := range points {
		if i == 0 || p.T-before > scrapeEvery.Milliseconds() {
			began = p.T
		}
		if p.T-began >= held.Milliseconds() {
			return p.T, true
		}
		before = p.T
	}
	return 0, false
}

// requireExpands fails if Prometheus cannot fill in an annotation.
func requireExpands(t *testing.T, name, text string, sample promql.Sample) {
	data := template.AlertTemplateData(sample.Metric.Map(), nil, "", sample)
	variables := "{{$labels := .Labels}}{{$value := .Value}}"
	expander := template.NewTemplateExpander(context.Background(), variables+text, name, data, model.Time(sample.T), nil, &url.URL{}, nil)
	_, err := expander.Expand()
	require.NoError(t, err)
}

// alerts returns the rules of docs/alerts.yaml.
func alerts(t *testing.T) (all []rulefmt.Rule) {
	content, err := os.ReadFile("../../docs/alerts.yaml")
	require.NoError(t, err)
	groups, errs := rulefmt.Parse(content, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	require.Empty(t, errs)
	for _, g := range groups.Groups {
		all = append(all, g.Rules...)
	}
	return all
}
