package fleet

import (
	"context"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

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
	shown := shownStates{}
	labels := s.cluster.discoveryLabels()
	labels.Group, labels.Version, labels.Resource = resource.Group, resource.Version, resource.Resource
	i := informer.NewResourceVersionInformer(labels.Path(), informer.InformerConfig{
		ListerWatcher: s.cluster.listers.ForResource("", resource),
		ExampleObject: &metav1.PartialObjectMetadata{},
		Budget:        s.cluster.fleet.config.Budget,
		Handler: informer.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(obj any, isInInitialList bool) {
				shown.changes(obj.(metav1.Object))
				if !isInInitialList || !found.shows(resource.GroupResource(), obj.(metav1.Object).GetName()) {
					s.see()
				}
			},
			UpdateFunc: func(_, obj any) {
				// The conditions of an API service, which metadata does not have, make discovery complete.
				if resource.GroupResource() == apiServices || shown.changes(obj.(metav1.Object)) {
					s.see()
				}
			},
			DeleteFunc: func(obj any) {
				if gone, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
					delete(shown, gone)
				}
				s.see()
			},
		},
		ErrorHandler: func(_ *informer.Reflector, err error) {
			if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
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

// unsettledFor is how long an object may take, after it was created or specified anew, until its
// conditions let discovery show it.
const unsettledFor = time.Minute

// shownState is what of an object discovery depends on, as far as its metadata tells.
type shownState struct {
	generation int64
	deleting   bool
	// since is when it came to be so.
	since time.Time
}

// shownStates are those of objects, by name. They belong to one handler.
type shownStates map[string]shownState

// changes notes an object, and reports whether discovery may show something else because of it: its
// generation is another one, it is being deleted, or it may not have settled yet. Annotations, managed
// fields and a status that is written again and again do not count. An object without a generation
// always counts.
func (s shownStates) changes(object metav1.Object) bool {
	now := shownState{generation: object.GetGeneration(), deleting: object.GetDeletionTimestamp() != nil, since: object.GetCreationTimestamp().Time}
	was, isKnown := s[object.GetName()]
	if isKnown {
		now.since = was.since
	}
	if isKnown && now == was {
		return now.generation == 0 || time.Since(was.since) < unsettledFor
	}
	if isKnown {
		now.since = time.Now()
	}
	s[object.GetName()] = now
	return true
}
