package main

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rvinformer/informer/bench/race"
)

// plan is what is to be run.
type plan struct {
	pods        sizes
	runs        int
	largeRuns   int
	scenarios   string
	contestants string
	keys        int
	burstPods   int
	events      int
	limits      race.Limits
	peersMost   int
	real        bool
	quick       bool
	profile     string
	docs        string
}

func defaultPlan() *plan {
	return &plan{
		pods: sizes{100_000, 1_000_000}, runs: 3, largeRuns: 1, keys: 1_000_000, burstPods: 10_000, events: 100_000, peersMost: 100_000,
		limits: race.Limits{IdleInformers: 200}, docs: "../docs",
	}
}

func (p *plan) flags(f *flag.FlagSet) {
	f.Var(&p.pods, "pods", "sizes of the set, with commas between them")
	f.IntVar(&p.runs, "runs", p.runs, "how often each is run, but for the slow handler; medians are quoted")
	f.IntVar(&p.largeRuns, "large-runs", p.largeRuns, "how often each is run with a set larger than -peers-most")
	f.StringVar(&p.scenarios, "scenarios", "", "only these, with commas between them: "+fmt.Sprint(race.Scenarios))
	f.StringVar(&p.contestants, "contestants", "", "only those whose name begins with one of these, and the floors")
	f.IntVar(&p.keys, "keys", p.keys, "keys of a storage")
	f.IntVar(&p.burstPods, "burst-pods", p.burstPods, "pods of the server that sends changes")
	f.IntVar(&p.events, "events", p.events, "changes that it sends")
	f.IntVar(&p.limits.SlowObjects, "slow-objects", 0, "objects after which a slow handler is stopped (0: all)")
	f.IntVar(&p.limits.IdleInformers, "idle", p.limits.IdleInformers, "idle informers")
	f.IntVar(&p.peersMost, "peers-most", p.peersMost, "largest set for client-go; a larger one is for ours and the floors, and for cold starts and restarts only")
	f.BoolVar(&p.real, "real", false, "against a kube-apiserver that is built and started, with pods created in it: 10,000 unless -pods says else")
	f.BoolVar(&p.quick, "quick", false, "10,000 pods, once, and write no documents")
	f.StringVar(&p.profile, "profile", "", "write CPU profiles of cold starts and watches to files whose names begin so")
	f.StringVar(&p.docs, "docs", p.docs, "directory for the tables and the charts; none if empty")
}

// settle gives what depends on other flags its value.
func (p *plan) settle() {
	if p.quick {
		p.runs, p.docs, p.keys, p.events, p.limits.IdleInformers, p.limits.SlowObjects = 1, "", 100_000, 20_000, 50, 2_000
	}
	if (p.quick || p.real) && slices.Equal(p.pods, defaultPlan().pods) {
		p.pods = sizes{10_000}
	}
}

// takesPart tells whether a contestant is to be run in a heat.
func (p *plan) takesPart(e entry, h heat) bool {
	chosen := e.IsFloor() || p.contestants == ""
	for prefix := range strings.SplitSeq(p.contestants, ",") {
		chosen = chosen || prefix != "" && strings.HasPrefix(e.Name, prefix)
	}
	if p.isLarge(h) {
		chosen = chosen && !strings.HasPrefix(e.Name, "client-go")
	}
	return chosen && e.TakesPart(h.scenario)
}

// chosen tells whether a scenario is to be run with a set of a size.
func (p *plan) chosen(scenario race.Scenario, size int) bool {
	if p.scenarios != "" && !slices.Contains(strings.Split(p.scenarios, ","), string(scenario)) {
		return false
	}
	switch scenario {
	case race.ColdStart:
		return true
	case race.Storage, race.Restart:
		// A kube-apiserver has no past, and nothing to do with a storage.
		return !p.real
	case race.Relist:
		return size <= p.peersMost
	case race.WatchBurst:
		// Where each change is written by a client, the server would be measured.
		return !p.real && size == p.pods[0]
	default:
		return size == p.pods[0]
	}
}

// runsOf is how often a heat is run.
func (p *plan) runsOf(h heat) int {
	if p.isLarge(h) {
		return p.largeRuns
	}
	return p.runs
}

// isLarge tells whether a heat is of a set that is too large for client-go.
func (p *plan) isLarge(h heat) bool { return h.scenario != race.Storage && h.size > p.peersMost }

// sizes is a flag of numbers with commas between them.
type sizes []int

func (s sizes) String() string {
	var texts []string
	for _, n := range s {
		texts = append(texts, strconv.Itoa(n))
	}
	return strings.Join(texts, ",")
}

func (s *sizes) Set(text string) error {
	*s = nil
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is no number of pods", part)
		}
		*s = append(*s, n)
	}
	return nil
}
