// Command ways has informers of each form of objects, which read the set in each way that there is.
package main

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/bench/ours"
	"github.com/rvinformer/informer/bench/race"
)

func main() {
	const json, protobuf = runtime.ContentTypeJSON, runtime.ContentTypeProtobuf
	var contestants []race.Contestant
	for _, f := range []struct {
		name, floor string
		example     runtime.Object
		contentType string
	}{
		{"raw-json", "json", &informer.RawObject{}, json},
		{"raw-protobuf", "protobuf", &informer.RawObject{}, protobuf},
		{"metadata", "metadata-protobuf", &metav1.PartialObjectMetadata{}, json},
		{"unstructured", "json", &unstructured.Unstructured{}, json},
		{"typed", "protobuf", &corev1.Pod{}, json},
	} {
		for _, w := range []struct {
			name, floor string
			way         ours.Way
		}{
			{race.WayWatchList, "-watchlist", ours.Way{Mode: informer.ListModeWatchList}},
			{race.WayPages, "", ours.Way{Mode: informer.ListModePaged}},
			{race.WayPlainPages, "-plain", ours.Way{Mode: informer.ListModePaged, Plain: true}},
			{race.WayAuto, "-watchlist", ours.Way{}},
		} {
			contestants = append(contestants, ours.ContestantIn(w.way, f.name+", "+w.name, "floor-"+f.floor+w.floor, f.example, f.contentType, race.ColdStart))
		}
	}
	race.Main(contestants...)
}
