package statuspage_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/statuspage"
)

func TestWhatIsWrongComesFirst(t *testing.T) {
	page, now := statuspage.New(), time.Now()
	require.Contains(t, get(t, page, http.StatusOK, "/"), "There are no informers.")
	page.Add(ofPods("east"), with(current(now)))
	page.Add(ofPods("west"), with(listing(now)))
	require.Contains(t, get(t, page, http.StatusOK, "/"), "1 of 2 informers is listing. Nothing is wrong.")
	page.Add(ofPods("north"), with(unreachable(now)))
	forbidden := unreachable(now)
	forbidden.Condition.Reason = informer.ReasonForbidden
	remove := page.Add(ofPods("south"), with(forbidden))
	require.Equal(t, []string{"south", "north", "west", "east"}, ask(t, page, "").clusters())
	html := get(t, page, http.StatusOK, "/")
	require.Contains(t, html, "2 of 4 informers have something wrong.")
	require.Less(t, strings.Index(html, "informer/south/"), strings.Index(html, "informer/north/"))
	require.Contains(t, html, "connection refused")
	remove()
	remove()
	require.Equal(t, []string{"north", "west", "east"}, ask(t, page, "").clusters())
	require.Contains(t, get(t, page, http.StatusOK, "/"), "1 of 3 informers has something wrong.")
}

// A condition that the page does not know, or none, as a Source of one's own may have, is counted as
// such, and not as another one.
func TestUnknownConditionsAreCountedAsUnknown(t *testing.T) {
	page, now := statuspage.New(), time.Now()
	for cluster, reason := range map[string]informer.ConditionReason{"east": "", "west": "Odd", "north": informer.ReasonUnauthorized} {
		s := current(now)
		s.Condition.Reason = reason
		page.Add(ofPods(cluster), with(s))
	}
	var a struct {
		Conditions []struct {
			Reason, Level string
			Informers     int
		}
	}
	require.NoError(t, json.Unmarshal([]byte(get(t, page, http.StatusOK, "/?format=json")), &a))
	require.Len(t, a.Conditions, 2)
	require.Equal(t, "Unknown wrong 2", fmt.Sprint(a.Conditions[0].Reason, " ", a.Conditions[0].Level, " ", a.Conditions[0].Informers))
	require.Equal(t, "Unauthorized wrong 1", fmt.Sprint(a.Conditions[1].Reason, " ", a.Conditions[1].Level, " ", a.Conditions[1].Informers))
	require.ElementsMatch(t, []string{"east", "west"}, ask(t, page, "?condition=Unknown").clusters())
	require.Equal(t, []string{"north"}, ask(t, page, "?condition=Unauthorized").clusters())
	require.Contains(t, get(t, page, http.StatusOK, "/informer/west/_/v1/pods/dynamic"), "Odd")
}

func TestZeroValueIsAPage(t *testing.T) {
	var page statuspage.Page
	require.Contains(t, get(t, &page, http.StatusOK, "/"), "There are no informers.")
	page.Add(ofPods("east"), with(current(time.Now())))
	require.Equal(t, []string{"east"}, ask(t, &page, "").clusters())
}

func TestOfOneConditionTheOldestComesFirst(t *testing.T) {
	page, now := statuspage.New(), time.Now()
	for cluster, since := range map[string]time.Duration{"young": time.Minute, "old": 3 * time.Hour, "middle": time.Hour} {
		s := unreachable(now)
		s.Condition.Since = now.Add(-since)
		page.Add(ofPods(cluster), with(s))
	}
	require.Equal(t, []string{"old", "middle", "young"}, ask(t, page, "").clusters())
}

func TestEveryOrderPutsTheMostFirstAndCanBeReversed(t *testing.T) {
	page, now := statuspage.New(), time.Now()
	for i, name := range []string{"a", "b", "c"} {
		s := current(now)
		s.Objects, s.Queued = i, i
		s.Counts.StoredBytes = int64(i)
		s.CurrentAsOf, s.LastContact, s.Condition.Since = now.Add(-time.Duration(i)*time.Minute), now.Add(-time.Duration(i)*time.Minute), now.Add(-time.Duration(i)*time.Minute)
		page.Add(statuspage.Labels{Cluster: name, Version: "v1", Resource: name, Informer: name}, with(s))
	}
	up, down := []string{"a", "b", "c"}, []string{"c", "b", "a"}
	for sort, want := range map[string][]string{
		"cluster": up, "resource": up, "informer": up, "objects": down, "bytes": down, "queued": down, "heard": down, "age": down, "since": down,
	} {
		require.Equal(t, want, ask(t, page, "?sort="+sort).clusters(), sort)
		slices.Reverse(want)
		require.Equal(t, want, ask(t, page, "?sort=-"+sort).clusters(), sort)
		slices.Reverse(want)
	}
}

func TestRowsAreFiltered(t *testing.T) {
	page, now := statuspage.New(), time.Now()
	page.Add(statuspage.Labels{Cluster: "east", Group: "apps", Version: "v1", Resource: "deployments"}, with(current(now)))
	page.Add(ofPods("north"), with(unreachable(now)))
	page.Add(ofPods("west"), with(listing(now)))
	page.Add(ofPods(""), with(current(now)))
	for query, want := range map[string][]string{
		"?q=REFUSED":                    {"north"},
		"?q=dynamic":                    {"north", "west", ""},
		"?q=listing":                    {"west"},
		"?q=nothing+like+that":          nil,
		"?level=wrong":                  {"north"},
		"?level=well":                   {"", "east"},
		"?condition=Listing":            {"west"},
		"?cluster=east":                 {"east"},
		"?cluster=":                     {""},
		"?resource=deployments.apps":    {"east"},
		"?resource=pods":                {"north", "west", ""},
		"?resource=pods&level=well":     {""},
		"?resource=pods&condition=Idle": nil,
	} {
		if strings.HasSuffix(query, "=Idle") {
			require.Contains(t, get(t, page, http.StatusBadRequest, "/"+query), `condition "Idle"`)
			continue
		}
		a := ask(t, page, query)
		require.Equal(t, want, a.clusters(), query)
		require.Equal(t, len(want), a.Matching)
		require.Equal(t, 4, a.Total["informers"], "the sums are of all")
	}
}

func TestPagesOfRowsHaveEachRowOnce(t *testing.T) {
	const informers = 731
	page := crowd(informers)
	for _, sort := range []string{"", "cluster", "-objects", "heard"} {
		seen, next := map[string]bool{}, "?limit=90&sort="+sort
		for next != "" {
			a := ask(t, page, next)
			for _, i := range a.Items {
				require.False(t, seen[i.Path], i.Path)
				seen[i.Path] = true
			}
			next = a.Next
		}
		require.Len(t, seen, informers)
	}
	a := ask(t, page, "?page=1000000")
	require.Empty(t, a.Items)
	require.Equal(t, informers, a.Matching)
	html := get(t, page, http.StatusOK, "/?page=3")
	require.Contains(t, html, "page 3 of 15")
	require.Contains(t, html, `rel="prev" href="?page=2"`)
	require.Contains(t, html, `rel="next" href="?page=4"`)
}

func TestFirstPageOfRowsIsTheFirstOfAll(t *testing.T) {
	page := crowd(2500)
	all := ask(t, page, "?limit=1000")
	require.Len(t, all.Items, 1000)
	require.Equal(t, all.Items[:50], ask(t, page, "").Items)
	require.Equal(t, all.Items[950:], ask(t, page, "?page=20").Items)
}

func TestBadParametersAreNamed(t *testing.T) {
	page := statuspage.New()
	for query, want := range map[string]string{
		"?sort=colour": `sort "colour"`, "?level=bad": `level "bad"`, "?condition=Fine": `condition "Fine"`, "?format=xml": `format "xml"`,
		"?page=0": `page "0"`, "?page=x": `page "x"`, "?limit=1001": `limit "1001"`, "?limit=x": `limit "x"`, "?limit=0": `limit "0"`, "?refresh=1": `refresh "1"`,
	} {
		require.Contains(t, get(t, page, http.StatusBadRequest, "/"+query), want)
	}
}

func TestFormatIsThatOfTheRequest(t *testing.T) {
	page := statuspage.New()
	page.Add(ofPods("east"), with(current(time.Now())))
	for accept, asJSON := range map[string]bool{
		"":                                 false,
		"*/*":                              false,
		"application/json":                 true,
		"application/json, text/plain;q=1": true,
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": false,
		"text/html;q=0.5, application/json;q=0.6":                         true,
		"text/html, application/json":                                     false,
		"text/*;q=0.3, application/*":                                     true,
		"application/json;q=0, */*":                                       false,
	} {
		body := get(t, page, http.StatusOK, "/", "Accept", accept)
		require.Equal(t, asJSON, strings.HasPrefix(body, "{"), accept)
		require.True(t, strings.HasPrefix(get(t, page, http.StatusOK, "/?format=html", "Accept", accept), "<!DOCTYPE html>"))
		require.True(t, strings.HasPrefix(get(t, page, http.StatusOK, "/?format=json", "Accept", accept), "{"))
	}
}

func TestPageRefreshesItselfIfAsked(t *testing.T) {
	page := statuspage.New()
	require.NotContains(t, get(t, page, http.StatusOK, "/"), `http-equiv="refresh"`)
	require.Contains(t, get(t, page, http.StatusOK, "/?refresh=10&sort=heard"), `<meta http-equiv="refresh" content="10">`)
}

func TestDrainingIsShown(t *testing.T) {
	page := statuspage.New()
	require.NotContains(t, get(t, page, http.StatusOK, "/"), "drains")
	page.Drain()
	require.Contains(t, get(t, page, http.StatusOK, "/"), "The process drains.")
	require.Contains(t, get(t, page, http.StatusOK, "/?format=json"), `"draining": true`)
}

func TestPageWorksBelowAPath(t *testing.T) {
	page := statuspage.New()
	page.Add(ofPods("east"), with(current(time.Now())))
	for _, prefix := range []string{"", "/debug/informers"} {
		server := httptest.NewServer(http.StripPrefix(prefix, page))
		for path, link := range map[string]string{
			"/":                                  `href="informer/east/_/v1/pods/dynamic"`,
			"/informer/east/_/v1/pods/dynamic":   `href="../../../../../"`,
			"/readyz?verbose":                    "informer/east/_/v1/pods/dynamic ok",
			"/livez/informer/east":               "ok",
			"/healthz/ping":                      "ok",
			"/informer/east/_/v1/pods/dynamic?x": "Status",
		} {
			response, err := http.Get(server.URL + prefix + path)
			require.NoError(t, err)
			var body strings.Builder
			require.NoError(t, response.Write(&body))
			require.NoError(t, response.Body.Close())
			require.Equal(t, http.StatusOK, response.StatusCode, path)
			require.Contains(t, body.String(), link)
		}
		server.Close()
		http.DefaultClient.CloseIdleConnections()
	}
}

func TestPageIsServedWhileInformersComeAndGo(t *testing.T) {
	page := crowd(300)
	blocked, asked := make(chan struct{}), make(chan struct{})
	page.Add(ofPods("slow"), statusFunc(func() informer.Status {
		asked <- struct{}{}
		<-blocked
		return current(time.Now())
	}))
	var reading sync.WaitGroup
	reading.Go(func() { get(t, page, http.StatusOK, "/") })
	<-asked
	for range 100 { // also while an informer is slow to say how it is
		page.Add(ofPods("new"), with(current(time.Now())))()
	}
	close(blocked)
	reading.Wait()
	require.Panics(t, func() { page.Add(ofPods("none"), nil) })
	require.Panics(t, func() { page.AddFactory(nil) })
}

type statusFunc func() informer.Status

func (f statusFunc) Status() informer.Status { return f() }
