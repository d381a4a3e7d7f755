package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/informertest"
)

var (
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodes       = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	widgets     = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	crds        = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

	apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

	kinds = map[string]string{"pods": "Pod", "nodes": "Node", "deployments": "Deployment", "widgets": "Widget", "customresourcedefinitions": "CustomResourceDefinition", "gadgets": "Gadget", "apiservices": "APIService"}
)

// served is a resource that a simulated server serves.
func served(r schema.GroupVersionResource) informertest.Resource {
	return informertest.Resource{
		GroupVersionResource: r, Kind: kinds[r.Resource], Namespaced: r != nodes && r != crds && r != apiServices,
		Custom: r.Group == widgets.Group,
	}
}

// small is what a simulated server serves that nothing else is said of.
func small() []informertest.Resource {
	return []informertest.Resource{served(pods), served(deployments), served(widgets)}
}

// object is one without a namespace if its namespace is empty.
func object(r schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion(r.GroupVersion().String())
	u.SetKind(kinds[r.Resource])
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func create(t require.TestingT, s *informertest.Server, r schema.GroupVersionResource, names ...string) {
	for _, name := range names {
		namespace := "default"
		if r == nodes || r == crds {
			namespace = ""
		}
		_, err := s.Create(r, object(r, namespace, name))
		require.NoError(t, err)
	}
}

// place is a resource of a cluster.
type place struct {
	cluster  string
	resource schema.GroupResource
}

// mirror is a handler for all targets. It keeps what it is told, and what was wrong about it.
type mirror struct {
	mu      sync.Mutex
	objects map[place]map[string]string // key to version
	events  map[place][]string
	wrong   []error
	targets map[fleet.Target]int
	epochs  map[int64]bool
	// configuredBy is the epoch of the last call of configure.
	configuredBy int64
	// fail, if it is set, is what Configure returns.
	fail func(fleet.Target) error
	// block, if it is set, is called by the handler.
	block func(ctx context.Context, t fleet.Target) error
}

func newMirror() *mirror {
	return &mirror{objects: map[place]map[string]string{}, events: map[place][]string{}, targets: map[fleet.Target]int{}, epochs: map[int64]bool{}}
}

func (m *mirror) configure(ctx context.Context, t fleet.Target) (informer.InformerConfig, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.targets[t]++
	if epoch, ok := informer.EpochOf(ctx); ok {
		m.configuredBy = epoch
	}
	if m.fail != nil {
		if err := m.fail(t); err != nil {
			return informer.InformerConfig{}, err
		}
	}
	return informer.InformerConfig{BatchHandler: informer.BatchHandlerFunc(func(ctx context.Context, events []informer.Event) error {
		return m.take(ctx, t, events)
	})}, nil
}

// seeded is configure with a storage that has what the mirror believes, as a sink has that keeps
// resource versions with its data.
func (m *mirror) seeded(ctx context.Context, t fleet.Target) (informer.InformerConfig, error) {
	config, err := m.configure(ctx, t)
	config.Storage = informer.NewResourceVersionStorage()
	versions := map[string]any{}
	for key, version := range m.keys(t.Cluster, t.Resource) {
		versions[key] = version
	}
	return config, errors.Join(err, config.Storage.Replace(versions))
}

func (m *mirror) take(ctx context.Context, t fleet.Target, events []informer.Event) error {
	m.mu.Lock()
	block := m.block
	m.mu.Unlock()
	if block != nil {
		if err := block(ctx, t); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if epoch, ok := informer.EpochOf(ctx); ok {
		m.epochs[epoch] = true
	}
	at := place{t.Cluster, t.Resource.GroupResource()}
	if m.objects[at] == nil {
		m.objects[at] = map[string]string{}
	}
	for _, e := range events {
		_, known := m.objects[at][e.Key]
		switch e.Type {
		case informer.Added, informer.Updated:
			if object, err := meta.Accessor(e.Object); err != nil || object.GetResourceVersion() == "" {
				m.wrong = append(m.wrong, fmt.Errorf("%v: %s without an object: %w", at, e.Key, err))
			}
			m.objects[at][e.Key] = e.ResourceVersion
		case informer.Deleted:
			if !known {
				m.wrong = append(m.wrong, fmt.Errorf("%v: %s was deleted and not known", at, e.Key))
			}
			delete(m.objects[at], e.Key)
		}
		m.events[at] = append(m.events[at], fmt.Sprint(e.Type, " ", e.Key))
	}
	return nil
}

// stall makes the handler fail with an error, until it is nil.
func (m *mirror) stall(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.block = func(context.Context, fleet.Target) error { return err }
}

// forget forgets all of a cluster.
func (m *mirror) forget(cluster string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for at := range m.objects {
		if at.cluster == cluster {
			delete(m.objects, at)
		}
	}
}

// configured is how often Configure was called for a resource.
func (m *mirror) configured(r schema.GroupVersionResource) (times int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for target, n := range m.targets {
		if target.Resource == r {
			times += n
		}
	}
	return times
}

// keys returns what is believed of a resource of a cluster.
func (m *mirror) keys(cluster string, r schema.GroupVersionResource) map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.objects[place{cluster, r.GroupResource()}])
}

// told returns the events of a resource of a cluster since it was asked last.
func (m *mirror) told(cluster string, r schema.GroupVersionResource) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := place{cluster, r.GroupResource()}
	events := m.events[at]
	delete(m.events, at)
	return events
}

// requireRight compares what is believed of a resource of a cluster with its server.
func (m *mirror) requireRight(t require.TestingT, cluster string, s *informertest.Server, r schema.GroupVersionResource) {
	want, err := s.ResourceVersions(r, "")
	require.NoError(t, err)
	have := m.keys(cluster, r)
	if have == nil {
		have = map[string]string{}
	}
	require.Equal(t, want, have, "%s of %s", r.Resource, cluster)
	m.mu.Lock()
	defer m.mu.Unlock()
	require.NoError(t, errors.Join(m.wrong...))
}

// bubble is a test in virtual time.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// bubbleRun runs test as the subtest of a name, in a bubble of its own.
func bubbleRun(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { bubble(t, test) })
}

// serve starts a server in the bubble. It ends with the test.
func serve(t *testing.T, opts informertest.Options) *informertest.Server {
	opts.InMemory = true
	if opts.Resources == nil {
		opts.Resources = small()
	}
	s := informertest.NewServer(opts)
	t.Cleanup(s.Close)
	return s
}

// follow adds a cluster to a fleet, runs it until the test ends, and waits until it has synced.
func follow(t *testing.T, f *fleet.Fleet, cluster string, s *informertest.Server) {
	require.NoError(t, f.Add(cluster, s.Config()))
	start(t, f.Run)
	require.NoError(t, f.WaitForSync(t.Context()))
}

// start runs something until stop is called, or the test ends.
func start(t *testing.T, run func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(stop)
	return stop
}

func newFleet(t require.TestingT, m *mirror, config fleet.Config) *fleet.Fleet {
	if config.Configure == nil {
		config.Configure = m.configure
	}
	f, err := fleet.New(config)
	require.NoError(t, err)
	return f
}
