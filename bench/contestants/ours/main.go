// Command ours has this library's informers, but for the typed ones: these need
// code that the others do not have in memory.
package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/bench/ours"
	"github.com/rvinformer/informer/bench/race"
)

func main() {
	const json, protobuf = runtime.ContentTypeJSON, runtime.ContentTypeProtobuf
	const watchList, paged = informer.ListModeAuto, informer.ListModePaged
	raw, metadata, decoded := &informer.RawObject{}, &metav1.PartialObjectMetadata{}, &unstructured.Unstructured{}
	starts := []race.Scenario{race.ColdStart, race.Relist}
	every := append(starts, race.SlowHandler, race.WatchBurst, race.Idle)
	race.Main(
		ours.Contestant("ours-raw", "floor-json-watchlist", raw, json, watchList, append(every, race.Restart)...),
		ours.Contestant("ours-raw-relist", "floor-json-watchlist", raw, json, watchList, race.Restart).Remembering(race.Versions),
		ours.Contestant("ours-raw-resume", "floor-json-watchlist", raw, json, watchList, race.Restart).Remembering(race.Checkpoint),
		ours.Contestant("ours-raw-paged", "floor-json", raw, json, paged, append(starts, race.SlowHandler)...),
		ours.Contestant("ours-raw-protobuf", "floor-protobuf-watchlist", raw, protobuf, watchList, every...),
		ours.Contestant("ours-raw-protobuf-paged", "floor-protobuf", raw, protobuf, paged, starts...),
		ours.Contestant("ours-raw-audited", "floor-metadata-protobuf", raw, json, watchList, race.Audit),
		ours.Contestant("ours-metadata", "floor-metadata-protobuf-watchlist", metadata, json, watchList, every...),
		ours.Contestant("ours-unstructured", "floor-json-watchlist", decoded, json, watchList, every...),
	)
}
