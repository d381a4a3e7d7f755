package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/e2e/cluster"
)

var _ informer.ResourceEventHandler = &mirror{}

// mirror is a handler that folds what it is told into a map, and notes every
// event that does not follow from those before it.
type mirror struct {
	// hook is called after every event, on the informer's goroutine, with the
	// number of events so far. Whoever blocks it blocks the informer.
	hook func(n int, e event)

	signal
	objects map[string]cluster.Version
	events  []event
	wrong   []string
}

// event is one call of the handler.
type event struct {
	kind      kind
	key       string
	version   cluster.Version
	initial   bool // OnAdd only
	tombstone bool // OnDelete only: the last state was not seen
}

type kind int

const (
	added kind = iota
	updated
	deleted
	synced
)

func (k kind) String() string { return [...]string{"OnAdd", "OnUpdate", "OnDelete", "OnSync"}[k] }

func (e event) String() string {
	return fmt.Sprintf("%s %s uid=%q rv=%q initial=%v tombstone=%v", e.kind, e.key, e.version.UID, e.version.ResourceVersion, e.initial, e.tombstone)
}

// newMirror returns a mirror that was told of the known objects earlier: those
// that the storage of a stopped informer has.
func newMirror(known map[string]cluster.Version) *mirror {
	m := &mirror{objects: maps.Clone(known)}
	if m.objects == nil {
		m.objects = map[string]cluster.Version{}
	}
	return m
}

func (m *mirror) OnAdd(obj any, isInInitialList bool) {
	m.tell(event{kind: added, initial: isInInitialList}, obj)
}

func (m *mirror) OnUpdate(oldObj, newObj any) {
	if oldObj != nil {
		m.complain("OnUpdate with an old object, which is not kept: %T", oldObj)
	}
	m.tell(event{kind: updated}, newObj)
}

func (m *mirror) OnDelete(obj any) {
	e := event{kind: deleted}
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		e.tombstone = true
		if _, ok := unknown.Obj.(*metav1.PartialObjectMetadata); !ok {
			m.complain("OnDelete of %s whose last state is unknown: object is a %T", unknown.Key, unknown.Obj)
		}
		if key, err := cache.MetaNamespaceKeyFunc(unknown.Obj); err != nil || key != unknown.Key {
			m.complain("OnDelete of %s whose last state is unknown: object is %q (%v)", unknown.Key, key, err)
		}
		obj = unknown.Obj
	}
	m.tell(e, obj)
}

func (m *mirror) OnSync(obj any) { m.tell(event{kind: synced}, obj) }

func (m *mirror) tell(e event, obj any) {
	object, err := meta.Accessor(obj)
	if err != nil {
		m.complain("%s with a %T: %v", e.kind, obj, err)
		return
	}
	e.key = cache.MetaObjectToName(object).String()
	e.version = cluster.Version{UID: object.GetUID(), ResourceVersion: object.GetResourceVersion()}

	m.Lock()
	if why := m.wrongLocked(e); why != "" {
		m.wrong = append(m.wrong, fmt.Sprintf("%v: %s", e, why))
	}
	if e.kind == deleted {
		delete(m.objects, e.key)
	} else {
		m.objects[e.key] = e.version
	}
	m.events = append(m.events, e)
	n := len(m.events)
	m.changedLocked()
	m.Unlock()

	if m.hook != nil {
		m.hook(n, e)
	}
}

// wrongLocked says why e cannot follow from what was told before, or "".
func (m *mirror) wrongLocked(e event) string {
	old, known := m.objects[e.key]
	switch {
	case e.kind == added && known:
		return fmt.Sprintf("it is known as %v", old)
	case e.kind == added:
		return ""
	case !known:
		return "it is not known"
	case old.UID != "" && e.version.UID != "" && old.UID != e.version.UID:
		return fmt.Sprintf("it is known as %v", old)
	case e.kind == synced && e.version.ResourceVersion != old.ResourceVersion:
		return fmt.Sprintf("it was known as %v", old)
	case e.kind == updated && !newer(e.version.ResourceVersion, old.ResourceVersion):
		return fmt.Sprintf("not newer than %v", old)
	case e.kind == deleted && e.tombstone && e.version.ResourceVersion != old.ResourceVersion:
		return fmt.Sprintf("it was last known as %v", old)
	case e.kind == deleted && !e.tombstone && !newer(e.version.ResourceVersion, old.ResourceVersion):
		return fmt.Sprintf("not newer than %v", old)
	default:
		return ""
	}
}

// newer compares as etcd numbers its revisions, which is what this server uses.
func newer(rv, than string) bool {
	a, errA := strconv.ParseUint(rv, 10, 64)
	b, errB := strconv.ParseUint(than, 10, 64)
	return errA == nil && errB == nil && a > b
}

func (m *mirror) complain(format string, args ...any) {
	m.Lock()
	defer m.Unlock()
	m.wrong = append(m.wrong, fmt.Sprintf(format, args...))
	m.changedLocked()
}

// known returns what the events so far add up to.
func (m *mirror) known() map[string]cluster.Version {
	m.Lock()
	defer m.Unlock()
	return maps.Clone(m.objects)
}

// complaints returns what was wrong so far.
func (m *mirror) complaints() []string {
	m.Lock()
	defer m.Unlock()
	return slices.Clone(m.wrong)
}

// of returns the events of one object, in order.
func (m *mirror) of(key string) []event {
	m.Lock()
	defer m.Unlock()
	var events []event
	for _, e := range m.events {
		if e.key == key {
			events = append(events, e)
		}
	}
	return events
}

// all returns all events, in order.
func (m *mirror) all() []event {
	m.Lock()
	defer m.Unlock()
	return slices.Clone(m.events)
}

// forgetUIDs makes the mirror know as little as a storage that was filled with
// resource versions only.
func (m *mirror) forgetUIDs() {
	m.Lock()
	defer m.Unlock()
	for key, version := range m.objects {
		version.UID = ""
		m.objects[key] = version
	}
}

// counts says how many events there were of each kind that there was.
func (m *mirror) counts() map[kind]int {
	m.Lock()
	defer m.Unlock()
	counts := map[kind]int{}
	for _, e := range m.events {
		counts[e.kind]++
	}
	return counts
}
