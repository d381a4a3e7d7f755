package main

import (
	"bytes"
	"fmt"
	"time"
)

// The reach of each case: what this library set itself.
var shardReach = map[string]string{
	shardServed:   "0.50 × the bytes, 0.55 × the CPU of the whole",
	shardFiltered: "1.10 × the floor",
}

// table writes what came out as Markdown.
func (r *shardReport) table(b *bytes.Buffer) {
	fmt.Fprintf(b, "## Half of a set\n\n    %s\n\n%s, on %s%s.\n%s\n", commandLine(), time.Now().UTC().Format(time.DateOnly), hardware(), r.load.alone(), medians(r.plan.runs))
	fmt.Fprintf(b, quoted(`
Cold starts of raw objects, in pages of 500 in JSON, of %s pods, and of those %s of them whose UIDs are in the first half of all hashes:
'InformerConfig.Shard'. A server with server-side shards ('ShardedListAndWatch') lists that half. One without them lists everything, and the informer
skips the other half on its side. Each start is a process of its own, and the servers ('bench/podserver') are others on the same cores. CPU is
that of the process from the start until all objects were delivered.
`), thousands(r.plan.pods), thousands(r.half))
	header(b, fmt.Sprintf("Cold start of %s pods, and of half of them", thousands(r.plan.pods)),
		"objects delivered", "received", "bytes, × the whole", "CPU", "CPU, × the floor", "CPU, × the whole", "reach", "wall", "server's CPU", "peak RSS")
	for _, c := range shardCases {
		objects := "-"
		if c.name != shardFloor {
			objects = thousands(int(r.of(c.name, delivered)))
		}
		row(b, c.name, objects, mib(r.of(c.name, receivedMB)), times(r.ratio(c.name, shardWhole, receivedMB)), duration(r.of(c.name, cpu)),
			times(r.ratio(c.name, shardFloor, cpu)), times(r.ratio(c.name, shardWhole, cpu)), shardReach[c.name],
			duration(r.of(c.name, wall)), duration(r.of(c.name, serverCPU)), mib(r.of(c.name, peakMB)))
	}
}
