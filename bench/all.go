package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rvinformer/informer/bench/podserver"
	"github.com/rvinformer/informer/bench/race"
)

// all compares informers with client-go's and with floors in all scenarios, and storages.
type all struct {
	settings
	pods        sizes
	scenarios   string
	contestants string
	keys        int
	burstPods   int
	events      int
	limits      race.Limits
	peersMost   int
	real        bool
	quick       bool

	// heats are those that have tables.
	heats    []*heat
	capacity []capacity
}

func newAll() *all {
	return &all{
		settings: newSettings(3, 0, "floor", "floorcopies", "ours", "ourstyped", "clientgo", "controllerruntime", "stores"),
		pods:     sizes{100_000, 1_000_000}, keys: 1_000_000, burstPods: 10_000, events: 100_000, peersMost: 100_000,
		limits: race.Limits{IdleInformers: 200},
	}
}

func (p *all) flags(f *flag.FlagSet) {
	p.settings.flags(f)
	f.Var(&p.pods, "pods", "sizes of the set, with commas between them")
	f.StringVar(&p.scenarios, "scenarios", "", "only these, with commas between them: "+fmt.Sprint(race.Scenarios))
	f.StringVar(&p.contestants, "contestants", "", "only those whose name begins with one of these, and the floors")
	f.IntVar(&p.keys, "keys", p.keys, "keys of a storage")
	f.IntVar(&p.burstPods, "burst-pods", p.burstPods, "pods of the server that sends changes")
	f.IntVar(&p.events, "events", p.events, "changes that it sends")
	f.IntVar(&p.peersMost, "peers-most", p.peersMost, "largest set for client-go; a larger one is run once, for ours and the floors, and for cold starts and restarts only")
	f.BoolVar(&p.real, "real", false, "against a kube-apiserver that is built and started, with pods created in it: 10,000 unless -pods says else")
	f.BoolVar(&p.quick, "quick", false, "10,000 pods, once, and write no documents")
}

// settle gives what depends on other flags its value.
func (p *all) settle() {
	if p.quick {
		p.runs, p.docs, p.keys, p.events, p.limits.IdleInformers, p.limits.SlowObjects = 1, "", 100_000, 20_000, 50, 2_000
	}
	if (p.quick || p.real) && slices.Equal(p.pods, newAll().pods) {
		p.pods = sizes{10_000}
	}
}

func (p *all) plan(entries contestants) (planned []*heat, err error) {
	p.settle()
	for _, size := range p.pods {
		server := simulatedHost(podserver.Options{Pods: size})
		if p.real {
			server = realHost(size)
		}
		if !p.real && size == p.pods[0] && p.chosen(race.ColdStart, size) {
			floor := entries.named("floor-json")
			planned = append(planned, &heat{hosts: []*host{server}, do: func(ctx context.Context, _ *heat) (err error) {
				p.capacity, err = measureCapacity(ctx, floor, server.target)
				return err
			}})
		}
		for _, scenario := range race.Served {
			if p.chosen(scenario, size) {
				p.heats = append(p.heats, p.served(entries, scenario, size, server))
				planned = append(planned, p.heats[len(p.heats)-1])
			}
		}
	}
	if p.chosen(race.Storage, p.keys) {
		for _, names := range []race.Names{race.PodNames, race.RandomNames} {
			h := p.heat(race.Storage, p.keys)
			h.names = names
			p.join(h, entries, race.Order{Target: race.Target{Objects: p.keys}, Names: names})
			p.heats, planned = append(p.heats, h), append(planned, h)
		}
	}
	return planned, nil
}

// served is the heat of a scenario that needs a server with a set of one size.
func (p *all) served(entries contestants, scenario race.Scenario, size int, server *host) *heat {
	switch scenario {
	case race.SlowHandler:
		h := p.heat(scenario, size, server)
		h.do = sideBySide
		return p.join(h, entries, race.Order{})
	case race.WatchBurst:
		return p.join(p.heat(scenario, size, simulatedHost(podserver.Options{Pods: p.burstPods, Events: p.events})), entries, race.Order{})
	case race.Restart:
		return p.restart(entries, size, server)
	default:
		return p.join(p.heat(scenario, size, server), entries, race.Order{})
	}
}

// heat is one of a scenario, without variants.
func (p *all) heat(scenario race.Scenario, size int, hosts ...*host) *heat {
	h := p.newHeat(scenario, size, hosts...)
	if p.isLarge(h) {
		h.times = 1
	}
	return h
}

// join adds the contestants that take part.
func (p *all) join(h *heat, entries contestants, o race.Order) *heat {
	o.Limits = p.limits
	for _, e := range entries {
		if p.takesPart(e, h) {
			h.add(e.Entry, e, o)
		}
	}
	return h
}

// oneChangedIn is of how many pods one has changed when a contestant starts again.
const oneChangedIn = 100

// restart is the heat of starts again. The server has the pods of the one before, and some of them
// have changed. A contestant fills what it remembers in a process of its own.
func (p *all) restart(entries contestants, size int, before *host) *heat {
	later := simulatedHost(podserver.Options{Pods: size, Changed: max(1, size/oneChangedIn)})
	h := p.heat(race.Restart, size, later, before)
	for _, e := range entries {
		if !p.takesPart(e, h) {
			continue
		}
		h.variants = append(h.variants, variant{e.Entry, func(ctx context.Context) (r race.Result, err error) {
			dir, err := os.MkdirTemp("", "rvinformer-bench-")
			if err != nil {
				return r, err
			}
			defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
			o := race.Order{Scenario: race.Remember, Target: before.target, Checkpoint: filepath.Join(dir, e.Name)}
			if e.Memory != race.Nothing {
				if _, err := e.run(ctx, o); err != nil {
					return r, err
				}
			}
			o.Scenario, o.Target = race.Restart, later.target
			return e.run(ctx, o)
		}})
	}
	return h
}

// takesPart tells whether a contestant is to be run in a heat.
func (p *all) takesPart(e contestant, h *heat) bool {
	chosen := e.IsFloor() || p.contestants == ""
	for prefix := range strings.SplitSeq(p.contestants, ",") {
		chosen = chosen || prefix != "" && strings.HasPrefix(e.Name, prefix)
	}
	if p.isLarge(h) {
		chosen = chosen && !strings.HasPrefix(e.Name, "client-go") && !strings.HasPrefix(e.Name, "controller")
	}
	return chosen && e.TakesPart(h.scenario)
}

// chosen tells whether a scenario is to be run with a set of a size.
func (p *all) chosen(scenario race.Scenario, size int) bool {
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

// isLarge tells whether a heat is of a set that is too large for client-go.
func (p *all) isLarge(h *heat) bool { return h.scenario != race.Storage && h.size > p.peersMost }

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
