package main

import (
	"errors"
	"net/http/httptest"
	"strings"
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
	unit := func(cluster string) fleet.Unit { return fleet.Unit{Cluster: cluster, Group: groupName} }
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
	now.Gaps = []fleet.Unit{{Cluster: "south", Group: groupName}}
	now.Problems = []shards.Problem{{Doing: "watching leases", Err: errors.New("refused")}}
	answer := httptest.NewRecorder()
	unitsPage{func() shards.Status { return now }}.ServeHTTP(answer, httptest.NewRequest("GET", "/units", nil))

	require.Regexp(t, `I am mirror-0; owns 1 of 3 units: east/all \(epoch 4\)`, answer.Body)
	require.Regexp(t, `(?m)^east/all +mirror-0 +4 +\S+ +Running here$`, answer.Body)
	require.Regexp(t, `(?m)^north/all +mirror-1 +2 +\S+ +Waiting here: no route$`, answer.Body)
	require.Regexp(t, `(?m)^west/all +mirror-2 +7 +\S+ +UNCOVERED$`, answer.Body)
	require.Regexp(t, `(?m)^south/all +- +- +- +NO UNIT HAS IT$`, answer.Body)
	require.Contains(t, answer.Body.String(), "\nwatching leases: refused\n")
}

// News are told once.
func TestNewsOfAFleet(t *testing.T) {
	clusters := []fleet.Cluster{{Name: "east", State: fleet.ClusterKnown, Informers: 2, Units: 1}, {Name: "west"}}
	units := sharedWork()
	to := newOutput()
	n := &news{
		clusters: func() []fleet.Cluster { return clusters },
		units:    func() shards.Status { return units },
		screen:   to.screen, told: map[string]string{},
	}
	n.Step()
	require.Contains(t, to.String(), "east: 2 resources, not all synced\n")
	require.Contains(t, to.String(), "west: not followed by this mirror\n")
	require.Contains(t, to.String(), "owns 1 of 3 units: east/all (epoch 4)\n")
	require.Contains(t, to.String(), "without a living owner: west/all\n")
	before := to.String()
	n.Step()
	require.Equal(t, before, to.String())

	clusters[0].Synced = true
	clusters[0].LastError = errors.New("no route")
	clusters = clusters[:1]
	units.Units[2].Uncovered = false
	n.Step()
	require.ElementsMatch(t, []string{"east: 2 resources synced; no route", "west: removed"},
		strings.Split(strings.TrimSpace(strings.TrimPrefix(to.String(), before)), "\n"))
}
