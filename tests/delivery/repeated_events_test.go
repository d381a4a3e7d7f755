package delivery_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/tests/harness"
)

// versioned writes down what it is told with the versions, and refuses some of that.
type versioned struct {
	mu     sync.Mutex
	told   []string
	refuse string
	// slow is what it takes ten seconds for.
	slow string
}

func (v *versioned) OnBatch(_ context.Context, events []informer.Event) error {
	v.mu.Lock()
	var texts []string
	for _, e := range events {
		texts = append(texts, fmt.Sprintf("%s@%s", harness.EventText(e), e.ResourceVersion))
	}
	v.told = append(v.told, texts...)
	refuse, slow := v.refuse, v.slow
	v.mu.Unlock()
	if texts[0] == slow {
		time.Sleep(10 * time.Second)
	}
	if refuse == "" {
		return nil
	}
	return refusing(texts, refuse)
}

// takeAll has it refuse nothing any more, and forget what it was told.
func (v *versioned) takeAll() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.refuse, v.told = "", nil
}

func (v *versioned) since() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.told
}

// A proxy repeats the event of version 7, which the handler was never given, because it waited when a
// newer state came. That state is a dead letter: what is older than that is not delivered, and so the
// letter does not end. What is newer is.
func TestRepeatedEventDoesNotEndADeadLetterOfANewerState(t *testing.T) {
	one := func(rv string) *unstructured.Unstructured { return harness.WithUID(harness.Pod("a/1", rv), "one") }
	another := func(rv string) *unstructured.Unstructured {
		return harness.WithUID(harness.Pod("a/1", rv), "another")
	}
	changed := func(obj *unstructured.Unstructured) watch.Event {
		return watch.Event{Type: watch.Modified, Object: obj}
	}
	created := func(obj *unstructured.Unstructured) watch.Event {
		return watch.Event{Type: watch.Added, Object: obj}
	}
	deleted := func(obj *unstructured.Unstructured) watch.Event {
		return watch.Event{Type: watch.Deleted, Object: obj}
	}
	for name, c := range map[string]struct {
		missing bool // from the list
		events  []watch.Event
		// repeated is one of the events, or an older one.
		repeated watch.Event
		refuse   string
		letter   informer.EventType
		newer    watch.Event
		taken    []string
	}{
		"a change": {
			events:   []watch.Event{changed(one("7")), changed(one("8"))},
			repeated: changed(one("7")),
			refuse:   "a/1@8",
			letter:   informer.Updated,
			newer:    changed(one("9")),
			taken:    []string{"update a/1@9"},
		},
		"a creation": {
			missing:  true,
			events:   []watch.Event{created(one("7")), changed(one("8"))},
			repeated: created(one("7")),
			refuse:   "a/1@8",
			letter:   informer.Added,
			newer:    changed(one("9")),
			taken:    []string{"add a/1@9"},
		},
		"a deletion": {
			events:   []watch.Event{changed(one("7")), deleted(one("8"))},
			repeated: changed(one("7")),
			refuse:   "a/1@8",
			letter:   informer.Deleted,
			newer:    created(another("9")),
			taken:    []string{"delete a/1 unknown@5", "add a/1@9"},
		},
		"a deletion that another object of the name waits behind": {
			events:   []watch.Event{deleted(one("6")), created(another("7")), changed(another("8"))},
			repeated: created(another("7")),
			refuse:   "delete a/1",
			letter:   informer.Deleted,
			newer:    changed(another("9")),
			taken:    []string{"delete a/1 unknown@5", "add a/1@9"},
		},
	} {
		harness.SynctestRun(t, name, func(t *testing.T) {
			w := watch.NewFakeWithChanSize(100, false)
			objects := []*unstructured.Unstructured{harness.Pod("a/2", "4")}
			if !c.missing {
				objects = append(objects, one("5"))
			}
			lw := &harness.Tap{
				OnList:  harness.Lists(harness.List("5", "", objects...)),
				OnWatch: harness.Watches(func() (watch.Interface, error) { return w, nil }, harness.Open()),
			}
			v := &versioned{refuse: c.refuse, slow: "update a/2@6"}
			i := harness.Follow(nil, informer.InformerConfig{ListerWatcher: lw, ErrorHandler: harness.IgnoreErrors, BatchHandler: v, MaxAttempts: 3})
			defer harness.Settle(i.RunWithContext)()
			w.Modify(harness.Pod("a/2", "6"))
			time.Sleep(time.Second)
			for _, e := range c.events {
				w.Action(e.Type, e.Object)
			}
			time.Sleep(2 * time.Minute)
			require.Equal(t, []string{"a/1"}, letterKeys(i))
			letters := i.DeadLetters()
			require.Equal(t, c.letter, letters[0].Type)

			v.takeAll()
			w.Action(c.repeated.Type, c.repeated.Object)
			time.Sleep(2 * time.Minute)
			require.Empty(t, v.since())
			require.Equal(t, letters, i.DeadLetters())
			require.EqualValues(t, 1, i.Status().Stale)

			w.Action(c.newer.Type, c.newer.Object)
			time.Sleep(2 * time.Minute)
			require.Equal(t, c.taken, v.since())
			require.Empty(t, i.DeadLetters())
		})
	}
}

// The same for an end that the handler has refused once more because of Redeliver.
func TestRepeatedEventDoesNotEndADeadLetterThatIsRefusedAgain(t *testing.T) {
	harness.SurvivePanics(t)
	for name, handles := range map[string]bool{"batches": false, "calls": true} {
		harness.SynctestRun(t, name, func(t *testing.T) {
			one := func(rv string) *unstructured.Unstructured { return harness.WithUID(harness.Pod("a/1", rv), "one") }
			w := watch.NewFakeWithChanSize(100, false)
			lw := &harness.Tap{
				OnList: func(_ context.Context, _ int, o metav1.ListOptions) (runtime.Object, error) {
					if o.FieldSelector == "" {
						return harness.List("5", "", one("5")), nil
					}
					return harness.List("8", ""), nil
				},
				OnWatch: harness.Watches(func() (watch.Interface, error) { return w, nil }, harness.Open()),
			}
			var failing atomic.Bool
			b := harness.Batches{Fail: refusingWhile(&failing, "a/1")}
			config := informer.InformerConfig{ListerWatcher: lw, ErrorHandler: harness.IgnoreErrors, BatchHandler: &b, MaxAttempts: 1}
			r := &b.Recorder
			if handles {
				r = &harness.Recorder{Before: func(string) {
					if failing.Load() {
						panic("refused")
					}
				}}
				config.Handler, config.BatchHandler = r, nil
			}
			i := harness.Follow(nil, config)
			defer harness.Settle(i.RunWithContext)()
			time.Sleep(time.Minute)
			failing.Store(true)
			w.Modify(one("7"))
			time.Sleep(time.Minute)
			w.Delete(one("8"))
			time.Sleep(time.Minute)
			require.Equal(t, "8", i.DeadLetters()[0].Newest)
			for range 2 {
				require.NoError(t, i.Redeliver(t.Context(), informer.RedeliverOptions{}))
				letter := i.DeadLetters()[0]
				require.Equal(t, "5 8 Deleted", fmt.Sprint(letter.ResourceVersion, " ", letter.Newest, " ", letter.Type))
			}

			failing.Store(false)
			r.Forget()
			w.Modify(one("7"))
			time.Sleep(time.Minute)
			require.Empty(t, r.Events())
			require.Equal(t, []string{"a/1"}, letterKeys(i))
			require.NoError(t, i.Redeliver(t.Context(), informer.RedeliverOptions{}))
			require.Equal(t, []string{"delete a/1 unknown"}, r.Events())
			require.Empty(t, i.DeadLetters())
		})
	}
}
