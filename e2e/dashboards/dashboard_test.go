package dashboards_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each query of the dashboard shows something where one of several informers is not well.
func TestDashboardShowsData(t *testing.T) {
	seen, _ := play(t, faults["InformerHandlerFailing"])
	engine, samples := newEngine(t), seen.queryable()
	shows := func(query string) (points int) {
		for _, series := range queryRange(t, engine, samples, seen, query, time.Minute) {
			points += len(series.Floats)
		}
		return points
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
