// Command factories has the typed informer of pods of one factory, client-go's or ours,
// and measures its memory: at most in its start, settled, and at most in a list that
// comes after a lost watch.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/bench/race"
	"github.com/rvinformer/informer/factory/typed"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := measure(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// measure obeys the order on its input and writes race.Peaks to its output.
func measure(ctx context.Context) error {
	var o race.FactoryOrder
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		return fmt.Errorf("orders: %w", err)
	}
	loss := &race.Loss{}
	config := loss.Config(&o.Target)
	config.ContentType = runtime.ContentTypeJSON
	if o.Protobuf {
		config.ContentType = runtime.ContentTypeProtobuf
	}
	f, err := open(o.Ours, config)
	if err != nil {
		return err
	}
	i := f.Core().V1().Pods().Informer()
	registration, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer f.Shutdown()
	defer cancel()
	f.StartWithContext(ctx)
	peaks, err := loss.Measure(ctx, registration.HasSyncedChecker().Done(), func() error {
		if n := len(i.GetStore().ListKeys()); n != o.Target.Objects {
			return fmt.Errorf("the store has %d objects instead of %d", n, o.Target.Objects)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(peaks)
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
