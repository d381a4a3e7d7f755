package metrics_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/metrics"
)

func ask(c *metrics.Collector, method, accepted string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/metrics", nil)
	if accepted != "" {
		r.Header.Set("Accept-Encoding", accepted)
	}
	answer := httptest.NewRecorder()
	c.Handler().ServeHTTP(answer, r)
	return answer
}

func TestHandlerCompressesForWhoAcceptsIt(t *testing.T) {
	c := metrics.NewCollector()
	c.Add(metrics.Labels{Cluster: "east"}, busy)
	const contentType = "text/plain; version=0.0.4; charset=utf-8"
	plain := ask(c, http.MethodGet, "")
	require.Empty(t, plain.Header().Get("Content-Encoding"))
	require.Equal(t, contentType, plain.Header().Get("Content-Type"))
	require.Contains(t, plain.Body.String(), "rvinformer_objects{")

	zipped := ask(c, http.MethodGet, "gzip")
	require.Equal(t, "gzip", zipped.Header().Get("Content-Encoding"))
	require.Equal(t, contentType, zipped.Header().Get("Content-Type"))
	require.Less(t, zipped.Body.Len(), plain.Body.Len()/2)
	reader, err := gzip.NewReader(zipped.Body)
	require.NoError(t, err)
	text, err := io.ReadAll(reader)
	require.NoError(t, err)
	require.Contains(t, string(text), "rvinformer_objects{")

	require.Empty(t, ask(c, http.MethodGet, "gzip;q=0").Header().Get("Content-Encoding"))
}

func TestHandlerRefusesOtherMethods(t *testing.T) {
	c := metrics.NewCollector()
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		answer := ask(c, method, "")
		require.Equal(t, http.StatusMethodNotAllowed, answer.Code, method)
		require.Equal(t, "GET, HEAD", answer.Header().Get("Allow"))
	}
	require.Equal(t, http.StatusOK, ask(c, http.MethodHead, "").Code)
}

// Names that differ only in what is not valid UTF-8 are one, so that a scrape has no series twice.
func TestBudgetsWithInvalidNamesAreGathered(t *testing.T) {
	c := metrics.NewCollector()
	c.AddBudget("a\xff", informer.NewBudget(1))
	c.AddBudget("a\xfe", informer.NewBudget(2))
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(c))
	found, err := registry.Gather()
	require.NoError(t, err)
	require.NotEmpty(t, found)
	require.EqualValues(t, 3, gathered(t, c)["rvinformer_budget_limit_bytes{budget=a\uFFFD}"], gathered(t, c))
}
