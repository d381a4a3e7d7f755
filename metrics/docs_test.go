package metrics_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/metrics"
)

// The table of metrics in the manual is that of the collector.
func TestManualHasAllMetrics(t *testing.T) {
	content, err := os.ReadFile("../docs/monitoring.md")
	require.NoError(t, err)
	var told []string
	for line := range strings.Lines(string(content)) {
		if strings.HasPrefix(line, "| `rvinformer_") {
			told = append(told, strings.TrimSpace(line))
		}
	}
	descs := make(chan *prometheus.Desc, 100)
	metrics.NewCollector().Describe(descs)
	close(descs)
	var want []string
	for d := range descs {
		found := regexp.MustCompile(`fqName: "(\w+)", help: "(.*?)"(?:, unit: "[^"]*")?, constLabels: {}, variableLabels: {([^}]*)}`).FindStringSubmatch(d.String())
		require.NotNil(t, found, d)
		labels := strings.TrimPrefix(strings.TrimPrefix(found[3], "cluster,group,version,resource,informer"), ",")
		if labels != "" {
			labels = "`" + labels + "`"
		}
		want = append(want, fmt.Sprintf("| `%s` | %s | %s |", found[1], labels, found[2]))
	}
	require.Equal(t, strings.Join(want, "\n"), strings.Join(told, "\n"))
}
