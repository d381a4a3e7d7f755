// Command ourstyped has this library's informers of typed objects: pods, which come in protobuf, and
// custom resources, which come in JSON.
package main

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/bench/ours"
	"github.com/rvinformer/informer/bench/race"
	"github.com/rvinformer/informer/internal/testkit/samples"
)

func main() {
	contestant := func(name string, scenarios ...race.Scenario) race.Contestant {
		return ours.Contestant(name, "floor-protobuf-watchlist", &corev1.Pod{}, runtime.ContentTypeJSON, informer.ListModeAuto, scenarios...)
	}
	custom := &samples.Workload{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}} // as the server calls them
	race.Main(
		contestant("ours-typed", race.ColdStart, race.Relist, race.SlowHandler, race.WatchBurst, race.Idle, race.Restart),
		contestant("ours-typed-relist", race.Restart).Remembering(race.Versions),
		contestant("ours-typed-resume", race.Restart).Remembering(race.Checkpoint),
		ours.Contestant("ours-custom", "floor-json-watchlist", custom, runtime.ContentTypeJSON, informer.ListModeAuto, race.ColdStart, race.Relist, race.WatchBurst),
	)
}
