// Command ourstyped has this library's informers of typed objects.
package main

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/bench/ours"
	"github.com/rvinformer/informer/bench/race"
)

func main() {
	contestant := func(name string, scenarios ...race.Scenario) race.Contestant {
		return ours.Contestant(name, "floor-protobuf-watchlist", &corev1.Pod{}, runtime.ContentTypeJSON, informer.ListModeAuto, scenarios...)
	}
	race.Main(
		contestant("ours-typed", race.ColdStart, race.Relist, race.SlowHandler, race.WatchBurst, race.Idle, race.Restart),
		contestant("ours-typed-relist", race.Restart).Remembering(race.Versions),
		contestant("ours-typed-resume", race.Restart).Remembering(race.Checkpoint),
	)
}
