package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rvinformer/informer"
	"github.com/stretchr/testify/require"
)

func inCondition(cluster, resource string, reason informer.ConditionReason, objects int) row {
	r := newTestRow(cluster, resource)
	r.condition, r.rows = reason, objects
	return r
}

// What is not well comes first: among the clusters, and within the line of one.
func TestClusterLines(t *testing.T) {
	looking := row{place: place{cluster: "far"}, phase: "discovering", problem: "connection refused", retry: "asked again in 2s"}
	states := clusterStates([]row{
		inCondition("here", "pods", informer.ReasonCurrent, 1000),
		inCondition("there", "pods", informer.ReasonCurrent, 10),
		inCondition("there", "nodes", informer.ReasonCurrent, 1),
		inCondition("there", "secrets", informer.ReasonForbidden, 0),
		looking,
	})
	require.Equal(t, []string{
		"there: 1 Forbidden, 2 Current; 11 objects, 0 B waiting to be written",
		"far: discovering",
		"here: 1 Current; 1,000 objects, 0 B waiting to be written",
	}, clusterLines(states, 3))
	require.Equal(t, []string{
		"there: 1 Forbidden, 2 Current; 11 objects, 0 B waiting to be written",
		"and 2 more clusters",
	}, clusterLines(states, 2))
}

// On a terminal the states stand in the live block, whose size stays within the screen.
func TestClusterStatesOnATerminal(t *testing.T) {
	rows := []row{inCondition("here", "pods", informer.ReasonListing, 5), inCondition("there", "pods", informer.ReasonCurrent, 7)}
	for height := 1; height < 30; height++ {
		d := newDisplay(liveScreen(&bytes.Buffer{}, 100, height), nil, time.Unix(0, 0))
		require.LessOrEqual(t, len(d.progressBlock(rows, 1, time.Unix(1, 0))), max(d.screen.Height(), 4), "height %d", height)
		require.LessOrEqual(t, len(d.eventBlock(rows, 1)), d.screen.Height(), "height %d", height)
	}
	d := newDisplay(liveScreen(&bytes.Buffer{}, 100, 24), nil, time.Unix(0, 0))
	require.Contains(t, d.eventBlock(rows, 1), "  here: 1 Listing; 5 objects, 0 B waiting to be written")
	require.Contains(t, d.progressBlock(rows, 1, time.Unix(1, 0)), "  there: 1 Current; 7 objects, 0 B waiting to be written")
}

// Without one, a state has a line when it is another than before, and not more often than every ten
// seconds.
func TestClusterStatesInALog(t *testing.T) {
	to := newOutput()
	r := inCondition("here", "pods", informer.ReasonListing, 5)
	now := time.Unix(0, 0)
	d := newDisplay(to.screen, func() []row { return []row{r} }, now)
	steps := func(n int) {
		for range n {
			now = now.Add(time.Second)
			d.Step(now)
		}
	}
	steps(15)
	r.condition, r.rows, r.synced = informer.ReasonCurrent, 9, true
	steps(1)
	r.condition = informer.ReasonServerUnreachable
	steps(3)
	r.condition = informer.ReasonCurrent
	steps(60)

	var states []string
	for line := range strings.Lines(to.String()) {
		if strings.HasPrefix(line, "here: ") {
			states = append(states, strings.TrimSpace(line))
		}
	}
	require.Equal(t, []string{
		"here: 1 Listing; 5 objects, 0 B waiting to be written",
		"here: 1 Current; 9 objects, 0 B waiting to be written",
	}, states)
}
