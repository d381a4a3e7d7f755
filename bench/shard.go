package main

import (
	"bytes"
	"fmt"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/bench/podserver"
	"github.com/rvinformer/informer/bench/race"
)

// shards compares a set with a half of it.
type shards struct {
	settings
	half int // objects in it
	heat *heat
}

func newShard() *shards { return &shards{settings: newSettings(5, 100_000, "floor", "ours")} }

// shardCase is one way that a set, or a half of it, is read.
type shardCase struct {
	name, contestant string
	// half has half of the range followed, and sharded is of a server that selects by it.
	half, sharded bool
	// reach is what this library set itself.
	reach string
}

// The cases, in the order of their runs.
const (
	shardFloor    = "plain GETs of all pages, thrown away"
	shardWhole    = "informer of all"
	shardServed   = "informer of half, and a server that sends no more"
	shardFiltered = "informer of half, and a server that sends all"
)

var shardCases = []shardCase{
	{name: shardFloor, contestant: "floor-json"},
	{name: shardWhole, contestant: "ours-raw-paged"},
	{name: shardServed, contestant: "ours-raw-paged", half: true, sharded: true, reach: "0.50 × the bytes, 0.55 × the CPU of the whole"},
	{name: shardFiltered, contestant: "ours-raw-paged", half: true, reach: "1.10 × the floor"},
}

func (s *shards) plan(all contestants) (_ []*heat, err error) {
	half := informer.Shard{}.Split(2)[0].String()
	if s.half, err = (podserver.Options{Pods: s.pods}).InShard(half); err != nil {
		return nil, err
	}
	plain, sharded := simulatedHost(podserver.Options{Pods: s.pods}), simulatedHost(podserver.Options{Pods: s.pods, Sharded: true})
	s.heat = s.newHeat(race.ColdStart, s.pods, plain, sharded)
	for _, c := range shardCases {
		at, order := plain, race.Order{}
		if c.sharded {
			at = sharded
		}
		if c.half {
			order.Shard, order.Target.Objects = half, s.half
		}
		s.heat.addAt(at, race.Entry{Name: c.name, Floor: shardFloor}, all.named(c.contestant), order)
	}
	return []*heat{s.heat}, nil
}

var shardColumns = []column{
	notOfFloors(figure("objects delivered", count, delivered)), figure("received", mib, receivedMB), ratio("bytes, × the whole", shardWhole, receivedMB),
	figure("CPU", duration, cpu), ownRatio("CPU, × the floor", cpu), ratio("CPU, × the whole", shardWhole, cpu),
	{"reach", func(_ *heat, e race.Entry) string {
		for _, c := range shardCases {
			if c.name == e.Name {
				return c.reach
			}
		}
		return ""
	}},
	figure("wall", duration, wall), figure("server's CPU", duration, serverCPU), figure("peak RSS", mib, peakMB),
}

func (s *shards) sections() ([]section, error) {
	var b bytes.Buffer
	b.WriteString(s.head("## Half of a set"))
	fmt.Fprintf(&b, quoted(`
Cold starts of raw objects, in pages of 500 in JSON, of %s pods, and of those %s of them whose UIDs are in the first half of all hashes:
'InformerConfig.Shard'. A server with server-side shards ('ShardedListAndWatch') lists that half. One without them lists everything, and the informer
skips the other half on its side. Each start is a process of its own, and the servers ('bench/podserver') are others on the same cores. CPU is
that of the process from the start until all objects were delivered.
`), thousands(s.pods), thousands(s.half))
	s.heat.table(&b, fmt.Sprintf("Cold start of %s pods, and of half of them", thousands(s.pods)), shardColumns...)
	return []section{{more, "bench-shard", b.Bytes()}}, nil
}
