// Command floor has the floors: what they read is thrown away.
package main

import (
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/bench/floor"
	"github.com/rvinformer/informer/bench/race"
)

func main() {
	const metadata = floor.Protobuf + floor.AsMetadata
	race.Main(
		plain("floor-json-plain", floor.JSON), plain("floor-protobuf-plain", floor.Protobuf), plain("floor-metadata-protobuf-plain", metadata),
		contestant("floor-json", floor.JSON, false, race.ColdStart, race.Relist, race.WatchBurst, race.Idle),
		contestant("floor-protobuf", floor.Protobuf, false, race.ColdStart, race.Relist, race.WatchBurst),
		contestant("floor-metadata-protobuf", metadata, false, race.ColdStart, race.Relist, race.WatchBurst, race.Audit),
		contestant("floor-json-watchlist", floor.JSON, true, race.ColdStart, race.Relist, race.Restart),
		contestant("floor-protobuf-watchlist", floor.Protobuf, true, race.ColdStart, race.Relist, race.Restart),
		contestant("floor-metadata-protobuf-watchlist", metadata, true, race.ColdStart, race.Relist),
	)
}

func contestant(name, accept string, watchList bool, scenarios ...race.Scenario) race.Contestant {
	return race.Contestant{Entry: race.Entry{Name: name, Floor: name, Scenarios: scenarios}, Connect: func(t *race.Target) (race.Source, error) {
		client, err := rest.HTTPClientFor(t.Config())
		return floor.Source{Target: t, Client: client, Accept: accept, WatchList: watchList}, err
	}}
}

// plain is a floor whose pages are not compressed, for the ways to read a set.
func plain(name, accept string) race.Contestant {
	c := contestant(name, accept, false, race.Ways)
	c.Connect = func(t *race.Target) (race.Source, error) {
		config := t.Config()
		config.DisableCompression = true
		client, err := rest.HTTPClientFor(config)
		return floor.Source{Target: t, Client: client, Accept: accept}, err
	}
	return c
}
