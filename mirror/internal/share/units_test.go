package share

import (
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/fleet/shards"
	"github.com/stretchr/testify/require"
)

// sharedWork is what a replica knows of three units: one is its own, one is another's, and one is
// uncovered.
func sharedWork() shards.Status {
	since := time.Now()
	unit := func(cluster string) fleet.Unit { return fleet.Unit{Cluster: cluster, Group: "all"} }
	return shards.Status{
		Identity: "mirror-0",
		Members:  []shards.Member{{Identity: "mirror-0", Alive: true}, {Identity: "mirror-1", Alive: true}, {Identity: "mirror-2"}},
		Units: []shards.Unit{
			{Unit: unit("east"), Owner: "mirror-0", Epoch: 4, Since: since, Tenure: &shards.Tenure{Phase: shards.Running, Epoch: 4}},
			{Unit: unit("north"), Owner: "mirror-1", Epoch: 2, Since: since},
			{Unit: unit("west"), Owner: "mirror-2", Epoch: 7, Since: since, Uncovered: true},
		},
	}
}

func TestUnitsPage(t *testing.T) {
	now := sharedWork()
	now.Units[1].Tenure = &shards.Tenure{Phase: shards.Waiting, Err: errors.New("no route")}
	now.Gaps = []fleet.Unit{{Cluster: "south", Group: "all"}}
	now.Problems = []shards.Problem{{Doing: "watching leases", Err: errors.New("refused")}}
	answer := httptest.NewRecorder()
	UnitsPage(func() shards.Status { return now }).ServeHTTP(answer, httptest.NewRequest("GET", "/units", nil))

	require.Regexp(t, `I am mirror-0; owns 1 of 3 units: east/all \(epoch 4\)`, answer.Body)
	require.Regexp(t, `(?m)^east/all +mirror-0 +4 +\S+ +Running here$`, answer.Body)
	require.Regexp(t, `(?m)^north/all +mirror-1 +2 +\S+ +Waiting here: no route$`, answer.Body)
	require.Regexp(t, `(?m)^west/all +mirror-2 +7 +\S+ +UNCOVERED$`, answer.Body)
	require.Regexp(t, `(?m)^south/all +- +- +- +NO UNIT HAS IT$`, answer.Body)
	require.Contains(t, answer.Body.String(), "\nwatching leases: refused\n")
}

// News are what a replica owns, what nobody owns, and what is wrong.
func TestNews(t *testing.T) {
	now := sharedWork()
	require.Equal(t, [3]string{"owns 1 of 3 units: east/all (epoch 4)", "without a living owner: west/all", ""}, news(now))
	now.Units[2].Uncovered = false
	now.Units[0].Owner, now.Units[0].Tenure = "mirror-1", nil
	now.Problems = []shards.Problem{{Doing: "watching leases", Err: errors.New("refused")}}
	require.Equal(t, [3]string{"owns 0 of 3 units", "", "watching leases: refused"}, news(now))
}
