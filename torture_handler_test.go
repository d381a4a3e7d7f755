package informer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
)

// sceptic is a handler, and a BatchHandler, that believes only what is possible.
type sceptic struct {
	dice
	alive func(key string, uid types.UID) bool
	// acknowledged is what Storage has of a key, empty for nothing.
	acknowledged func(key string) string
	synced       func() bool
	// slow is how many milliseconds it takes at most; errors, panics and exits are one
	// time out of how many it fails, panics and ends its goroutine.
	slow, errors, panics, exits int
	// ignores tells that it is not to be told what has not changed.
	ignores bool

	mu      sync.Mutex
	known   map[string]string    // versions
	uids    map[string]types.UID // of what is known; none for what Storage was filled with
	unsure  map[string]bool      // keys whose last call failed
	busy    map[string]bool
	wrong   []string
	calls   []string
	anyLost bool

	// acked is what was acknowledged in batches, and together, for a key of a batch
	// that failed, the keys in it: they have to come again so.
	acked    map[string]string
	together map[string][]string
	// panicked counts the panics of a key since its last success.
	panicked map[string]int
	// owed are the keys of the first list whose batch failed before it was synced.
	owed map[string]bool
	kept []keptBatch
}

// keptBatch is a batch that its handler kept, and what it was.
type keptBatch struct {
	events []informer.Event
	was    []string
}

func newSceptic(seed uint64) *sceptic {
	return &sceptic{
		dice: dice{rand: rand.New(rand.NewPCG(seed, 3))}, known: map[string]string{}, uids: map[string]types.UID{},
		unsure: map[string]bool{}, busy: map[string]bool{},
		acked: map[string]string{}, together: map[string][]string{}, panicked: map[string]int{}, owed: map[string]bool{},
	}
}

func (s *sceptic) OnAdd(obj interface{}, _ bool) { s.call(informer.Added, obj) }
func (s *sceptic) OnUpdate(_, obj interface{})   { s.call(informer.Updated, obj) }
func (s *sceptic) OnDelete(obj interface{})      { s.call(informer.Deleted, obj) }
func (s *sceptic) OnSync(obj interface{})        { s.call(informer.Synced, obj) }

func (s *sceptic) call(change informer.EventType, obj interface{}) {
	k, version := key(obj), ""
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	if accessor, err := meta.Accessor(obj); err == nil {
		version = accessor.GetResourceVersion()
	}
	_ = s.take([]informer.Event{{Type: change, Key: k, Object: obj.(runtime.Object), ResourceVersion: version}}, false)
}

func (s *sceptic) OnBatch(_ context.Context, events []informer.Event) error {
	return s.take(events, true)
}

func (s *sceptic) take(events []informer.Event, batch bool) error {
	uids := make([]types.UID, len(events))
	was := make([]string, len(events))
	for i, e := range events {
		accessor, err := meta.Accessor(e.Object)
		if err == nil {
			uids[i] = accessor.GetUID()
		}
		was[i] = fmt.Sprint(eventText(e), " ", e.ResourceVersion, " ", identityOf(e.Object))
		if err != nil || key(e.Object) != e.Key || accessor.GetResourceVersion() != e.ResourceVersion {
			s.blame("%s: of another key or version", was[i])
		}
	}
	s.begin(events, uids, batch)
	if s.slow > 0 {
		time.Sleep(time.Duration(s.n(s.slow)) * time.Millisecond)
	}
	for i, e := range events {
		if is := fmt.Sprint(eventText(e), " ", e.ResourceVersion, " ", identityOf(e.Object)); is != was[i] {
			s.blame("%s became %s", was[i], is)
		}
	}
	return s.end(events, uids, was, batch)
}

func (s *sceptic) blame(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

func (s *sceptic) begin(events []informer.Event, uids []types.UID, batch bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []string
	for i, e := range events {
		keys = append(keys, e.Key)
		call := fmt.Sprintf("%s %s %s", time.Now().Format("15:04:05.000"), eventText(e), e.ResourceVersion)
		if batch {
			call += fmt.Sprintf(" (%d of %d)", i+1, len(events))
			if have := s.acknowledged(e.Key); have != s.acked[e.Key] {
				s.wrong = append(s.wrong, fmt.Sprintf("%s: acknowledged is %q, Storage has %q", call, s.acked[e.Key], have))
			}
		}
		s.calls = append(s.calls, call)
		s.beginEvent(call, e, uids[i])
		s.busy[e.Key] = true
	}
	for _, k := range keys {
		if before := s.together[k]; before != nil && !slices.Equal(before, keys) {
			s.wrong = append(s.wrong, fmt.Sprintf("%v came in a batch that failed, and comes again in %v", before, keys))
		}
	}
}

func (s *sceptic) beginEvent(call string, e informer.Event, uid types.UID) {
	stored, knows := s.known[e.Key]
	switch {
	case s.ignores && e.Type == informer.Synced:
		s.wrong = append(s.wrong, call+": ignored")
	case s.busy[e.Key]:
		s.wrong = append(s.wrong, call+": beside another call")
	case s.unsure[e.Key]:
	case knows != (e.Type != informer.Added):
		s.wrong = append(s.wrong, fmt.Sprintf("%s: known %v", call, knows))
	case e.Type == informer.Synced && stored != e.ResourceVersion:
		s.wrong = append(s.wrong, call+": known in version "+stored)
	case s.uids[e.Key] == "":
	case e.Type == informer.Deleted && s.alive(e.Key, s.uids[e.Key]):
		s.wrong = append(s.wrong, call+": still there")
	case e.Type != informer.Deleted && s.uids[e.Key] != uid:
		s.wrong = append(s.wrong, call+": another object")
	}
}

func (s *sceptic) end(events []informer.Event, uids []types.UID, was []string, batch bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		s.busy[e.Key] = false
	}
	if batch && s.one(10) {
		s.kept = append(s.kept, keptBatch{events, was})
	}
	switch {
	case s.one(s.errors) && batch:
		s.fail("an error", events, uids)
		var keys []string
		for _, e := range events {
			keys = append(keys, e.Key)
			if e.IsInInitialList && !s.synced() {
				s.owed[e.Key] = true
			}
		}
		for _, k := range keys {
			s.together[k] = keys
		}
		return errors.New("sceptic")
	case s.one(s.panics):
		s.fail("a panic", events, uids)
		for _, e := range events {
			s.together[e.Key] = []string{e.Key}
			if s.panicked[e.Key]++; s.panicked[e.Key] >= 6 {
				s.anyLost = true
				delete(s.together, e.Key)
				delete(s.panicked, e.Key)
			}
			if len(events) == 1 {
				delete(s.owed, e.Key)
			}
		}
		panic("sceptic")
	case s.one(s.exits):
		s.fail("an exit", events, uids)
		s.anyLost = true
		for _, e := range events {
			delete(s.together, e.Key)
			delete(s.panicked, e.Key)
			delete(s.owed, e.Key)
		}
		goruntime.Goexit()
	}
	for i, e := range events {
		s.takeIn(e, uids[i])
		delete(s.unsure, e.Key)
		delete(s.together, e.Key)
		delete(s.owed, e.Key)
		if batch || e.Type != informer.Deleted { // which may be only one of two calls
			delete(s.panicked, e.Key)
		}
		s.acked[e.Key] = s.known[e.Key]
	}
	return nil
}

// fail leaves events in the middle: some of them were taken in already.
func (s *sceptic) fail(how string, events []informer.Event, uids []types.UID) {
	s.calls = append(s.calls, how)
	for i, e := range events {
		if s.one(2) {
			s.takeIn(e, uids[i])
		}
		s.unsure[e.Key] = true
	}
}

func (s *sceptic) takeIn(e informer.Event, uid types.UID) {
	if e.Type == informer.Deleted {
		delete(s.known, e.Key)
		delete(s.uids, e.Key)
	} else {
		s.known[e.Key], s.uids[e.Key] = e.ResourceVersion, uid
	}
}

// forget is called where a Run has ended, and with it what was to be tried again.
func (s *sceptic) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.together)
	clear(s.panicked)
	clear(s.owed)
}

// checkSynced checks that nothing of the first list is missing where that is said.
func (s *sceptic) checkSynced() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.owed) > 0 && s.synced() {
		s.wrong = append(s.wrong, fmt.Sprintf("synced, and %v are not acknowledged", s.owed))
	}
}

// checkKept checks that what the handler has kept is what it was, but for the raw
// objects, which were lent.
func (s *sceptic) checkKept(t *testing.T) {
	for _, k := range s.kept {
		for i, e := range k.events {
			if _, lent := e.Object.(*informer.RawObject); !lent {
				require.Equal(t, k.was[i], fmt.Sprint(eventText(e), " ", e.ResourceVersion, " ", identityOf(e.Object)))
			}
		}
	}
}
