package shards_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/fleet/shards"
	"github.com/rvinformer/informer/metrics"
	"github.com/rvinformer/informer/statuspage"
)

// gathered are the metrics of a registry that have one value, by name; conditions by their reason.
func gathered(t *testing.T, registry *prometheus.Registry) (values map[string]float64, reasons map[string]string) {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	values, reasons = map[string]float64{}, map[string]string{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "rvinformer_condition" && m.GetGauge().GetValue() > 0 {
				reasons[label(m, "resource")] = label(m, "reason")
			}
			if strings.HasPrefix(f.GetName(), "rvinformer_fleet_") {
				require.Equal(t, "test", label(m, "fleet"))
				values[strings.TrimPrefix(f.GetName(), "rvinformer_fleet_")] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return values, reasons
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

func TestReplicaIsShown(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		broken := errors.New("broken")
		fails := make(chan struct{})
		a := w.start("a", func(_ *shards.Config, r *replica) {
			r.run = func(ctx context.Context, u fleet.Unit) error {
				select {
				case <-fails:
					if u == w.units[0] {
						return broken
					}
				case <-ctx.Done():
					return nil
				}
				<-ctx.Done()
				return nil
			}
		})
		collector := metrics.NewCollector()
		remove := a.ShowOn(statuspage.New(), collector)
		registry := prometheus.NewRegistry()
		registry.MustRegister(collector, a)
		now := func() (map[string]float64, map[string]string) { return gathered(t, registry) }

		_, reasons := now()
		require.Equal(t, string(informer.ReasonNotStarted), reasons[""])
		time.Sleep(settled)
		values, reasons := now()
		require.Equal(t, map[string]string{"": string(informer.ReasonCurrent), "leases": string(informer.ReasonCurrent)}, reasons)
		require.Equal(t, map[string]float64{
			"members": 1, "may_work": 1, "units": 3, "units_owned": 3, "units_failing": 0, "units_uncovered": 0,
			"uncovered_seconds": 0, "gaps": 0, "taken_total": 3, "stale_epochs_total": 0,
		}, values)
		page, err := os.ReadFile("../../docs/replicas.md")
		require.NoError(t, err)
		for name := range values {
			require.Contains(t, string(page), "| `rvinformer_fleet_"+name+"` |")
		}

		close(fails)
		time.Sleep(time.Second / 2)
		values, reasons = now()
		require.Equal(t, string(informer.ReasonFailing), reasons[""])
		require.EqualValues(t, 1, values["units_failing"])

		a.net.partition()
		time.Sleep(time.Minute)
		values, reasons = now()
		require.Equal(t, string(informer.ReasonServerUnreachable), reasons[""])
		require.Zero(t, values["may_work"])
		require.NotEmpty(t, a.Status().Problems)
		a.net.heal()
		remove()
		_, reasons = now()
		require.Empty(t, reasons)
		w.end(a)
	})
}

// One replica knows a unit that the other does not run: the holder of its Lease is dead and cannot
// be replaced.
func TestUncoveredUnitsAndGapsAreShown(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *world) {
		a := w.start("a")
		time.Sleep(settled)
		thirds := informer.Shard{Key: informer.ShardByUID}.Split(3)
		a.use([]fleet.Unit{{Cluster: "x", Group: "pods", Shard: thirds[1]}, {Cluster: "y", Group: "all"}})
		time.Sleep(settled)
		s := a.Status()
		require.Equal(t, []fleet.Unit{
			{Cluster: "x", Group: "pods", Shard: informer.Shard{Key: informer.ShardByUID, End: thirds[0].End}},
			{Cluster: "x", Group: "pods", Shard: informer.Shard{Key: informer.ShardByUID, Start: thirds[2].Start}},
		}, s.Gaps)
		require.Empty(t, s.Uncovered())

		// It can renew its member Lease, and nothing else.
		a.net.set(func(n *network) { n.unitsOnly = true })
		a.net.partition()
		a.use([]fleet.Unit{{Cluster: "z", Group: "all"}})
		time.Sleep(time.Minute)
		s = a.Status()
		require.Len(t, s.Uncovered(), 1)
		require.GreaterOrEqual(t, time.Since(s.Uncovered()[0].Since), 50*time.Second)
		require.NotEmpty(t, s.Problems)
		collector := metrics.NewCollector()
		a.ShowOn(nil, collector)
		registry := prometheus.NewRegistry()
		registry.MustRegister(collector, a)
		values, reasons := gathered(t, registry)
		require.EqualValues(t, 1, values["units_uncovered"])
		require.GreaterOrEqual(t, values["uncovered_seconds"], 50.0)
		require.Equal(t, string(informer.ReasonFailing), reasons[""])
		a.net.heal()
		time.Sleep(settled)
		require.Empty(t, a.Status().Uncovered())
		w.end(a)
	})
}

// The condition names the unit that has been without an owner for longest, wherever it stands among
// the others.
func TestOldestUncoveredUnitIsNamed(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		a := w.start("a")
		time.Sleep(settled)
		a.net.set(func(n *network) { n.unitsOnly = true })
		a.net.partition()
		old := fleet.Unit{Cluster: "m", Group: "all"}
		a.use([]fleet.Unit{old})
		time.Sleep(time.Minute)
		a.use([]fleet.Unit{{Cluster: "a", Group: "all"}, old, {Cluster: "z", Group: "all"}})
		time.Sleep(5 * time.Second)
		page := statuspage.New()
		a.ShowOn(page, nil)
		answer := httptest.NewRecorder()
		page.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/?format=json", nil))
		require.Contains(t, answer.Body.String(), "3 of 3 units have no living owner, m/all for 1m5s")
		a.net.heal()
		w.end(a)
	})
}
