package fleet_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/metrics"
	"github.com/rvinformer/informer/statuspage"
)

// pageOf asks the page for an address, and follows where it leads. The page is below /ops.
func pageOf(t *testing.T, page http.Handler, address string) (path, body string) {
	at, err := url.Parse("/ops" + address)
	require.NoError(t, err)
	for range 3 {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, at.String(), nil)
		r.Header.Set("Accept", "application/json")
		http.StripPrefix("/ops", page).ServeHTTP(w, r)
		if w.Code != http.StatusFound {
			require.Equal(t, http.StatusOK, w.Code, "%v: %s", at, w.Body)
			return strings.TrimPrefix(at.Path, "/ops"), w.Body.String()
		}
		at, err = at.Parse(w.Header().Get("Location"))
		require.NoError(t, err)
	}
	require.Fail(t, "the page leads on and on")
	return "", ""
}

// The labels of each series lead to the page of the informer, whose path is its name in the log.
func TestLabelsOfMetricsLeadToThePage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		east := serve(t, informertest.Options{})
		m, log := newMirror(), newLogbook(2)
		f := newFleet(t, m, fleet.Config{Groups: []fleet.Group{
			{Name: "b c&d ü", Resources: []string{"pods"}, Shards: 2, ShardBy: informer.ShardByUID},
			{Name: "..", Resources: []string{"widgets.example.com"}},
			{Name: "rest", Resources: []string{"deployments.apps"}},
		}})
		require.NoError(t, f.Add("east &1", east.Config()))
		start(t, log.run(f))
		require.NoError(t, f.WaitForSync(t.Context()))
		time.Sleep(time.Minute)

		page, all := statuspage.Of(f.Registry()), prometheus.NewRegistry()
		all.MustRegister(metrics.Of(f.Registry()))
		families, err := all.Gather()
		require.NoError(t, err)
		named := map[string]bool{}
		series := 0
		for _, family := range families {
			if family.GetName() != "rvinformer_synced" {
				continue
			}
			for _, metric := range family.Metric {
				series++
				labels := url.Values{}
				for _, l := range metric.Label {
					labels.Set(l.GetName(), l.GetValue())
				}
				path, body := pageOf(t, page, "/informer?"+labels.Encode())
				if path == "/" { // several informers are one series
					var rows struct {
						Matching int                                         `json:"matching"`
						Items    []struct{ Path, Resource, Informer string } `json:"items"`
					}
					require.NoError(t, json.Unmarshal([]byte(body), &rows))
					require.Equal(t, 2, rows.Matching, body)
					for _, row := range rows.Items {
						require.Equal(t, "pods", row.Resource)
						require.True(t, strings.HasPrefix(row.Informer, labels.Get("informer")+" (shard "), row.Informer)
						pageOf(t, page, "/informer/"+row.Path)
						named[row.Path] = true
					}
					continue
				}
				var one struct{ Path, Cluster, Group, Version, Resource, Informer string }
				require.NoError(t, json.Unmarshal([]byte(body), &one))
				require.Equal(t, "/informer/"+one.Path, path)
				require.Equal(t, labels, url.Values{"cluster": {one.Cluster}, "group": {one.Group}, "version": {one.Version}, "resource": {one.Resource}, "informer": {one.Informer}})
				named[one.Path] = true
			}
		}
		require.Equal(t, 4, series, "three groups and the discovery")
		lines := log.lines("Informer is synced")
		require.Len(t, lines, 4)
		for _, line := range lines {
			require.True(t, named[line.values["informer"]], "%v is none of %v", line.values["informer"], named)
		}
		require.NotContains(t, strings.Join(keysOf(named), " "), "variant")
	})
}

func keysOf(set map[string]bool) (all []string) {
	for key := range set {
		all = append(all, key)
	}
	return all
}
