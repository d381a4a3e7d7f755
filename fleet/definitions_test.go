package fleet_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

var (
	gadgets   = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
	gadgetsV2 = schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "gadgets"}
)

// withDefinitions are resources of a server that has custom resource definitions.
func withDefinitions() []informertest.Resource { return append(small(), served(crds)) }

// define serves a resource and writes its definition.
func define(t *testing.T, s *informertest.Server, r schema.GroupVersionResource) {
	s.AddResource(served(r))
	create(t, s, crds, r.Resource+"."+r.Group)
}

// undefine deletes the objects of a resource, the resource, and its definition.
func undefine(t *testing.T, s *informertest.Server, r schema.GroupVersionResource) {
	s.RemoveResource(r)
	require.NoError(t, s.Delete(crds, "", r.Resource+"."+r.Group))
}

func TestDefinitionsComeAndGo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		east := serve(t, informertest.Options{Resources: withDefinitions()})
		m := newMirror()
		f := newFleet(t, m, fleet.Config{DiscoverEvery: time.Hour})
		follow(t, f, "east", east)
		synctest.Wait() // definitions are watched
		for range 3 {
			define(t, east, gadgets)
			create(t, east, gadgets, "a", "b")
			time.Sleep(10 * time.Second)
			require.NoError(t, f.WaitForSync(t.Context()))
			m.requireRight(t, "east", east, gadgets)
			require.Equal(t, []string{"Added default/a", "Added default/b"}, m.told("east", gadgets))
			undefine(t, east, gadgets)
			time.Sleep(20 * time.Second)
			require.Equal(t, []string{"Deleted default/a", "Deleted default/b"}, m.told("east", gadgets))
			now, _ := f.Cluster("east")
			require.Equal(t, 4, now.Informers, "one has ended")
			require.Empty(t, now.Missing)
		}
	})
}

// Where definitions may not be watched, or there is no such API, discovery is repeated every few
// minutes.
func TestResourcesComeAndGoUnwatched(t *testing.T) {
	bubble(t, func(t *testing.T) {
		east := serve(t, informertest.Options{Resources: withDefinitions()})
		east.Inject(informertest.Fault{Match: informertest.Match{Resource: crds}, Effect: informertest.Status(403)})
		m := newMirror()
		f := newFleet(t, m, fleet.Config{Groups: []fleet.Group{{Except: []string{"customresourcedefinitions"}}}})
		follow(t, f, "east", east)
		east.AddResource(served(gadgets))
		create(t, east, gadgets, "a")
		time.Sleep(7 * time.Minute)
		m.requireRight(t, "east", east, gadgets)
		refused := 0
		for _, r := range east.Requests() {
			if r.GroupVersionResource == crds {
				refused++
			}
		}
		require.LessOrEqual(t, refused, 6, "the watch is tried again with each discovery, no sooner")
		east.RemoveResource(gadgets)
		time.Sleep(7 * time.Minute)
		require.Equal(t, []string{"Added default/a", "Deleted default/a"}, m.told("east", gadgets))
	})
}

// A resource goes while no watch is there to tell: what the handler was told is told deleted, in
// whatever form it takes objects.
func TestGoneUnwatched(t *testing.T) {
	for name, example := range map[string]runtime.Object{"unstructured": nil, "raw": &informer.RawObject{}, "metadata": &metav1.PartialObjectMetadata{}, "typed": &corev1.Pod{}} {
		bubbleRun(t, name, func(t *testing.T) {
			resource := gadgets
			if name == "typed" {
				resource = pods
			}
			east := serve(t, informertest.Options{Resources: []informertest.Resource{served(deployments), served(nodes), served(resource)}})
			create(t, east, resource, "a", "b", "c")
			m := newMirror()
			f := newFleet(t, m, fleet.Config{
				Groups: []fleet.Group{{Resources: []string{"pods", "*.example.com"}}},
				Configure: func(ctx context.Context, target fleet.Target) (informer.InformerConfig, error) {
					config, err := m.configure(ctx, target)
					config.ExampleObject = example
					return config, err
				},
			})
			follow(t, f, "east", east)
			m.told("east", resource)
			heal := east.Inject(informertest.Fault{Effect: informertest.Refuse()})
			require.NoError(t, east.Delete(resource, "default", "a"))
			east.RemoveResource(resource)
			time.Sleep(time.Minute)
			heal()
			time.Sleep(10 * time.Minute)
			require.ElementsMatch(t, []string{"Deleted default/a", "Deleted default/b", "Deleted default/c"}, m.told("east", resource))
			now, _ := f.Cluster("east")
			require.Zero(t, now.Informers)
			require.NoError(t, now.LastError)
		})
	}
}

// The handler fails while it is told that a resource is gone: it is told again, also if the
// resource is back meanwhile.
func TestGoneAndBackWhileHandlerFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		east := serve(t, informertest.Options{Resources: withDefinitions()})
		define(t, east, gadgets)
		create(t, east, gadgets, "a", "b")
		m := newMirror()
		f := newFleet(t, m, fleet.Config{})
		follow(t, f, "east", east)
		synctest.Wait() // definitions are watched
		m.told("east", gadgets)
		m.stall(fmt.Errorf("the database is down"))
		undefine(t, east, gadgets)
		time.Sleep(time.Minute)
		require.Empty(t, m.told("east", gadgets))
		define(t, east, gadgets)
		create(t, east, gadgets, "b", "c")
		time.Sleep(time.Minute)
		m.stall(nil)
		time.Sleep(time.Minute)
		require.NoError(t, f.WaitForSync(t.Context()))
		m.requireRight(t, "east", east, gadgets)
		require.Contains(t, m.told("east", gadgets), "Deleted default/a")
	})
}

func TestDefinitionChangesVersion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var preferred atomic.Pointer[string]
		east := serve(t, informertest.Options{Resources: withDefinitions(), Wrap: preferring(&preferred)})
		define(t, east, gadgets)
		create(t, east, gadgets, "a", "b")
		m := newMirror()
		f := newFleet(t, m, fleet.Config{DiscoverEvery: time.Hour})
		follow(t, f, "east", east)
		synctest.Wait() // definitions are watched
		require.Equal(t, []string{"Added default/a", "Added default/b"}, m.told("east", gadgets))

		// Another version is served, with the same objects but for one, and preferred.
		east.AddResource(served(gadgetsV2))
		create(t, east, gadgetsV2, "b", "c")
		v2 := "v2"
		preferred.Store(&v2)
		touch(t, east, crds, "gadgets.example.com")
		time.Sleep(10 * time.Second)
		require.NoError(t, f.WaitForSync(t.Context()))
		require.ElementsMatch(t, []string{"Updated default/b", "Added default/c", "Deleted default/a"}, m.told("east", gadgets))
		m.requireRight(t, "east", east, gadgetsV2)
		now, _ := f.Cluster("east")
		require.Equal(t, 5, now.Informers)

		// The version is not served any more.
		preferred.Store(nil)
		require.NoError(t, east.Delete(gadgets, "default", "a"))
		east.RemoveResource(gadgetsV2)
		touch(t, east, crds, "gadgets.example.com")
		time.Sleep(time.Minute)
		require.NoError(t, f.WaitForSync(t.Context()))
		m.requireRight(t, "east", east, gadgets)
	})
}

// A version that a pattern names is followed for as long as it is served, whatever the server
// prefers.
func TestNamedVersion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		east := serve(t, informertest.Options{Resources: append(withDefinitions(), served(gadgets), served(gadgetsV2))})
		m := newMirror()
		f := newFleet(t, m, fleet.Config{Groups: []fleet.Group{{Resources: []string{"*", "gadgets.v2.example.com"}}}})
		follow(t, f, "east", east)
		require.Equal(t, 1, m.configured(gadgetsV2))
		require.Zero(t, m.configured(gadgets))
		east.RemoveResource(gadgetsV2)
		time.Sleep(10 * time.Minute)
		require.Equal(t, 1, m.configured(gadgets))
		now, _ := f.Cluster("east")
		require.Len(t, now.Missing, 1)
		require.ErrorContains(t, now.Missing[0], "gadgets.v2.example.com")
	})
}

// A group that names the kind in place of the resource follows nothing. It says so, once, with the
// right name.
func TestGroupThatNamesAKindSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		east := serve(t, informertest.Options{})
		log := ktesting.NewLogger(ktesting.NopTL{}, ktesting.NewConfig(ktesting.BufferLogs(true)))
		f := newFleet(t, newMirror(), fleet.Config{Groups: []fleet.Group{{Resources: []string{"pod", "deployments"}}}})
		require.NoError(t, f.Add("east", east.Config()))
		start(t, func(ctx context.Context) { f.Run(klog.NewContext(ctx, log)) })
		require.NoError(t, f.WaitForSync(t.Context()))
		time.Sleep(24 * time.Hour) // many discoveries
		now, _ := f.Cluster("east")
		require.Len(t, now.Missing, 1)
		require.EqualError(t, now.Missing[0], "the cluster has no resource pod that can be listed and watched: the resource of the kind Pod is pods")
		text := log.GetSink().(ktesting.Underlier).GetBuffer().String()
		require.Equal(t, 1, strings.Count(text, "Fleet lacks a resource"), text)
		require.Contains(t, text, now.Missing[0].Error())
	})
}

// preferring makes the named version of a group the preferred one.
func preferring(version *atomic.Pointer[string]) func(http.Handler) http.Handler {
	return func(server http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			v := version.Load()
			if v == nil || r.URL.Path != "/apis" {
				server.ServeHTTP(w, r)
				return
			}
			edited := editedAnswer{w, func(text string) string {
				return strings.ReplaceAll(text, `"preferredVersion":{"groupVersion":"example.com/v1","version":"v1"}`, fmt.Sprintf(`"preferredVersion":{"groupVersion":"example.com/%s","version":"%s"}`, *v, *v))
			}}
			server.ServeHTTP(edited, r)
		})
	}
}

// editedAnswer is an answer whose text is changed.
type editedAnswer struct {
	http.ResponseWriter
	edit func(string) string
}

func (e editedAnswer) Write(b []byte) (int, error) {
	e.Header().Del("Content-Length")
	if _, err := e.ResponseWriter.Write([]byte(e.edit(string(b)))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// touch changes an object.
func touch(t *testing.T, s *informertest.Server, r schema.GroupVersionResource, name string) {
	o, err := s.Get(r, "", name)
	require.NoError(t, err)
	o.SetLabels(map[string]string{"touched": o.GetResourceVersion()})
	_, err = s.Update(r, o)
	require.NoError(t, err)
}

// One aggregated API is broken: the others are followed, and its informers go on.
func TestPartlyBrokenDiscovery(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var broken atomic.Bool
		broken.Store(true)
		refusing := harness.Refusing(http.StatusServiceUnavailable, func(r *http.Request) bool {
			return broken.Load() && r.URL.Path == "/apis/example.com/v1"
		})
		east := serve(t, informertest.Options{Resources: append(small(), served(gadgetsV2)), Wrap: refusing})
		create(t, east, widgets, "a")
		create(t, east, pods, "a")
		m := newMirror()
		f := newFleet(t, m, fleet.Config{})
		follow(t, f, "east", east)
		m.requireRight(t, "east", east, pods)
		now, _ := f.Cluster("east")
		require.Equal(t, fleet.ClusterPartlyKnown, now.State)
		require.Len(t, now.Missing, 1)
		require.ErrorContains(t, now.Missing[0], "example.com/v1")
		require.Equal(t, 3, now.Informers)

		broken.Store(false)
		time.Sleep(2 * time.Minute)
		m.requireRight(t, "east", east, widgets)
		now, _ = f.Cluster("east")
		require.Equal(t, fleet.ClusterKnown, now.State)
		require.Empty(t, now.Missing)

		broken.Store(true)
		east.RemoveResource(gadgetsV2) // is not believed to be gone
		time.Sleep(time.Hour)
		create(t, east, widgets, "b")
		synctest.Wait()
		m.requireRight(t, "east", east, widgets)
		now, _ = f.Cluster("east")
		require.Equal(t, 4, now.Informers)
		require.NotContains(t, m.told("east", widgets), "Deleted default/a")
		broken.Store(false)
		time.Sleep(10 * time.Minute)
		now, _ = f.Cluster("east")
		require.Equal(t, 3, now.Informers)
	})
}

// The permission to discover is lost, or something hides a resource that is served: nothing ends.
func TestHiddenResourcesGoOn(t *testing.T) {
	for name, hide := range map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"forbidden": func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasPrefix(r.URL.Path, "/api/v1/") {
				http.Error(w, "no", http.StatusForbidden)
				return true
			}
			return false
		},
		"empty": func(w http.ResponseWriter, r *http.Request) bool {
			switch r.URL.Path {
			case "/api":
				fmt.Fprint(w, `{"kind":"APIVersions","apiVersion":"v1","versions":[]}`)
			case "/apis":
				fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
			default:
				return false
			}
			return true
		},
		"core not found, nor listed": func(w http.ResponseWriter, r *http.Request) bool {
			gone := r.URL.Path == "/api" || strings.HasPrefix(r.URL.Path, "/api/") && r.URL.Query().Get("limit") == "1"
			if gone {
				http.NotFound(w, r)
			}
			return gone
		},
		"core only, by a proxy": func(w http.ResponseWriter, r *http.Request) bool {
			switch {
			case r.URL.Path == "/apis":
				fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
			case strings.HasPrefix(r.URL.Path, "/apis/"):
				w.Header().Set("Content-Type", "text/html")
				w.WriteHeader(http.StatusNotFound)
				fmt.Fprint(w, "<html>no such page</html>")
			default:
				return false
			}
			return true
		},
		"core not found": func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/api" {
				http.NotFound(w, r)
			}
			return r.URL.Path == "/api"
		},
	} {
		bubbleRun(t, name, func(t *testing.T) {
			var hidden atomic.Bool
			east := serve(t, informertest.Options{Wrap: harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
				return !hidden.Load() || !hide(w, r)
			})})
			create(t, east, pods, "a")
			create(t, east, widgets, "a")
			m := newMirror()
			f := newFleet(t, m, fleet.Config{})
			follow(t, f, "east", east)
			m.told("east", pods)
			m.told("east", widgets)
			hidden.Store(true)
			time.Sleep(time.Hour)
			create(t, east, pods, "b")
			time.Sleep(time.Second)
			require.Equal(t, []string{"Added default/b"}, m.told("east", pods))
			require.Empty(t, m.told("east", widgets))
			require.True(t, f.HasSynced())
			now, _ := f.Cluster("east")
			require.Equal(t, 3, now.Informers)
			if !strings.HasPrefix(name, "core") {
				require.Equal(t, fleet.ClusterLost, now.State)
				require.Error(t, now.LastError)
				require.NotZero(t, now.LastErrorTime)
			}
			hidden.Store(false)
			time.Sleep(10 * time.Minute)
			now, _ = f.Cluster("east")
			require.NoError(t, now.LastError)
			require.Equal(t, fleet.ClusterKnown, now.State)
		})
	}
}

// One bad answer to discovery and to a list is not enough to take a resource for gone.
func TestOneBadAnswerEndsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var bad atomic.Int32
		east := serve(t, informertest.Options{Wrap: harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
			switch {
			case r.URL.Path == "/apis" && bad.Load() == 1:
				bad.Store(2)
				fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
			case bad.Load() == 2 && r.URL.Query().Get("limit") == "1":
				bad.Store(3)
				http.NotFound(w, r)
			default:
				return true
			}
			return false
		})})
		create(t, east, widgets, "a")
		m := newMirror()
		f := newFleet(t, m, fleet.Config{})
		follow(t, f, "east", east)
		m.told("east", widgets)
		bad.Store(1)
		time.Sleep(time.Hour)
		require.EqualValues(t, 3, bad.Load())
		require.Empty(t, m.told("east", widgets))
		now, _ := f.Cluster("east")
		require.Equal(t, 3, now.Informers)
	})
}

// Configure fails at a change of version: it is tried again after a pause, not with the next
// discovery.
func TestConfigureFailsAtChangeOfVersion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		east := serve(t, informertest.Options{Resources: append(small(), served(gadgets))})
		create(t, east, gadgets, "a")
		m := newMirror()
		failed := time.Time{}
		f := newFleet(t, m, fleet.Config{DiscoverEvery: time.Hour, Configure: func(ctx context.Context, target fleet.Target) (informer.InformerConfig, error) {
			if target.Resource == gadgetsV2 && failed.IsZero() {
				failed = time.Now()
				return informer.InformerConfig{}, fmt.Errorf("the database is away")
			}
			return m.configure(ctx, target)
		}})
		follow(t, f, "east", east)
		east.RemoveResource(gadgets)
		east.AddResource(served(gadgetsV2))
		create(t, east, gadgetsV2, "b")
		for m.configured(gadgetsV2) == 0 {
			time.Sleep(time.Second)
		}
		require.False(t, failed.IsZero())
		require.Less(t, time.Since(failed), 10*time.Second)
		require.NoError(t, f.WaitForSync(t.Context()))
		m.requireRight(t, "east", east, gadgetsV2)
	})
}

// While the informer of the former version ends, a discovery fails in part and lacks the resource:
// that is no reason to tell anything deleted.
func TestBrokenDiscoveryAmidChangeOfVersion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var broken atomic.Bool
		var preferred atomic.Pointer[string]
		refusing := harness.Refusing(http.StatusServiceUnavailable, func(r *http.Request) bool {
			return broken.Load() && strings.HasPrefix(r.URL.Path, "/apis/example.com/")
		})
		east := serve(t, informertest.Options{Resources: append(withDefinitions(), served(gadgets)), Wrap: func(server http.Handler) http.Handler {
			return refusing(preferring(&preferred)(server))
		}})
		create(t, east, gadgets, "a", "b")
		m := newMirror()
		f := newFleet(t, m, fleet.Config{DiscoverEvery: 5 * time.Minute})
		follow(t, f, "east", east)
		m.told("east", gadgets)

		hold := make(chan struct{})
		m.mu.Lock()
		m.block = func(context.Context, fleet.Target) error {
			<-hold
			return nil
		}
		m.mu.Unlock()
		create(t, east, gadgets, "c") // its handler call keeps the informer from ending
		east.AddResource(served(gadgetsV2))
		create(t, east, gadgetsV2, "a", "b", "c")
		v2 := "v2"
		preferred.Store(&v2)
		time.Sleep(7 * time.Minute)
		broken.Store(true)
		time.Sleep(7 * time.Minute)
		close(hold)
		time.Sleep(10 * time.Minute)
		require.NotContains(t, fmt.Sprint(m.told("east", gadgets)), "Deleted")
		broken.Store(false)
		time.Sleep(10 * time.Minute)
		require.NoError(t, f.WaitForSync(t.Context()))
		m.requireRight(t, "east", east, gadgetsV2)
		require.NotContains(t, fmt.Sprint(m.told("east", gadgets)), "Deleted")
	})
}

// What discovery does not show is no sign: a definition whose annotations, managed fields and status are
// written every two seconds, as by a controller that reports that it lives.
func TestPatchedDefinitionsAreNoSign(t *testing.T) {
	bubble(t, func(t *testing.T) {
		east := serve(t, informertest.Options{Resources: withDefinitions()})
		definition := object(crds, "", "gadgets.example.com")
		definition.SetGeneration(1)
		_, err := east.Create(crds, definition)
		require.NoError(t, err)
		east.AddResource(served(gadgets))
		m := newMirror()
		f := newFleet(t, m, fleet.Config{DiscoverEvery: time.Hour})
		follow(t, f, "east", east)
		time.Sleep(3 * time.Minute)
		discovered := func() time.Time {
			now, _ := f.Cluster("east")
			return now.Discovered
		}
		before := discovered()
		for n := range 900 {
			definition.SetAnnotations(map[string]string{"beat": fmt.Sprint(n)})
			_, err := east.Update(crds, definition)
			require.NoError(t, err)
			time.Sleep(2 * time.Second)
		}
		require.Equal(t, before, discovered())
		definition.SetGeneration(2)
		_, err = east.Update(crds, definition)
		require.NoError(t, err)
		time.Sleep(3 * time.Second)
		require.NotEqual(t, before, discovered())
	})
}
