// Command factories has the typed informer of pods of one factory, client-go's or ours,
// and measures its memory: at most in its start, settled, and at most in a list that
// comes after a lost watch.
package main

import (
	"context"
	"fmt"

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
				Entry: race.Entry{Name: f.name + ", " + form.name, Scenarios: []race.Scenario{race.Factory}},
				Run: func(ctx context.Context, o race.Order) (race.Result, error) {
					return measure(ctx, o, f.ours, form.contentType)
				},
			})
		}
	}
	race.Main(contestants...)
}

func measure(ctx context.Context, o race.Order, ours bool, contentType string) (r race.Result, err error) {
	loss := &race.Loss{}
	config := loss.Config(&o.Target)
	config.ContentType = contentType
	f, err := open(ours, config)
	if err != nil {
		return r, err
	}
	i := f.Core().V1().Pods().Informer()
	registration, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {}})
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer f.Shutdown()
	defer cancel()
	f.StartWithContext(ctx)
	r.Objects = o.Target.Objects
	r.Peaks, err = loss.Measure(ctx, registration.HasSyncedChecker().Done(), func() error {
		if n := len(i.GetStore().ListKeys()); n != o.Target.Objects {
			return fmt.Errorf("the store has %d objects instead of %d", n, o.Target.Objects)
		}
		return nil
	})
	return r, err
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
