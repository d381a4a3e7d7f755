package fleet_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/informertest"
)

// A definition comes back at once with another kind, or another scope: that is another resource. The
// handler is told of the end of the old objects under the old target, and of the new ones under the
// new target.
func TestAnotherKindUnderTheSameResource(t *testing.T) {
	for name, change := range map[string]func(*informertest.Resource){
		"kind":  func(r *informertest.Resource) { r.Kind = "Gizmo" },
		"scope": func(r *informertest.Resource) { r.Namespaced = false },
	} {
		for _, empty := range []bool{true, false} {
			for _, cut := range []bool{true, false} {
				bubbleRun(t, fmt.Sprintf("%s, empty %v, cut %v", name, empty, cut), func(t *testing.T) {
					east := serve(t, informertest.Options{Resources: withDefinitions()})
					define(t, east, gadgets)
					create(t, east, gadgets, "a", "b")
					m := newMirror()
					var told []string
					f := newFleet(t, m, fleet.Config{Configure: func(ctx context.Context, target fleet.Target) (informer.InformerConfig, error) {
						config, err := m.configure(ctx, target)
						inner := config.BatchHandler
						config.BatchHandler = informer.BatchHandlerFunc(func(ctx context.Context, events []informer.Event) error {
							for _, e := range events {
								if target.Resource == gadgets {
									told = append(told, fmt.Sprintf("%s %v %v %s", target.Kind, target.Namespaced, e.Type, e.Key))
								}
							}
							return inner.OnBatch(ctx, events)
						})
						return config, err
					}})
					follow(t, f, "east", east)
					time.Sleep(time.Minute)
					told = nil

					heal := func() {}
					if cut {
						heal = east.Inject(informertest.Fault{Match: informertest.Match{Resource: gadgets}, Effect: informertest.Status(503)})
						east.CloseClientConnections()
					}
					undefine(t, east, gadgets)
					r := served(gadgets)
					change(&r)
					east.AddResource(r)
					create(t, east, crds, "gadgets.example.com")
					key := "c"
					if r.Namespaced {
						key = "default/c"
					}
					put := func() {
						namespace := ""
						if r.Namespaced {
							namespace = "default"
						}
						o := object(gadgets, namespace, "c")
						o.SetKind(r.Kind)
						_, err := east.Create(gadgets, o)
						require.NoError(t, err)
					}
					if !empty {
						put()
					}
					time.Sleep(2 * time.Second)
					heal()
					time.Sleep(5 * time.Minute)
					require.NoError(t, f.WaitForSync(t.Context()))
					m.requireRight(t, "east", east, gadgets)
					if empty {
						put()
						time.Sleep(10 * time.Second)
						m.requireRight(t, "east", east, gadgets)
					}
					require.Contains(t, told, fmt.Sprintf("%s %v Added %s", r.Kind, r.Namespaced, key))
					require.Subset(t, told, []string{"Gadget true Deleted default/a", "Gadget true Deleted default/b"})
					require.False(t, slices.Contains(told, fmt.Sprintf("%s %v Deleted default/a", r.Kind, r.Namespaced)))
					now, _ := f.Cluster("east")
					require.NoError(t, now.LastError)
				})
			}
		}
	}
}
