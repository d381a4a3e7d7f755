package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// An error of Configure, a panic of it, and a configuration that cannot work: each is shown, tried
// again, and costs the others nothing.
func TestConfigureFails(t *testing.T) {
	utilruntime.ReallyCrash = false
	defer func() { utilruntime.ReallyCrash = true }()
	errAway := errors.New("the database is away")
	for name, wrong := range map[string]func() (informer.InformerConfig, error){
		"the database is away": func() (informer.InformerConfig, error) { return informer.InformerConfig{}, errAway },
		"panic":                func() (informer.InformerConfig, error) { panic("no") },
		"MaxBatch is -1": func() (informer.InformerConfig, error) {
			return informer.InformerConfig{MaxBatch: -1, Handler: informer.ResourceEventHandlerFuncs{}}, nil
		},
	} {
		bubbleRun(t, name, func(t *testing.T) {
			east := serve(t, informertest.Options{})
			create(t, east, pods, "a")
			create(t, east, widgets, "a")
			m := newMirror()
			tries := 0
			f := newFleet(t, m, fleet.Config{DiscoverEvery: time.Hour, Configure: func(ctx context.Context, target fleet.Target) (informer.InformerConfig, error) {
				if target.Resource == pods {
					if tries++; tries <= 6 {
						return wrong()
					}
				}
				return m.configure(ctx, target)
			}})
			require.NoError(t, f.Add("east", east.Config()))
			start(t, f.Run)
			time.Sleep(time.Second)
			m.requireRight(t, "east", east, widgets)
			now, _ := f.Cluster("east")
			var failed *fleet.TargetError
			require.ErrorAs(t, now.LastError, &failed)
			require.Equal(t, pods, failed.Target.Resource)
			require.ErrorContains(t, now.LastError, name)
			require.Equal(t, 2, now.Informers)
			require.False(t, now.Synced)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := f.WaitForSync(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, "east/all: v1/pods: ")
			require.ErrorContains(t, err, name)

			require.NoError(t, f.WaitForSync(t.Context()))
			require.Equal(t, 7, tries)
			m.requireRight(t, "east", east, pods)
			now, _ = f.Cluster("east")
			require.NoError(t, now.LastError)
		})
	}
}

// A resource went while its unit was not followed: the objects that the sink knows are told
// deleted, by an informer that Configure seeds.
func TestGoneBeforeUnitIsFollowed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		east := serve(t, informertest.Options{})
		create(t, east, pods, "a")
		m := newMirror()
		fails, asked := 2, 0
		f := newFleet(t, m, fleet.Config{
			Groups: []fleet.Group{{Except: []string{"widgets.example.com"}}},
			Known: func(_ context.Context, u fleet.Unit) ([]schema.GroupVersionResource, error) {
				require.Equal(t, fleet.Unit{Cluster: "east", Group: "all"}, u)
				if asked++; asked == 1 {
					return nil, errors.New("the database is away")
				}
				return []schema.GroupVersionResource{pods, widgets, gadgets}, nil
			},
			Configure: func(ctx context.Context, target fleet.Target) (informer.InformerConfig, error) {
				config, err := m.configure(ctx, target)
				if target.Resource == gadgets {
					if fails--; fails >= 0 {
						return config, errors.New("the database is away again")
					}
					config.Storage = informer.NewResourceVersionStorage()
					for _, name := range []string{"a", "b"} {
						require.NoError(t, config.Storage.Add(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: "5"}}))
					}
				}
				return config, err
			},
		})
		m.objects[place{"east", gadgets.GroupResource()}] = map[string]string{"default/a": "5", "default/b": "5"}
		require.NoError(t, f.Add("east", east.Config()))
		start(t, f.Run)
		time.Sleep(100 * time.Millisecond)
		now, _ := f.Cluster("east")
		require.ErrorContains(t, now.LastError, "the database is away")
		require.False(t, now.Synced)
		time.Sleep(10 * time.Second)
		now, _ = f.Cluster("east")
		require.ElementsMatch(t, []string{"Deleted default/a", "Deleted default/b"}, m.told("east", gadgets))
		require.Empty(t, m.told("east", widgets), "it is served, and not followed")
		require.NoError(t, now.LastError)
		require.Equal(t, 2, now.Informers)
		require.NoError(t, f.WaitForSync(t.Context()))
		require.Equal(t, 2, asked, "again after the error")
	})
}

// The server does not say at once that it lacks a resource of Known: it is asked again with each
// discovery until it does.
func TestGoneBeforeUnitIsFollowedIsAskedAgain(t *testing.T) {
	for name, other := range map[string]http.HandlerFunc{
		"it is not well": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusServiceUnavailable) },
		"discovery is ahead of lists": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"kind":"GadgetList","apiVersion":"example.com/v1"}`)
		},
	} {
		bubbleRun(t, name, func(t *testing.T) {
			var lists, asked atomic.Int32
			east := serve(t, informertest.Options{Wrap: harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
				if strings.HasSuffix(r.URL.Path, "/gadgets") && lists.Add(1) <= 5 {
					other(w, r)
					return false
				}
				return true
			})})
			m := newMirror()
			m.objects[place{"east", gadgets.GroupResource()}] = map[string]string{"default/a": "5"}
			f := newFleet(t, m, fleet.Config{
				Known: func(context.Context, fleet.Unit) ([]schema.GroupVersionResource, error) {
					asked.Add(1)
					return []schema.GroupVersionResource{gadgets}, nil
				},
				Configure: m.seeded,
			})
			require.NoError(t, f.Add("east", east.Config()))
			start(t, f.Run)
			time.Sleep(time.Hour)
			require.Equal(t, []string{"Deleted default/a"}, m.told("east", gadgets))
			require.EqualValues(t, 6, lists.Load(), "not any more after the answer")
			require.EqualValues(t, 1, asked.Load(), "Known is asked once")
		})
	}
}

// The informer that tells the end of a resource lists, also where it has the checkpoint of the one
// before: nothing would come of a watch.
func TestGoneWithCheckpoint(t *testing.T) {
	for name, meanwhile := range map[string]bool{"while followed": false, "between two runs": true} {
		bubbleRun(t, name, func(t *testing.T) {
			east := serve(t, informertest.Options{})
			create(t, east, pods, "a")
			create(t, east, widgets, "a", "b")
			m, folder := newMirror(), t.TempDir()
			follow := func() (stop func()) {
				f := newFleet(t, m, fleet.Config{
					Known: func(context.Context, fleet.Unit) ([]schema.GroupVersionResource, error) {
						return []schema.GroupVersionResource{widgets}, nil
					},
					Configure: func(ctx context.Context, target fleet.Target) (informer.InformerConfig, error) {
						config, err := m.seeded(ctx, target)
						config.Checkpoint = informer.FileCheckpoint(filepath.Join(folder, target.Resource.Resource))
						return config, err
					},
				})
				require.NoError(t, f.Add("east", east.Config()))
				return start(t, f.Run)
			}
			stop := follow()
			time.Sleep(2 * time.Minute)
			require.Len(t, m.told("east", widgets), 2)
			if meanwhile {
				stop()
			}
			east.RemoveResource(widgets)
			if meanwhile {
				stop = follow()
			}
			time.Sleep(20 * time.Minute)
			stop()
			require.ElementsMatch(t, []string{"Deleted default/a", "Deleted default/b"}, m.told("east", widgets))
		})
	}
}

// The informer that tells the end of a resource has the checkpoint of the one before, whatever that has
// listed, and whatever the address of the server is like.
func TestGoneWithCheckpointOfConfiguredSource(t *testing.T) {
	selecting := func(o *metav1.ListOptions) { o.LabelSelector = "!hidden" }
	for name, source := range map[string]func(c *rest.Config, own informer.DynamicListerWatcherFactory) cache.ListerWatcher{
		"the fleet's own": func(*rest.Config, informer.DynamicListerWatcherFactory) cache.ListerWatcher { return nil },
		"address without a scheme": func(c *rest.Config, _ informer.DynamicListerWatcherFactory) cache.ListerWatcher {
			c.Host = strings.TrimPrefix(c.Host, "https://")
			return nil
		},
		"namespace": func(_ *rest.Config, own informer.DynamicListerWatcherFactory) cache.ListerWatcher {
			return own.ForResource("default", widgets)
		},
		"selector": func(_ *rest.Config, own informer.DynamicListerWatcherFactory) cache.ListerWatcher {
			return own.ForResourceWithOptions("", widgets, selecting)
		},
		"other ListerWatcher": func(_ *rest.Config, own informer.DynamicListerWatcherFactory) cache.ListerWatcher {
			return &cache.ListWatch{ListFunc: own.ForResource("", widgets).List, WatchFunc: own.ForResource("", widgets).Watch}
		},
		"other ListerWatcher with a selector": func(_ *rest.Config, own informer.DynamicListerWatcherFactory) cache.ListerWatcher {
			return informer.NewFilteredListerWatcher(&cache.ListWatch{ListFunc: own.ForResource("", widgets).List, WatchFunc: own.ForResource("", widgets).Watch}, selecting)
		},
	} {
		bubbleRun(t, name, func(t *testing.T) {
			east := serve(t, informertest.Options{TLS: true})
			create(t, east, widgets, "a", "b")
			config := east.Config()
			own, err := informer.NewDynamicListerWatcherFactory(config)
			require.NoError(t, err)
			lw := source(config, own)
			m, folder := newMirror(), t.TempDir()
			f := newFleet(t, m, fleet.Config{
				Groups: []fleet.Group{{Resources: []string{"widgets.example.com"}}},
				Configure: func(ctx context.Context, target fleet.Target) (informer.InformerConfig, error) {
					config, err := m.configure(ctx, target)
					config.ListerWatcher = lw
					config.Checkpoint = informer.FileCheckpoint(filepath.Join(folder, target.Resource.Resource))
					return config, err
				},
			})
			require.NoError(t, f.Add("east", config))
			start(t, f.Run)
			time.Sleep(2 * time.Minute)
			require.Equal(t, []string{"Added default/a", "Added default/b"}, m.told("east", widgets))
			heal := east.Inject(informertest.Fault{Effect: informertest.Refuse()}) // no watch tells it
			east.CloseClientConnections()
			time.Sleep(time.Second)
			east.RemoveResource(widgets)
			heal()
			time.Sleep(20 * time.Minute)
			require.ElementsMatch(t, []string{"Deleted default/a", "Deleted default/b"}, m.told("east", widgets))
			now, _ := f.Cluster("east")
			require.Zero(t, now.Informers)
		})
	}
}

// The context of RunUnit ends while Configure or Known, which do not obey it, block: the informers
// of other targets have ended by then.
func TestInformersEndWhileUserBlocks(t *testing.T) {
	for _, blocks := range []string{"Configure", "Known"} {
		bubbleRun(t, blocks, func(t *testing.T) {
			east := serve(t, informertest.Options{})
			create(t, east, pods, "a")
			m, hold := newMirror(), make(chan struct{})
			f := newFleet(t, m, fleet.Config{
				Configure: func(ctx context.Context, target fleet.Target) (informer.InformerConfig, error) {
					if blocks == "Configure" && target.Resource == widgets {
						<-hold
					}
					return m.configure(ctx, target)
				},
				Known: func(context.Context, fleet.Unit) ([]schema.GroupVersionResource, error) {
					if blocks == "Known" {
						<-hold
					}
					return nil, nil
				},
			})
			require.NoError(t, f.Add("east", east.Config()))
			stop := start(t, func(ctx context.Context) { _ = f.RunUnit(ctx, f.Units()[0]) })
			time.Sleep(time.Second)
			require.Equal(t, []string{"Added default/a"}, m.told("east", pods))
			time.AfterFunc(time.Minute, func() { close(hold) })
			time.AfterFunc(time.Second, func() { create(t, east, pods, "b") })
			stop()
			require.Empty(t, m.told("east", pods), "after the end of the context")
		})
	}
}

// Informers that have ended while their unit goes on are not kept.
func TestEndedInformersAreFree(t *testing.T) {
	bubble(t, func(t *testing.T) {
		east := serve(t, informertest.Options{Resources: withDefinitions()})
		m := newMirror()
		var made []weak.Pointer[targetHandler]
		f := newFleet(t, m, fleet.Config{Configure: func(ctx context.Context, target fleet.Target) (informer.InformerConfig, error) {
			config, err := m.configure(ctx, target)
			if target.Resource == gadgets {
				h := &targetHandler{config.BatchHandler}
				made = append(made, weak.Make(h))
				config.BatchHandler = h
			}
			return config, err
		}})
		require.NoError(t, f.Add("east", east.Config()))
		start(t, f.Run)
		for range 5 {
			define(t, east, gadgets)
			time.Sleep(time.Minute)
			undefine(t, east, gadgets)
			time.Sleep(time.Minute)
		}
		require.Len(t, made, 5)
		runtime.GC()
		for _, h := range made {
			require.Nil(t, h.Value())
		}
	})
}

// targetHandler is a handler that can be pointed to.
type targetHandler struct{ informer.BatchHandler }

// A unit whose Configure blocks holds up nothing but itself, and ends with its cluster.
func TestConfigureBlocks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		east, west := serve(t, informertest.Options{}), serve(t, informertest.Options{})
		m := newMirror()
		f := newFleet(t, m, fleet.Config{Configure: func(ctx context.Context, target fleet.Target) (informer.InformerConfig, error) {
			if target.Cluster == "east" {
				<-ctx.Done()
				return informer.InformerConfig{}, fmt.Errorf("no configuration: %w", context.Cause(ctx))
			}
			return m.configure(ctx, target)
		}})
		require.NoError(t, f.Add("east", east.Config()))
		require.NoError(t, f.Add("west", west.Config()))
		start(t, f.Run)
		require.NoError(t, f.WaitForSync(t.Context(), "west"))
		time.Sleep(time.Hour)
		require.False(t, f.HasSynced())
		<-f.Remove("east")
		require.NoError(t, f.WaitForSync(t.Context()))
	})
}
