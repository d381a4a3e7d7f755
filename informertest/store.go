package informertest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// store is what etcd is to a kube-apiserver: all objects of all resources under one sequence of
// resource versions, with their history since the last compaction.
type store struct {
	mu     sync.RWMutex
	tables map[schema.GroupVersionResource]*table
	groups []schema.GroupVersion // in the order of their first resource, as discovery shows them

	// The resource version of the newest write. Invariant: no object is newer.
	rv uint64
	// The newest resource version that there ever was.
	highest uint64
	// The oldest resource version at which the state is still known. Invariant: compacted <= rv.
	compacted uint64

	// The replicas that stand still.
	replicas map[*replica]struct{}
	// Called for each write.
	observers map[*byte]func(Write)
	versions  versions
	names     *names
	// Fires when the sequence moves.
	moved signal
}

func newStore(v versions, seed uint64) *store {
	return &store{
		tables:    map[schema.GroupVersionResource]*table{},
		rv:        1,
		highest:   1,
		compacted: 1,
		replicas:  map[*replica]struct{}{},
		observers: map[*byte]func(Write){},
		versions:  v,
		names:     newNames(seed),
	}
}

// moveLocked sets the sequence.
func (s *store) moveLocked(rv uint64) {
	s.rv, s.highest = rv, max(s.highest, rv)
	s.moved.fire()
}

// add makes a resource known, or describes a known one anew.
func (s *store) add(r Resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addLocked(r)
}

func (s *store) addLocked(r Resource) {
	r.versions = s.versions
	if t, ok := s.tables[r.GroupVersionResource]; ok {
		t.resource = r
		return
	}
	s.tables[r.GroupVersionResource] = newTable(r, s.rv)
	gv := r.GroupVersionResource.GroupVersion()
	if !slices.Contains(s.groups, gv) {
		s.groups = append(s.groups, gv)
	}
}

// oldestLocked is the oldest resource version at which the state of a table is still known.
func (s *store) oldestLocked(t *table) uint64 { return max(s.compacted, t.born) }

// regroupLocked forgets a group version without resources.
func (s *store) regroupLocked(gv schema.GroupVersion) {
	for gvr := range s.tables {
		if gvr.GroupVersion() == gv {
			return
		}
	}
	s.groups = slices.DeleteFunc(s.groups, func(g schema.GroupVersion) bool { return g == gv })
}

// tableLocked finds the table of a resource, for as long as the caller holds the lock.
func (s *store) tableLocked(gvr schema.GroupVersionResource) (*table, error) {
	t, ok := s.tables[gvr]
	if !ok {
		return nil, unknownResource(gvr)
	}
	return t, nil
}

// lookup finds the table of a resource, for a caller without the lock, and the description as it is
// now.
func (s *store) lookup(gvr schema.GroupVersionResource) (*table, Resource, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t, err := s.tableLocked(gvr)
	if err != nil {
		return nil, Resource{}, err
	}
	return t, t.resource, nil
}

// create stores a new object. The namespace is that of the request, empty when the object itself
// tells.
func (s *store) create(gvr schema.GroupVersionResource, namespace string, obj runtime.Object) (Resource, *object, error) {
	t, r, err := s.lookup(gvr)
	if err != nil {
		return r, nil, err
	}
	obj, err = s.accept(r, namespace, "", obj)
	if err != nil {
		return r, nil, err
	}
	// Encoded before the lock is taken, because this is most of the work.
	made, err := encode(r, obj, identity{uid: s.names.uid(), created: now()})
	if err != nil {
		return r, nil, apierrors.NewBadRequest(err.Error())
	}
	key := r.key(made.namespace, made.name)

	s.mu.Lock()
	defer s.mu.Unlock()
	if t.removed {
		return r, nil, unknownResource(gvr)
	}
	if t.get(key) != nil {
		return r, nil, apierrors.NewAlreadyExists(r.groupResource(), made.name)
	}
	s.moveLocked(s.rv + 1)
	made.rv = s.rv
	t.put(key, made.rv, made)
	s.tellLocked(Created, r, made, made.rv)
	return r, made, nil
}

// update replaces an object. Without a resource version of its own it replaces whatever is there.
func (s *store) update(gvr schema.GroupVersionResource, namespace, name string, obj runtime.Object) (Resource, *object, error) {
	t, r, err := s.lookup(gvr)
	if err != nil {
		return r, nil, err
	}
	obj, err = s.accept(r, namespace, name, obj)
	if err != nil {
		return r, nil, err
	}
	m := obj.(metav1.Object)
	key := r.key(m.GetNamespace(), m.GetName())

	s.mu.Lock()
	defer s.mu.Unlock()
	if t.removed {
		return r, nil, unknownResource(gvr)
	}
	old := t.get(key)
	if old == nil {
		return r, nil, apierrors.NewNotFound(r.groupResource(), m.GetName())
	}
	if uid := m.GetUID(); uid != "" && uid != old.uid {
		return r, nil, apierrors.NewConflict(r.groupResource(), old.name, fmt.Errorf("the object given has UID %s, the stored one %s", uid, old.uid))
	}
	if rv := m.GetResourceVersion(); rv != "" && rv != s.versions.format(old.rv) {
		return r, nil, apierrors.NewConflict(r.groupResource(), old.name, fmt.Errorf("the object given is of resource version %s, the stored one of %s", rv, s.versions.format(old.rv)))
	}
	made, err := encode(r, obj, old.identity)
	if err != nil {
		return r, nil, apierrors.NewBadRequest(err.Error())
	}
	if made.sameContent(old) {
		return r, old, nil
	}
	s.moveLocked(s.rv + 1)
	made.rv = s.rv
	t.put(key, made.rv, made)
	s.tellLocked(Updated, r, made, made.rv)
	return r, made, nil
}

// remove deletes an object, if the preconditions (nil for none) hold. It returns the last state
// under the resource version of the deletion.
func (s *store) remove(gvr schema.GroupVersionResource, namespace, name string, when *metav1.Preconditions) (Resource, *object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.tableLocked(gvr)
	if err != nil {
		return Resource{}, nil, err
	}
	r := t.resource
	key := r.key(namespace, name)
	old := t.get(key)
	if old == nil {
		return r, nil, apierrors.NewNotFound(r.groupResource(), name)
	}
	if when != nil {
		if when.UID != nil && *when.UID != old.uid {
			return r, nil, apierrors.NewConflict(r.groupResource(), name, fmt.Errorf("the precondition names UID %s, the stored object has %s", *when.UID, old.uid))
		}
		if when.ResourceVersion != nil && *when.ResourceVersion != s.versions.format(old.rv) {
			return r, nil, apierrors.NewConflict(r.groupResource(), name, fmt.Errorf("the precondition names resource version %s, the stored object has %s", *when.ResourceVersion, s.versions.format(old.rv)))
		}
	}
	s.deleteLocked(t, old)
	return r, old.at(s.rv), nil
}

// expire deletes objects, all in one resource version.
func (s *store) expire(gvr schema.GroupVersionResource, namespace string, names []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.tableLocked(gvr)
	if err != nil {
		return err
	}
	objects := map[string]*object{}
	for _, name := range names {
		key := t.resource.key(namespace, name)
		if objects[key] = t.get(key); objects[key] == nil {
			return apierrors.NewNotFound(t.resource.groupResource(), name)
		}
	}
	if len(objects) > 0 {
		s.deleteLocked(t, slices.SortedFunc(maps.Values(objects), func(a, b *object) int { return strings.Compare(a.name, b.name) })...)
	}
	return nil
}

// deleteLocked deletes objects that are there, all in one resource version.
func (s *store) deleteLocked(t *table, objects ...*object) {
	for _, old := range objects {
		t.put(t.resource.key(old.namespace, old.name), s.rv+1, nil)
		s.tellLocked(Deleted, t.resource, old, s.rv+1)
	}
	s.moveLocked(s.rv + 1)
}

func (s *store) get(gvr schema.GroupVersionResource, namespace, name string) (Resource, *object, error) {
	t, r, err := s.lookup(gvr)
	if err != nil {
		return r, nil, err
	}
	return s.getAt(t, namespace, name, 0, nil)
}

// getAt reads an object for a request, which wants it not older than a resource version, from a
// replica if one is given.
func (s *store) getAt(t *table, namespace, name string, rv uint64, old *replica) (Resource, *object, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if t.removed {
		return t.resource, nil, unknownResource(t.resource.GroupVersionResource)
	}
	old = s.presentLocked(old)
	if reached := s.reachedLocked(old); rv > reached {
		return t.resource, nil, tooLarge(s.versions, rv, reached)
	}
	o := t.get(t.resource.key(namespace, name))
	if old != nil {
		o = old.of(t).state.get(t.resource.key(namespace, name))
	}
	if o == nil {
		return t.resource, nil, apierrors.NewNotFound(t.resource.groupResource(), name)
	}
	return t.resource, o, nil
}

func (s *store) newest() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.rv
}

// compact forgets every state but the newest.
func (s *store) compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compacted = s.rv
	for _, t := range s.tables {
		t.compact()
	}
}

// jump moves the sequence. Backwards, nothing of the history can stay, since its resource versions
// will come again.
func (s *store) jump(rv uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rv >= s.rv {
		s.moveLocked(rv)
		return
	}
	s.compacted = rv
	for _, t := range s.tables {
		t.rewind(s.rv, rv)
	}
	s.moveLocked(rv)
	s.restartReplicas()
	s.tellRestoredLocked()
}

// accept checks a caller's object against its resource and its place in the request, and returns a
// copy of it that has its name and namespace (or the object itself, when nothing had to be
// changed).
func (s *store) accept(r Resource, namespace, name string, obj runtime.Object) (runtime.Object, error) {
	m, ok := obj.(metav1.Object)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%T is not an object of %s: it has no object metadata", obj, r.groupResource()))
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		if _, isMap := u.Object["metadata"].(map[string]any); !isMap {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("an object of %s must have a map as its metadata, not %T", r.groupResource(), u.Object["metadata"]))
		}
	}
	if gvk := obj.GetObjectKind().GroupVersionKind(); !gvk.Empty() && gvk != r.gvk() {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the object is a %s of %s, but %s of %s hold %s", gvk.Kind, gvk.GroupVersion(), r.GroupVersionResource.Resource, r.apiVersion(), r.Kind))
	}

	if name == "" {
		name = m.GetName()
	}
	if name == "" && m.GetGenerateName() != "" {
		name = m.GetGenerateName() + s.names.suffix()
	}
	if namespace == "" {
		namespace = m.GetNamespace()
	}
	if err := checkPlace(r, namespace, name, m); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if name == m.GetName() && namespace == m.GetNamespace() {
		return obj, nil
	}
	obj = obj.DeepCopyObject()
	m = obj.(metav1.Object)
	m.SetName(name)
	m.SetNamespace(namespace)
	return obj, nil
}

func checkPlace(r Resource, namespace, name string, m metav1.Object) error {
	what := r.groupResource()
	if name == "" {
		return fmt.Errorf("an object of %s must have a name", what)
	}
	if complaints := content.IsPathSegmentName(name); len(complaints) > 0 {
		return fmt.Errorf("the name %q of an object of %s is invalid: it %s", name, what, strings.Join(complaints, ", "))
	}
	if complaints := content.IsPathSegmentName(namespace); len(complaints) > 0 {
		return fmt.Errorf("the namespace %q of an object of %s is invalid: it %s", namespace, what, strings.Join(complaints, ", "))
	}
	switch {
	case m.GetName() != "" && m.GetName() != name:
		return fmt.Errorf("the object is named %q, the request %q", m.GetName(), name)
	case m.GetNamespace() != "" && m.GetNamespace() != namespace:
		return fmt.Errorf("the object is of namespace %q, the request of %q", m.GetNamespace(), namespace)
	case r.Namespaced && namespace == "":
		return fmt.Errorf("the object %q of %s must have a namespace", name, what)
	case !r.Namespaced && namespace != "":
		return fmt.Errorf("the object %q has the namespace %q, but %s are cluster scoped", name, namespace, what)
	}
	return nil
}

// now is the time as the API writes it.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// all returns the newest states of a namespace, or of all when it is empty, in the order of their
// keys.
func (s *store) all(gvr schema.GroupVersionResource, namespace string) (Resource, []*object, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t, err := s.tableLocked(gvr)
	if err != nil {
		return Resource{}, nil, err
	}
	objects, _ := t.scan(selection{namespace: namespace}, "", s.rv, 0)
	return t.resource, objects, nil
}
