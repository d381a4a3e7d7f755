package oracle_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/informertest/oracle"
)

func event(t informer.EventType, key, uid, rv string) oracle.Event {
	return oracle.Event{Type: t, Key: key, UID: types.UID(uid), ResourceVersion: rv}
}

// An event that FailedEvents have named comes with the others that they have named and with no more,
// however often it had failed before.
func TestWhatFailedEventsNameComesTogether(t *testing.T) {
	for _, before := range []int{0, 2, 3} {
		o := oracle.New(oracle.Options{})
		o.Wrote(oracle.Write{Type: oracle.Created, Key: "n/a", UID: "A", ResourceVersion: "1"})
		o.Wrote(oracle.Write{Type: oracle.Created, Key: "n/b", UID: "B", ResourceVersion: "2"})
		o.Started(oracle.Run{Resumed: "", Known: nil})
		a, b := event(informer.Added, "n/a", "A", "1"), event(informer.Added, "n/b", "B", "2")
		a.IsInInitialList, b.IsInInitialList = true, true
		for range before {
			o.Told(a, b)(errors.New("full"))
		}
		o.Told(a, b)(informer.FailedEvents{{Index: 0}})
		o.Wrote(oracle.Write{Type: oracle.Updated, Key: "n/b", UID: "B", ResourceVersion: "3"})
		o.Told(a, event(informer.Updated, "n/b", "B", "3"))(nil)
		err := o.Check()
		require.ErrorContains(t, err, "not together with", "before: %d", before)
	}
}

// FailedEvents do not have a batch come in parts.
func TestWhatFailedEventsNameIsNotSplit(t *testing.T) {
	o := oracle.New(oracle.Options{})
	o.Wrote(oracle.Write{Type: oracle.Created, Key: "n/a", UID: "A", ResourceVersion: "1"})
	o.Wrote(oracle.Write{Type: oracle.Created, Key: "n/b", UID: "B", ResourceVersion: "2"})
	o.Started(oracle.Run{})
	a, b := event(informer.Added, "n/a", "A", "1"), event(informer.Added, "n/b", "B", "2")
	a.IsInInitialList, b.IsInInitialList = true, true
	for range 3 {
		o.Told(a, b)(informer.FailedEvents{{Index: 0}, {Index: 1}})
	}
	o.Told(b)(nil)
	o.Told(a)(nil)
	require.ErrorContains(t, o.Check(), "not together with")
}

// FailedEvents that are wrong acknowledge nothing, and an informer that tells all events again is not
// blamed.
func TestFailedEventsThatAreWrongAcknowledgeNothing(t *testing.T) {
	for name, wrong := range map[string]error{
		"none":  informer.FailedEvents{},
		"range": informer.FailedEvents{{Index: 7}},
		"twice": informer.FailedEvents{{Index: 0}, {Index: 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := informertest.NewServer(informertest.Options{InMemory: true})
				defer server.Close()
				f := &follower{t: t, Server: server, dice: rand.New(rand.NewPCG(1, 1)), storage: informer.NewResourceVersionStorage()}
				f.oracle = oracle.New(oracle.Options{Late: time.Microsecond})
				for range 30 {
					f.touch()
				}
				calls := 0
				f.config = informer.InformerConfig{Storage: f.storage, ErrorHandler: f.report, ListMode: informer.ListModePaged}
				f.config.BatchHandler = f.oracle.BatchHandler(informer.BatchHandlerFunc(func(context.Context, []informer.Event) error {
					if calls++; calls == 1 {
						return wrong
					}
					return nil
				}))
				f.start(oracle.Run{})
				time.Sleep(time.Minute)
				f.oracle.Settled(nil)
				f.stopped()
				f.oracle.Stopped(false)
				require.NoError(t, f.oracle.Check())
			})
		})
	}
}
