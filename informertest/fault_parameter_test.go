package informertest_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/informertest"
)

func TestFaultsMeetParameters(t *testing.T) { inBubble(t, faultsMeetParameters) }

func faultsMeetParameters(t *testing.T, s *informertest.Server) {
	watchList := append(bookmarkedWatchList, "watch", "1", "timeoutSeconds", "1")
	all := map[string][]string{
		"consistent":      nil,
		"consistent page": {"limit", "2"},
		"cached":          {"resourceVersion", "0"},
		"not older":       {"resourceVersion", "6", "resourceVersionMatch", "NotOlderThan"},
		"watch":           {"watch", "1", "resourceVersion", "6", "timeoutSeconds", "1"},
		"watch-list":      watchList,
		"empty token":     {"continue", ""},
	}
	page, status := list(t, s, "limit", "2")
	require.Nil(t, status)
	all["next page"] = []string{"limit", "2", "continue", page.Continue}

	for fault, met := range map[string][]string{
		"list page=first without=resourceVersion 429": {"consistent", "consistent page", "empty token"},
		"without=limit 429":                           {"consistent", "cached", "not older", "watch", "watch-list", "empty token"},
		"with=limit 422":                              {"consistent page", "next page"},
		"with=resourceVersionMatch 422":               {"not older", "watch-list"},
		"with=sendInitialEvents 400":                  {"watch-list"},
		"with=resourceVersion without=watch 422":      {"cached", "not older"},
		"with=continue 400":                           {"next page"},
		"with=unheardOf 400":                          {},
	} {
		heal := inject(t, s, fault)
		got := []string{}
		for name, query := range all {
			if code, _ := ask(t, s, configMapsPath, values(query...), ""); code != http.StatusOK {
				got = append(got, name)
			}
		}
		require.ElementsMatch(t, met, got, fault)
		heal()
	}
}

func TestFaultNamesUnknownParameter(t *testing.T) {
	s := start(t, informertest.Options{InMemory: true})
	for fault, want := range map[string]metav1.StatusReason{
		"with=limit 422": metav1.StatusReasonInvalid,
		"with=limit 400": metav1.StatusReasonBadRequest,
	} {
		heal := inject(t, s, fault)
		_, status := list(t, s, "limit", "2")
		require.NotNil(t, status)
		require.Equal(t, want, status.Reason)
		require.Contains(t, status.Message, "limit")
		require.Contains(t, status.Message, "unknown")
		heal()
	}
	heal := inject(t, s, "with=limit 422 retry-after=7")
	defer heal()
	code, body := ask(t, s, configMapsPath, values("limit", "2"), "")
	require.Equal(t, http.StatusUnprocessableEntity, code)
	var status metav1.Status
	require.NoError(t, json.Unmarshal([]byte(body), &status))
	require.EqualValues(t, 7, status.Details.RetryAfterSeconds)
}
