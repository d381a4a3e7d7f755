// Command floorcopies has floors that also make an object for each that comes, a deep copy of the
// first, and do nothing else with it.
package main

import (
	"context"
	"encoding/json"
	"runtime"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	krt "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/bench/floor"
	"github.com/rvinformer/informer/bench/race"
)

func main() {
	race.Main(
		contestant("floor-copies-metadata", "floor-metadata-protobuf-watchlist", floor.Protobuf+floor.AsMetadata, func(list []byte) (func(), error) {
			var objects metav1.PartialObjectMetadataList
			err := json.Unmarshal(list, &objects)
			return func() { runtime.KeepAlive(objects.Items[0].DeepCopy()) }, err
		}),
		contestant("floor-copies-unstructured", "floor-json-watchlist", floor.JSON, func(list []byte) (func(), error) {
			var objects unstructured.UnstructuredList
			err := krt.DecodeInto(unstructured.UnstructuredJSONScheme, list, &objects)
			return func() { runtime.KeepAlive(objects.Items[0].DeepCopy()) }, err
		}),
		contestant("floor-copies-typed", "floor-protobuf-watchlist", floor.Protobuf, func(list []byte) (func(), error) {
			var objects corev1.PodList
			err := json.Unmarshal(list, &objects)
			return func() { runtime.KeepAlive(objects.Items[0].DeepCopy()) }, err
		}),
	)
}

func contestant(name, own, accept string, decode func(list []byte) (func(), error)) race.Contestant {
	entry := race.Entry{Name: name, Floor: own, Scenarios: []race.Scenario{race.ColdStart, race.WatchBurst}}
	return race.Contestant{Entry: entry, Connect: func(t *race.Target) (race.Source, error) {
		client, err := rest.HTTPClientFor(t.Config())
		if err != nil {
			return nil, err
		}
		// Only pages have the version that a watch of changes begins with.
		source := floor.Source{Target: t, Client: client, Accept: accept, WatchList: t.Events == 0}
		return source, source.CopyFirst(context.Background(), decode)
	}}
}
