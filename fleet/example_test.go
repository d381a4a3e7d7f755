package fleet_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/informertest"
)

func Example() {
	east, west := informertest.NewServer(informertest.Options{}), informertest.NewServer(informertest.Options{}) // for clusters
	defer east.Close()
	defer west.Close()
	create(failing{}, east, pods, "web")

	f, err := fleet.New(fleet.Config{
		Groups: []fleet.Group{{Resources: []string{"pods", "*.example.com"}}},
		Configure: func(_ context.Context, t fleet.Target) (informer.InformerConfig, error) {
			return informer.InformerConfig{Handler: informer.ResourceEventHandlerFuncs{
				AddFunc: func(obj any) { fmt.Println(t) },
			}}, nil
		},
	})
	if err != nil {
		panic(err)
	}
	if err := f.Add("east", east.Config()); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { f.Run(ctx) })
	if err := f.Add("west", west.Config()); err != nil { // at any time
		panic(err)
	}
	if err := f.WaitForSync(ctx); err != nil {
		panic(err)
	}
	<-f.Remove("west")
	for _, c := range f.Clusters() {
		fmt.Printf("%s is %v, %d of %d informers have synced\n", c.Name, c.State, c.SyncedInformers, c.Informers)
	}
	cancel()
	running.Wait()
	// Output:
	// east/all: v1/pods
	// east is known, 2 of 2 informers have synced
}

// failing is the test of an example.
type failing struct{}

func (failing) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (failing) FailNow()                          { panic("failed") }
