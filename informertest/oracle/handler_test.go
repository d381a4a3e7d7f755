package oracle_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest/oracle"
)

func object(name, uid, version string) *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{}
	obj.Namespace, obj.Name, obj.UID, obj.ResourceVersion = "ns", name, types.UID(uid), version
	return obj
}

// still is an oracle whose clock stands still.
func still() *oracle.Oracle {
	return oracle.New(oracle.Options{Now: func() time.Time { return time.Unix(0, 0) }})
}

// recorded is what o has recorded, without the times.
func recorded(o *oracle.Oracle) []string {
	var lines []string
	for line := range strings.Lines(o.History().String()) {
		lines = append(lines, strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "+0.000s")))
	}
	return lines
}

func TestAHandlerRecordsWhatItIsTold(t *testing.T) {
	o := still()
	h := o.Handler(nil)
	h.OnAdd(object("a", "A", "1"), true)
	h.OnUpdate(object("a", "A", "1"), object("a", "A", "2"))
	h.OnUpdate(nil, object("a", "A", "3"))
	h.OnUpdate(object("a", "A", "3"), object("a", "A", "3"))
	h.OnSync(object("a", "A", "3"))
	h.OnDelete(object("a", "A", "4"))
	h.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/b", Obj: object("b", "B", "5")})
	h.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/c"})
	require.Equal(t, []string{
		"call 0: Added ns/a, version 1, UID A, initial", "call 0 returned",
		"call 1: Updated ns/a, version 2, UID A", "call 1 returned",
		"call 2: Updated ns/a, version 3, UID A", "call 2 returned",
		"call 3: Synced ns/a, version 3, UID A", "call 3 returned",
		"call 4: Synced ns/a, version 3, UID A", "call 4 returned",
		"call 5: Deleted ns/a, version 4, UID A", "call 5 returned",
		"call 6: Deleted ns/b, version 5, UID B, final state unknown", "call 6 returned",
		"call 7: Deleted ns/c, version , UID , final state unknown", "call 7 returned",
	}, recorded(o))
}

func TestAHandlerHandsOn(t *testing.T) {
	var told []string
	next := informer.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(interface{}, bool) { told = append(told, "add") },
		UpdateFunc: func(interface{}, interface{}) { told = append(told, "update") },
		DeleteFunc: func(interface{}) { told = append(told, "delete") },
		SyncFunc:   func(interface{}) { told = append(told, "sync") },
	}
	tell := func(h informer.ResourceEventHandler) {
		h.OnAdd(object("a", "A", "1"), false)
		h.OnUpdate(nil, object("a", "A", "2"))
		h.OnDelete(object("a", "A", "3"))
		h.OnSync(object("a", "A", "3"))
	}
	tell(still().Handler(next))
	require.Equal(t, []string{"add", "update", "delete", "sync"}, told)

	next.SyncFunc = nil
	o := still()
	tell(o.Handler(next))
	tell(o.Handler(informer.ResourceEventHandlerFuncs{DeleteFunc: next.DeleteFunc}))
	require.Equal(t, []string{"add", "update", "delete", "delete"}, told[4:])
	require.NotContains(t, o.History().String(), "Synced", "no handler listens to it")
}

func TestACallThatDoesNotReturn(t *testing.T) {
	o := still()
	h := o.Handler(informer.ResourceEventHandlerFuncs{
		AddFunc:    func(interface{}) { panic("full") },
		DeleteFunc: func(interface{}) { runtime.Goexit() },
	})
	require.PanicsWithValue(t, "full", func() { h.OnAdd(object("a", "A", "1"), false) })
	var exits sync.WaitGroup
	exits.Go(func() { h.OnDelete(object("a", "A", "1")) })
	exits.Wait()
	require.Equal(t, []string{
		"call 0: Added ns/a, version 1, UID A", "call 0 failed: the handler panicked",
		"call 1: Deleted ns/a, version 1, UID A", "call 1 failed: the handler ended its goroutine",
	}, recorded(o))
}

func TestABatchHandlerRecordsWhatItIsTold(t *testing.T) {
	o := still()
	full := errors.New("full")
	result := full
	h := o.BatchHandler(informer.BatchHandlerFunc(func(context.Context, []informer.Event) error { return result }))
	events := []informer.Event{
		{Type: informer.Added, Key: "ns/a", Object: object("a", "A", "1"), ResourceVersion: "1", IsInInitialList: true},
		{Type: informer.Deleted, Key: "ns/b", Object: object("b", "B", "2"), ResourceVersion: "2", FinalStateUnknown: true},
	}
	require.Equal(t, full, h.OnBatch(t.Context(), events))
	result = nil
	require.NoError(t, h.OnBatch(t.Context(), events))
	require.NoError(t, o.BatchHandler(nil).OnBatch(t.Context(), events[:1]))
	require.Equal(t, []string{
		"call 0: Added ns/a, version 1, UID A, initial; Deleted ns/b, version 2, UID B, final state unknown", "call 0 failed: full",
		"call 1: Added ns/a, version 1, UID A, initial; Deleted ns/b, version 2, UID B, final state unknown", "call 1 returned",
		"call 2: Added ns/a, version 1, UID A, initial", "call 2 returned",
	}, recorded(o))
}

func TestAnObjectThatIsNotWhatItsEventSays(t *testing.T) {
	o := still()
	o.Wrote(oracle.Write{Type: oracle.Created, Key: "ns/a", UID: "A", ResourceVersion: "1"})
	o.Started(oracle.Run{})
	wrong := []informer.Event{{Type: informer.Added, Key: "ns/a", Object: object("b", "A", "1"), ResourceVersion: "1", IsInInitialList: true}}
	require.NoError(t, o.BatchHandler(nil).OnBatch(t.Context(), wrong))
	require.ErrorContains(t, o.Check(), "authentic: ns/a: the event is of ns/a in version 1, its object of ns/b in version 1")
}

func TestAKeptObjectThatChanges(t *testing.T) {
	o := still()
	o.Wrote(oracle.Write{Type: oracle.Created, Key: "ns/a", UID: "A", ResourceVersion: "1"})
	o.Started(oracle.Run{})
	kept := object("a", "A", "1")
	o.Handler(nil).OnAdd(kept, true)
	was := oracle.Event{Type: informer.Added, Key: "ns/a", UID: "A", ResourceVersion: "1", Object: kept}
	o.Kept(was)
	require.NoError(t, o.Check())
	kept.ResourceVersion = "2"
	o.Kept(was)
	require.ErrorContains(t, o.Check(), "authentic: ns/a: the object was changed after the call, to ns/a with UID A in version 2")
}

func TestALentObjectThatChanges(t *testing.T) {
	o := still()
	o.Wrote(oracle.Write{Type: oracle.Created, Key: "ns/a", UID: "A", ResourceVersion: "1"})
	o.Started(oracle.Run{})
	lent := object("a", "A", "1")
	overwrite := informer.ResourceEventHandlerFuncs{AddFunc: func(interface{}) { lent.Name = "b" }}
	o.Handler(overwrite).OnAdd(lent, true)
	require.ErrorContains(t, o.Check(), "authentic: ns/a: the object was changed during the call, to ns/b with UID A in version 1")
}
