package fleet

import (
	"context"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer"
)

// The objects whose changes are signs that a cluster serves something else than before.
var (
	definitions = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	apiServices = schema.GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"}
)

// triggers watches for signs that a cluster should be discovered again.
type triggers struct {
	cluster *cluster
	// seen has one element after a sign.
	seen    chan struct{}
	running sync.WaitGroup

	mu sync.Mutex
	// watched has the resources that are watched.
	watched map[schema.GroupResource]bool
}

func newTriggers(c *cluster) *triggers {
	return &triggers{cluster: c, seen: make(chan struct{}, 1), watched: map[schema.GroupResource]bool{}}
}

// follow watches what is in a catalog and is not watched, and reports whether it has begun a watch.
// A watch that is refused ends, and is begun again by the next call.
func (s *triggers) follow(ctx context.Context, found *catalog) (begun bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range []schema.GroupResource{definitions, apiServices} {
		r := found.find(name)
		if r == nil || s.watched[name] {
			continue
		}
		s.watched[name], begun = true, true
		s.running.Go(func() {
			s.watch(ctx, r.WithVersion(r.versions[0]), found)
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.watched, name)
		})
	}
	return begun
}

// end waits for the watches to end. Their context has ended.
func (s *triggers) end() { s.running.Wait() }

// see notes a sign.
func (s *triggers) see() {
	select {
	case s.seen <- struct{}{}:
	default:
	}
}

// watch watches until ctx ends or it is refused. Found is what the cluster has served before.
func (s *triggers) watch(ctx context.Context, resource schema.GroupVersionResource, found *catalog) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	i := informer.NewResourceVersionInformer(s.cluster.name+": "+resourceText(resource), informer.InformerConfig{
		ListerWatcher: s.cluster.listers.ForResource("", resource),
		ExampleObject: &metav1.PartialObjectMetadata{},
		Budget:        s.cluster.fleet.config.Budget,
		Handler: informer.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(obj any, isInInitialList bool) {
				if !isInInitialList || !found.shows(resource.GroupResource(), obj.(metav1.Object).GetName()) {
					s.see()
				}
			},
			UpdateFunc: func(any, any) { s.see() },
			DeleteFunc: func(any) { s.see() },
		},
		ErrorHandler: func(_ *informer.Reflector, err error) {
			if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) {
				cancel()
			}
		},
	})
	i.RunWithContext(ctx)
}

// shows reports whether a catalog shows what an object stands for: a definition,
// "widgets.example.com", or an API service, "v1.example.com". A definition may be one that serves
// nothing that can be followed.
func (c *catalog) shows(kind schema.GroupResource, object string) bool {
	first, group, _ := strings.Cut(object, ".")
	if kind == apiServices {
		return c.served[schema.GroupVersion{Group: group, Version: first}]
	}
	return c.find(schema.GroupResource{Group: group, Resource: first}) != nil
}
