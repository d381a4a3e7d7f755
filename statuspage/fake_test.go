package statuspage_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/statuspage"
)

// fixed is an informer with a given status.
type fixed informer.Status

func (f *fixed) Status() informer.Status { return informer.Status(*f) }

func ofPods(cluster string) statuspage.Labels {
	return statuspage.Labels{Cluster: cluster, Version: "v1", Resource: "pods", Informer: "dynamic"}
}

// current is the status of an informer with nothing wrong.
func current(now time.Time) informer.Status {
	return informer.Status{
		Phase: informer.PhaseWatching, Listed: true, Synced: true, ResourceVersion: "7", Objects: 1234, LastContact: now, CurrentAsOf: now,
		Condition: informer.Condition{Reason: informer.ReasonCurrent, Since: now.Add(-time.Hour)},
	}
}

// unreachable is the status of one whose server is down since it has synced.
func unreachable(now time.Time) informer.Status {
	s := current(now)
	s.Phase, s.LastContact, s.CurrentAsOf = informer.PhaseBackoff, now.Add(-time.Hour), now.Add(-time.Hour)
	s.LastError, s.LastErrorTime, s.FailingSince = errors.New("dial tcp 10.0.0.1:443: connect: connection refused"), now.Add(-10*time.Second), now.Add(-time.Hour)
	s.Condition = informer.Condition{Reason: informer.ReasonServerUnreachable, Message: s.LastError.Error(), Since: s.FailingSince}
	return s
}

// listing is the status of one that has not synced.
func listing(now time.Time) informer.Status {
	s := informer.Status{Phase: informer.PhaseListing, Objects: 10, LastContact: now}
	s.Condition = informer.Condition{Reason: informer.ReasonListing, Message: "10 objects", Since: now.Add(-time.Second)}
	return s
}

func with(s informer.Status) *fixed { return (*fixed)(&s) }

// get asks the page, and requires the answer to have a code.
func get(t testing.TB, page http.Handler, code int, target string, headers ...string) string {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	page.ServeHTTP(w, r)
	require.Equal(t, code, w.Code, "%s: %s", target, w.Body)
	return w.Body.String()
}

// answer is what the tests read of the JSON.
type answer struct {
	Total    map[string]int
	Matching int
	Next     string
	Items    []struct {
		Path, Cluster, Group, Version, Resource, Informer string
		Condition                                         struct{ Reason, Level, Message string }
	}
}

func ask(t testing.TB, page http.Handler, query string) (a answer) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(get(t, page, http.StatusOK, "/"+query, "Accept", "application/json")), &a))
	return a
}

func (a answer) clusters() (all []string) {
	for _, i := range a.Items {
		all = append(all, i.Cluster)
	}
	return all
}

// crowd is a page of n informers in 500 clusters. One informer in 50 is not current.
func crowd(n int) *statuspage.Page {
	page, now := statuspage.New(), time.Now()
	resources := []statuspage.Labels{
		{Version: "v1", Resource: "pods"}, {Version: "v1", Resource: "services"}, {Group: "apps", Version: "v1", Resource: "deployments"},
		{Group: "example.com", Version: "v1beta1", Resource: "widgets"},
	}
	for i := range n {
		s := current(now)
		switch i % 100 {
		case 7:
			s = unreachable(now)
		case 57:
			s = listing(now)
		}
		l := resources[i/500%len(resources)]
		l.Cluster, l.Informer = fmt.Sprintf("cluster-%03d", i%500), fmt.Sprintf("namespace team-%d, dynamic", i/2000)
		page.Add(l, with(s))
	}
	return page
}
