// Command floor has the floors: what they read is thrown away.
package main

import (
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/bench/floor"
	"github.com/rvinformer/informer/bench/race"
)

// way is how a set is read: in pages, in pages that are not compressed, or as a watch-list.
type way int

const (
	pages way = iota
	plainPages
	watchList
)

func main() {
	const metadata = floor.Protobuf + floor.AsMetadata
	race.Main(
		// These are for the ways to read a set alone.
		contestant("floor-json-plain", floor.JSON, plainPages), contestant("floor-protobuf-plain", floor.Protobuf, plainPages),
		contestant("floor-metadata-protobuf-plain", metadata, plainPages),
		contestant("floor-json", floor.JSON, pages, race.ColdStart, race.Relist, race.WatchBurst, race.Idle),
		contestant("floor-protobuf", floor.Protobuf, pages, race.ColdStart, race.Relist, race.WatchBurst),
		contestant("floor-metadata-protobuf", metadata, pages, race.ColdStart, race.Relist, race.WatchBurst, race.Audit),
		contestant("floor-json-watchlist", floor.JSON, watchList, race.ColdStart, race.Relist, race.Restart),
		contestant("floor-protobuf-watchlist", floor.Protobuf, watchList, race.ColdStart, race.Relist, race.Restart),
		contestant("floor-metadata-protobuf-watchlist", metadata, watchList, race.ColdStart, race.Relist),
	)
}

func contestant(name, accept string, w way, scenarios ...race.Scenario) race.Contestant {
	return race.Contestant{Entry: race.Entry{Name: name, Floor: name, Scenarios: scenarios}, Connect: func(t *race.Target) (race.Source, error) {
		config := t.Config()
		config.DisableCompression = w == plainPages
		client, err := rest.HTTPClientFor(config)
		return floor.Source{Target: t, Client: client, Accept: accept, WatchList: w == watchList}, err
	}}
}
