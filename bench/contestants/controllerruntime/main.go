// Command controllerruntime has controller-runtime's cache of typed pods, its own and the one of
// package controllerruntime.
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rvinformer/informer/bench/podserver/extra"
	"github.com/rvinformer/informer/bench/race"
	"github.com/rvinformer/informer/controllerruntime"
	"github.com/rvinformer/informer/internal/testkit/samples"
)

func main() {
	log.SetLogger(logr.Discard())
	race.Main(
		contestant(race.ControllerRuntime, crcache.New), contestant(race.ControllerRuntimeOurs, controllerruntime.NewCache),
		custom("controller-runtime-custom", crcache.New), custom("controllerruntime-custom", controllerruntime.NewCache),
	)
}

func contestant(name string, construct crcache.NewCacheFunc) race.Contestant {
	entry := race.Entry{Name: name, Scenarios: []race.Scenario{race.Operator}}
	return race.Contestant{Entry: entry, Run: func(ctx context.Context, o race.Order) (race.Result, error) {
		var cache crcache.Cache
		return o.Informing(ctx, func(ctx context.Context, loss *race.Loss) (_ *race.Running, err error) {
			var running *race.Running
			cache, running, err = start(ctx, loss.Config(&o.Target), construct)
			return running, err
		}, func(costs *race.ReadCosts) error { return read(ctx, cache, o.Target.Objects, costs) })
	}}
}

// start starts a cache with an informer of pods.
func start(ctx context.Context, config *rest.Config, construct crcache.NewCacheFunc) (crcache.Cache, *race.Running, error) {
	kind := corev1.SchemeGroupVersion.WithKind("Pod")
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(kind, meta.RESTScopeNamespace)
	cache, err := construct(config, crcache.Options{Scheme: scheme.Scheme, Mapper: mapper})
	if err != nil {
		return nil, nil, err
	}
	if _, err := cache.GetInformer(ctx, &corev1.Pod{}, crcache.BlockUntilSynced(false)); err != nil {
		return nil, nil, err
	}
	ended, synced := make(chan struct{}), make(chan struct{})
	var failed error
	go func() {
		defer close(ended)
		failed = cache.Start(ctx)
	}()
	go func() {
		if cache.WaitForCacheSync(ctx) {
			close(synced)
		}
	}()
	running := &race.Running{Synced: synced, Wait: func() { <-ended }, Objects: func() (int, error) {
		select {
		case <-ended:
			return 0, errors.Join(failed, errors.New("the cache has stopped"))
		default:
		}
		n := 0
		for first := 0; ; first += samples.PerNamespace { // not all at once: that would be the peak
			listed, err := list(ctx, cache, samples.Namespace(first))
			if n += listed; err != nil || listed == 0 {
				return n, err
			}
		}
	}}
	return cache, running, nil
}

func list(ctx context.Context, from client.Reader, namespace string) (int, error) {
	var pods corev1.PodList
	err := from.List(ctx, &pods, client.InNamespace(namespace))
	return len(pods.Items), err
}

// How much is read in each round: so many pods by key, some of them again and again, and a
// namespace.
const (
	rounds   = 15
	readKeys = 500
	readHot  = 50
)

// read measures reading as controllers do it.
func read(ctx context.Context, from client.Reader, objects int, costs *race.ReadCosts) error {
	random := rand.New(rand.NewPCG(5, 6))
	cluster := samples.Cluster{Seed: extra.SampleSeed}
	var get, hot, copies, lists []time.Duration
	for range rounds {
		var keys []client.ObjectKey
		for range readKeys {
			keys = append(keys, client.ObjectKeyFromObject(cluster.Pod(random.IntN(objects), 0)))
		}
		pods := make([]corev1.Pod, readKeys)
		cpu := race.CPUTime()
		for k, key := range keys {
			if err := from.Get(ctx, key, &pods[k]); err != nil {
				return err
			}
		}
		get = append(get, (race.CPUTime()-cpu)/readKeys)
		again := func(do func(k int) error) (time.Duration, error) {
			for k := range readHot { // into the CPU's caches, and what else keeps what was read
				if err := do(k); err != nil {
					return 0, err
				}
			}
			cpu := race.CPUTime()
			for k := range readKeys {
				if err := do(k % readHot); err != nil {
					return 0, err
				}
			}
			return (race.CPUTime() - cpu) / readKeys, nil
		}
		took, err := again(func(k int) error {
			var pod corev1.Pod
			return from.Get(ctx, keys[k], &pod)
		})
		if err != nil {
			return err
		}
		hot = append(hot, took)
		took, err = again(func(k int) error {
			runtime.KeepAlive(pods[k].DeepCopy())
			return nil
		})
		if err != nil {
			return err
		}
		copies = append(copies, took)
		namespace := samples.Namespace(random.IntN(objects))
		cpu = race.CPUTime()
		n, err := list(ctx, from, namespace)
		if err != nil {
			return err
		}
		if lists = append(lists, race.CPUTime()-cpu); n != min(samples.PerNamespace, objects) {
			return fmt.Errorf("namespace %s has %d pods", namespace, n)
		}
	}
	costs.Get, costs.GetHot, costs.DeepCopy, costs.Namespace = race.Middle(get), race.Middle(hot), race.Middle(copies), race.Middle(lists)
	return nil
}
