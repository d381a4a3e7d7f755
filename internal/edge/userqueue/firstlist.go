package userqueue

import (
	"context"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/engine/sink"
)

// firstList follows the objects of the first list through the queue. A list with objects that could
// not be read is given to a queue by Add, so that the queue deletes nothing, and cannot tell that
// list from what follows it: it takes itself for synced at once or, if it was given nothing, never.
type firstList struct {
	mu sync.Mutex
	// unread tells that an object of the list could not be read.
	unread bool
	// waiting are the keys of the list that Process was not called for.
	waiting sets.Set[string]
}

// begin begins a list, or begins it anew.
func (l *firstList) begin(g sink.Generation) sink.Generation {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = sets.New[string]()
	return firstGeneration{g, l}
}

// expect notes a key of the list, before the queue can pop it.
func (l *firstList) expect(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting.Insert(strings.Clone(key))
}

func (l *firstList) forget(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting.Delete(key)
}

func (l *firstList) missed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unread = true
}

// processed notes that Process was called for what the queue popped.
func (l *firstList) processed(popped interface{}) {
	for _, obj := range objectsIn(popped) {
		if key, err := object.Key(obj); err == nil {
			l.forget(key)
		}
	}
}

// end forgets the keys of the list, once the controller is synced.
func (l *firstList) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = nil
}

// state tells whether an object of the list could not be read, and whether Process was called for
// all others.
func (l *firstList) state() (unread, done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unread, len(l.waiting) == 0
}

// firstGeneration is a generation of the first list.
type firstGeneration struct {
	sink.Generation
	list *firstList
}

func (g firstGeneration) Show(ctx context.Context, it object.Item) error {
	g.list.expect(it.Key)
	err := g.Generation.Show(ctx, it)
	if err != nil {
		g.list.forget(it.Key)
	}
	return err
}

func (g firstGeneration) Keep(key string) {
	g.list.missed()
	g.Generation.Keep(key)
}

func (g firstGeneration) End(ctx context.Context, resourceVersion string, complete bool) error {
	if !complete {
		g.list.missed()
	}
	return g.Generation.End(ctx, resourceVersion, complete)
}
