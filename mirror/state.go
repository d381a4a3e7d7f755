package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rvinformer/informer"
)

// clusterState is how the resources of one cluster are, in a line.
type clusterState struct {
	name      string
	resources map[informer.ConditionReason]int // how many are in each condition
	discovery string                           // what it is at; empty once all resources are known
	objects   int
	queued    int64 // bytes that wait to be written
}

// clusterStates sums up the rows of each cluster. The clusters keep their order.
func clusterStates(rows []row) []clusterState {
	var all []clusterState
	for _, r := range rows {
		i := slices.IndexFunc(all, func(s clusterState) bool { return s.name == r.place.cluster })
		if i < 0 {
			i = len(all)
			all = append(all, clusterState{name: r.place.cluster, resources: make(map[informer.ConditionReason]int)})
		}
		s := &all[i]
		if r.place.resourceName() == "" {
			s.discovery = r.phase // what is wrong has a line of its own
			continue
		}
		s.resources[r.condition]++
		s.objects += r.rows
		s.queued += r.queued
	}
	return all
}

// what is the state without its figures: where it is the same, nothing has happened that one would
// want to be told.
func (s clusterState) what() string {
	reasons := slices.SortedFunc(maps.Keys(s.resources), func(a, b informer.ConditionReason) int {
		return cmp.Or(compareCurrent(a, b), cmp.Compare(s.resources[b], s.resources[a]), cmp.Compare(a, b))
	})
	var parts []string
	if s.discovery != "" {
		parts = append(parts, s.discovery)
	}
	for _, r := range reasons {
		parts = append(parts, fmt.Sprintf("%d %s", s.resources[r], r))
	}
	return strings.Join(parts, ", ")
}

// compareCurrent puts what is well behind what is not.
func compareCurrent(a, b informer.ConditionReason) int {
	switch {
	case a == b:
		return 0
	case a == informer.ReasonCurrent:
		return 1
	case b == informer.ReasonCurrent:
		return -1
	}
	return 0
}

// well reports whether every resource of the cluster is current.
func (s clusterState) well() bool {
	for reason := range s.resources {
		if reason != informer.ReasonCurrent {
			return false
		}
	}
	return s.discovery == ""
}

func (s clusterState) String() string {
	if len(s.resources) == 0 {
		return s.name + ": " + s.what()
	}
	return fmt.Sprintf("%s: %s; %s objects, %s waiting to be written", s.name, s.what(), comma(int64(s.objects)), bytesOf(s.queued))
}

// clusterLines are the states of as many clusters as there is room for. Those that are not well
// come first.
func clusterLines(states []clusterState, room int) []string {
	states = slices.Clone(states)
	slices.SortStableFunc(states, func(a, b clusterState) int {
		switch {
		case a.well() == b.well():
			return 0
		case b.well():
			return -1
		}
		return 1
	})
	if len(states) <= room {
		return lines(states)
	}
	shown := max(room-1, 0)
	return append(lines(states[:shown]), fmt.Sprintf("and %d more clusters", len(states)-shown))
}

func lines(states []clusterState) (all []string) {
	for _, s := range states {
		all = append(all, s.String())
	}
	return all
}
