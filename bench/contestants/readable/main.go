// Command readable has caches of whole objects that can be read: client-go's informers and stores,
// and those of package objectcache; each with typed pods and with unstructured custom resources. A
// store of objectcache has custom resources of a Go type, too; client-go's would be that of pods.
package main

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/bench/podserver/extra"
	"github.com/rvinformer/informer/bench/race"
	"github.com/rvinformer/informer/internal/testkit/samples"
)

func main() {
	var contestants []race.Contestant
	for _, c := range []race.Readable{
		{Name: race.ClientGoTyped, Object: pod, Store: clientGoStore, Open: clientGoTyped},
		{Name: race.OursTyped, Object: pod, Store: ourStore(&corev1.Pod{}), Open: ourTyped, Match: match},
		{Name: race.ClientGoDynamic, Object: release, Store: clientGoStore, Open: clientGoDynamic},
		{Name: race.OursUnstructured, Object: release, Store: ourStore(exampleRelease()), Open: ourUnstructured, Match: match},
	} {
		contestants = append(contestants, c.Contestant())
	}
	custom := race.Readable{Name: race.OursCustom, Object: workload, Store: ourStore(&samples.Workload{}), Match: match}.Contestant()
	custom.Scenarios = []race.Scenario{race.StoreMemory, race.Reading}
	contestants = append(contestants, custom)
	race.Main(contestants...)
}

var cluster = samples.Cluster{Seed: extra.SampleSeed}

// pod is one as a client decodes it: it shares no text with others.
func pod(i, revision int) runtime.Object {
	encoded, err := cluster.Pod(i, revision).Marshal()
	must(err)
	pod := &corev1.Pod{}
	must(pod.Unmarshal(encoded))
	return pod
}

// workload is one as a client decodes it.
func workload(i, revision int) runtime.Object {
	encoded, err := json.Marshal(cluster.Workload(i, revision))
	must(err)
	workload := &samples.Workload{}
	must(json.Unmarshal(encoded, workload))
	return workload
}

func release(i, revision int) runtime.Object {
	encoded, err := cluster.Release(i, revision).MarshalJSON()
	must(err)
	release := &unstructured.Unstructured{}
	must(release.UnmarshalJSON(encoded))
	return release
}

func exampleRelease() *unstructured.Unstructured {
	example := &unstructured.Unstructured{}
	example.SetGroupVersionKind(samples.ReleaseKind)
	return example
}

func indexers() cache.Indexers {
	return cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
}

func clientGoStore() cache.Indexer {
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers())
}

func clientGoTyped(ctx context.Context, t *race.Target, loss *race.Loss) (*race.Running, error) {
	config := loss.Config(t)
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return race.Run(ctx, informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer()), nil
}

func clientGoDynamic(ctx context.Context, t *race.Target, loss *race.Loss) (*race.Running, error) {
	client, err := dynamic.NewForConfig(loss.Config(t))
	if err != nil {
		return nil, err
	}
	return race.Run(ctx, dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(samples.ReleaseResource).Informer()), nil
}

// must is for objects that were made to be encoded.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
