// Command factories has the typed informer of pods of one factory, client-go's or ours,
// and measures its memory: at most in its start, settled, and at most in a list that
// comes after a lost watch.
package main

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/bench/race"
	"github.com/rvinformer/informer/factory/typed"
)

func main() {
	var contestants []race.Contestant
	for _, form := range []struct{ name, contentType string }{{"protobuf", runtime.ContentTypeProtobuf}, {"JSON", runtime.ContentTypeJSON}} {
		for _, f := range []struct {
			name string
			ours bool
		}{{"`factory/typed`", true}, {"client-go's", false}} {
			contestants = append(contestants, race.Contestant{
				Entry: race.Entry{Name: f.name + ", " + form.name, Scenarios: []race.Scenario{race.Informing}},
				Run: func(ctx context.Context, o race.Order) (race.Result, error) {
					return o.Informing(ctx, func(ctx context.Context, loss *race.Loss) (*race.Running, error) {
						config := loss.Config(&o.Target)
						config.ContentType = form.contentType
						return run(ctx, f.ours, config)
					}, nil)
				},
			})
		}
	}
	race.Main(contestants...)
}

// run runs the informer of a factory.
func run(ctx context.Context, ours bool, config *rest.Config) (*race.Running, error) {
	f, err := open(ours, config)
	if err != nil {
		return nil, err
	}
	i := f.Core().V1().Pods().Informer()
	registration, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {}})
	if err != nil {
		return nil, err
	}
	f.StartWithContext(ctx)
	return &race.Running{
		Synced:  registration.HasSyncedChecker().Done(),
		Objects: func() (int, error) { return len(i.GetStore().ListKeys()), nil },
		Wait:    f.Shutdown,
	}, nil
}

func open(ours bool, config *rest.Config) (informers.SharedInformerFactory, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if ours {
		return typed.NewSharedInformerFactoryWithOptions(client, 0, typed.WithRESTConfig(config)), nil
	}
	return informers.NewSharedInformerFactory(client, 0), nil
}
