package statuspage

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer"
)

const (
	defaultLimit, maxLimit = 50, 1000
	// maxRefresh is the longest pause, in seconds, after which a browser may ask for the page
	// again, and minRefresh the shortest.
	minRefresh, maxRefresh = 2, 3600
	// maxParameter is how many bytes a text in an address may have: each link of the answer repeats
	// it.
	maxParameter = 1 << 10
)

// query is what a request asks for.
type query struct {
	// Text is looked for in labels and messages; the case of letters does not count.
	Text string
	// Level, Condition, Cluster, Resource and Informer restrict the rows. The last three are set by
	// their presence: a cluster may have no name. Informer is as in metrics.
	Level     string
	Condition string
	Cluster   *string
	Resource  *string
	Informer  *string
	// Sort is the name of an order, with "-" before it for the reverse.
	Sort string
	// Page is from 1.
	Page, Limit int
	// Refresh is in seconds, 0 for none.
	Refresh int
	// All shows all clusters and resources, not only the worst.
	All bool
}

// parseQuery reads the parameters of a request. The error names what is wrong with them.
func parseQuery(v url.Values) (q query, err error) {
	q = query{Text: v.Get("q"), Level: v.Get("level"), Condition: v.Get("condition"), Sort: v.Get("sort"), All: v.Has("all")}
	for name, into := range map[string]**string{"cluster": &q.Cluster, "resource": &q.Resource, "informer": &q.Informer} {
		if values := v[name]; len(values) > 0 {
			*into = &values[0]
		}
	}
	for _, name := range []string{"q", "cluster", "resource", "informer"} {
		if n := len(v.Get(name)); n > maxParameter {
			return q, fmt.Errorf("%s: at most %d bytes are looked for, and these are %d", name, maxParameter, n)
		}
	}
	if q.Level != "" && !slices.Contains(levelNames[:], q.Level) {
		return q, fmt.Errorf("level %q: there are %s", q.Level, strings.Join(levelNames[:], ", "))
	}
	if q.Condition != "" && !knownReason(q.Condition) {
		return q, fmt.Errorf("condition %q: there is no such condition", q.Condition)
	}
	if _, ok := orders[strings.TrimPrefix(q.Sort, "-")]; !ok {
		return q, fmt.Errorf("sort %q: there is no such order", q.Sort)
	}
	for _, n := range []struct {
		name                 string
		into                 *int
		without, least, most int
	}{
		{"page", &q.Page, 1, 1, 1 << 30},
		{"limit", &q.Limit, defaultLimit, 1, maxLimit},
		{"refresh", &q.Refresh, 0, minRefresh, maxRefresh},
	} {
		*n.into = n.without
		if text := v.Get(n.name); text != "" {
			if *n.into, err = strconv.Atoi(text); err != nil || *n.into < n.least || *n.into > n.most {
				return q, fmt.Errorf("%s %q: a number from %d to %d is expected", n.name, text, n.least, n.most)
			}
		}
	}
	return q, nil
}

// String is the query as it stands in an address, with the question mark. What is as it is by
// default is left out.
func (q query) String() string {
	v := url.Values{}
	set := func(name, value string) {
		if value != "" {
			v.Set(name, value)
		}
	}
	set("q", q.Text)
	set("level", q.Level)
	set("condition", q.Condition)
	set("sort", q.Sort)
	if q.Cluster != nil {
		v.Set("cluster", *q.Cluster)
	}
	if q.Resource != nil {
		v.Set("resource", *q.Resource)
	}
	if q.Informer != nil {
		v.Set("informer", *q.Informer)
	}
	if q.Page > 1 {
		set("page", strconv.Itoa(q.Page))
	}
	if q.Limit != defaultLimit {
		set("limit", strconv.Itoa(q.Limit))
	}
	if q.Refresh != 0 {
		set("refresh", strconv.Itoa(q.Refresh))
	}
	if q.All {
		v.Set("all", "")
	}
	return "?" + v.Encode()
}

// Restricted reports whether the query leaves rows out.
func (q query) Restricted() bool {
	return q.Text != "" || q.Level != "" || q.Condition != "" || q.Cluster != nil || q.Resource != nil || q.Informer != nil
}

// What follows returns queries that differ in one point. They begin on the first page again, but
// for OnPage.

// Refreshing is repeated every so many seconds.
func (q query) Refreshing(seconds int) string {
	q.Refresh = seconds
	return q.String()
}

// OfCondition shows only one condition, or all of them again if that is what the query shows.
func (q query) OfCondition(reason informer.ConditionReason) string {
	if q.Page = 1; q.Condition == string(reason) {
		reason = ""
	}
	q.Condition = string(reason)
	return q.String()
}

// OnPage is so many pages of rows further.
func (q query) OnPage(further int) string {
	q.Page += further
	return q.String()
}

// of shows only the informers of one cluster, or of one resource.
func (q query) of(what, name string) string {
	if q.Page = 1; what == "cluster" {
		q.Cluster = &name
	} else {
		q.Resource = &name
	}
	return q.String()
}

// sortedBy is in an order, or in its reverse if it is in that order already.
func (q query) sortedBy(order string) string {
	if q.Page = 1; q.Sort == order {
		order = "-" + order
	}
	q.Sort = order
	return q.String()
}

// ClusterName is the cluster that the query shows, if it shows one.
func (q query) ClusterName() string {
	if q.Cluster == nil {
		return ""
	}
	return *q.Cluster
}

// selects reports whether the query shows a row.
func (q query) selects(r *row) bool {
	l := r.name.labels
	switch {
	case q.Level != "" && kinds[r.rank].level.String() != q.Level,
		q.Condition != "" && kinds[r.rank].reason != informer.ConditionReason(q.Condition),
		q.Cluster != nil && l.Cluster != *q.Cluster,
		q.Resource != nil && resourceOf(l) != *q.Resource,
		q.Informer != nil && !isCalled(l, *q.Informer):
		return false
	case q.Text == "":
		return true
	}
	text := strings.ToLower(q.Text)
	has := func(s string) bool { return strings.Contains(strings.ToLower(s), text) }
	// A message is redacted only where that decides: a search must not find a credential.
	return slices.ContainsFunc([]string{l.Cluster, l.Group, l.Version, l.Resource, l.Informer, string(r.condition.Reason)}, has) ||
		has(r.condition.Message) && has(shown(r.condition.Message))
}

// resourceOf is how the resource of an informer is called: "deployments.apps", as kubectl has it.
func resourceOf(l Labels) string {
	return schema.GroupResource{Group: l.Group, Resource: l.Resource}.String()
}
