package dashboards_test

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/require"
)

// Each query of the dashboard shows something where one of several informers is not well.
func TestDashboardShowsData(t *testing.T) {
	seen, _ := play(t, faults["InformerHandlerFailing"])
	storage, engine := seen.store(t), newEngine(t)
	from, to := seen.times[0], seen.times[len(seen.times)-1]
	shows := func(query string) int {
		q, err := engine.NewRangeQuery(context.Background(), storage, nil, query, from, to, time.Minute)
		require.NoError(t, err, query)
		defer q.Close()
		result := q.Exec(context.Background())
		require.NoError(t, result.Err, query)
		m, err := result.Matrix()
		require.NoError(t, err)
		return samplesOf(m)
	}
	d := dashboard(t)
	queries := 0
	for _, p := range d.Panels {
		require.NotEmpty(t, p.Title)
		for _, target := range p.Targets {
			queries++
			query := filled(target.Expr)
			require.NotContains(t, query, "$")
			require.Positive(t, shows(query), "%s: %s", p.Title, query)
		}
	}
	require.Greater(t, queries, 20)
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			selected := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(v.Query.(map[string]any)["query"].(string))
			require.NotNil(t, selected, v.Name)
			require.Positive(t, shows("count by ("+selected[2]+") ("+filled(selected[1])+")"), v.Name)
		}
	}
}

func samplesOf(m promql.Matrix) (n int) {
	for _, series := range m {
		n += len(series.Floats)
	}
	return n
}

// filled is a query with what Grafana puts into it.
func filled(query string) string {
	return strings.NewReplacer("$__rate_interval", "2m", "$cluster", ".*", "$resource", ".*").Replace(query)
}

type grafana struct {
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
	Templating struct {
		List []struct {
			Name, Type string
			Query      any
		}
	}
}

func dashboard(t *testing.T) (d grafana) {
	content, err := os.ReadFile("../../docs/grafana-dashboard.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, &d))
	return d
}
