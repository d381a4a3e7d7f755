package harness

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// Journal is a bare cache.ReflectorStore that writes down its calls and folds
// them. Fail, if set, is asked before each call with what is written down.
type Journal struct {
	Fail func(call string) error

	mu    sync.Mutex
	calls []string
	// Held is the resource version of every key. A test may set it first.
	Held map[string]string
}

// Note writes a call down, unless Fail says otherwise, and changes what is held.
func (j *Journal) Note(call string, change func(held map[string]string)) error {
	if j.Fail != nil {
		if err := j.Fail(call); err != nil {
			return err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.Held == nil {
		j.Held = map[string]string{}
	}
	j.calls = append(j.calls, call)
	change(j.Held)
	return nil
}

// Put notes a call that stores an object.
func (j *Journal) Put(verb string, obj interface{}) error {
	u := obj.(*unstructured.Unstructured)
	return j.Note(verb+" "+Key(u), func(held map[string]string) { held[Key(u)] = u.GetResourceVersion() })
}

// Add implements cache.ReflectorStore.
func (j *Journal) Add(obj interface{}) error { return j.Put("add", obj) }

// Update implements cache.ReflectorStore.
func (j *Journal) Update(obj interface{}) error { return j.Put("update", obj) }

// Delete implements cache.ReflectorStore.
func (j *Journal) Delete(obj interface{}) error {
	return j.Note("delete "+Key(obj), func(held map[string]string) { delete(held, Key(obj)) })
}

// Replace implements cache.ReflectorStore.
func (j *Journal) Replace(objects []interface{}, rv string) error {
	keys := []string{}
	for _, obj := range objects {
		keys = append(keys, Key(obj))
	}
	return j.Note(fmt.Sprintf("replace %s %s", rv, strings.Join(keys, " ")), func(held map[string]string) {
		clear(held)
		for _, obj := range objects {
			held[Key(obj)] = obj.(*unstructured.Unstructured).GetResourceVersion()
		}
	})
}

// Resync implements cache.ReflectorStore.
func (j *Journal) Resync() error { return j.Note("resync", func(map[string]string) {}) }

// Events returns the calls so far.
func (j *Journal) Events() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.calls)
}

// State is the resource version of every key that the calls leave.
func (j *Journal) State() map[string]string {
	j.mu.Lock()
	defer j.mu.Unlock()
	state := maps.Clone(j.Held)
	if state == nil {
		state = map[string]string{}
	}
	return state
}

// Contents is the resource version of every object in a store. A second object
// of a name is there too.
func Contents(store cache.Store) map[string]string {
	state := map[string]string{}
	for _, obj := range store.List() {
		u := obj.(*unstructured.Unstructured)
		name := Key(u)
		for _, twice := state[name]; twice; _, twice = state[name] {
			name += " again"
		}
		state[name] = u.GetResourceVersion()
	}
	return state
}

// Apply does to store what a queue popped.
func Apply(store cache.Store, popped interface{}) error {
	for _, d := range popped.(cache.Deltas) {
		var err error
		switch d.Type {
		case cache.Deleted:
			err = store.Delete(d.Object)
		case cache.ReplacedAll:
			info := d.Object.(cache.ReplacedAllInfo)
			err = store.Replace(info.Objects, info.ResourceVersion)
		case cache.SyncAll, cache.Bookmark:
		default:
			err = store.Update(d.Object)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// NewStore is a store for the deltas of a queue.
func NewStore() cache.Store { return cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc) }
