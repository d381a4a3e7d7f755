package status_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

func TestLookupTellsWhatIsBelievedOfAnObject(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/first")
		first, err := w.Get(harness.Pods, "a", "first")
		require.NoError(t, err)
		held := make(chan struct{})
		handler := &harness.Recorder{Before: func(call string) {
			if call == "add a/second" {
				<-held
			}
		}}
		i := harness.Follow(w, informer.InformerConfig{Handler: handler})
		_, found := i.Lookup("a/first")
		require.False(t, found, "it does not run")
		defer harness.Settle(i.RunWithContext)()
		listed := time.Now()

		b, found := i.Lookup("a/first")
		require.True(t, found)
		require.Equal(t, informer.Belief{Acknowledged: &informer.AcknowledgedState{
			ResourceVersion: first.GetResourceVersion(), UID: first.GetUID(), ReadBefore: b.Acknowledged.ReadBefore,
		}}, b, "the first list is the first that is known")
		require.True(t, listed.Equal(b.Acknowledged.ReadBefore))
		_, found = i.Lookup("a/nothing")
		require.False(t, found)

		time.Sleep(time.Hour)
		w.CreatePods("a/second")
		synctest.Wait()
		second, err := w.Get(harness.Pods, "a", "second")
		require.NoError(t, err)
		b, found = i.Lookup("a/second")
		require.True(t, found)
		require.Nil(t, b.Acknowledged)
		require.Equal(t, second.GetResourceVersion(), b.Waiting.ResourceVersion)
		require.Equal(t, second.GetUID(), b.Waiting.UID)
		require.True(t, b.Waiting.InHandler)
		require.True(t, time.Now().Equal(b.Waiting.Since))
		require.False(t, b.Waiting.Deleted)

		w.DeletePods("a/first") // which waits for the handler, too
		synctest.Wait()
		b, _ = i.Lookup("a/first")
		require.Equal(t, first.GetResourceVersion(), b.Acknowledged.ResourceVersion)
		require.True(t, b.Waiting.Deleted)
		require.False(t, b.Waiting.InHandler)

		close(held)
		synctest.Wait()
		_, found = i.Lookup("a/first")
		require.False(t, found)
		b, _ = i.Lookup("a/second")
		require.Nil(t, b.Waiting)
		require.WithinRange(t, time.Now(), b.Acknowledged.ReadAfter, b.Acknowledged.ReadAfter.Add(12*time.Minute))
		require.True(t, b.Acknowledged.ReadAfter.After(listed))
	})
}

func TestLookupTellsWhatTheHandlerFailsFor(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/first")
		fails := true
		i := harness.Follow(w, informer.InformerConfig{BatchHandler: informer.BatchHandlerFunc(func(context.Context, []informer.Event) error {
			if fails {
				return errors.New("not now")
			}
			return nil
		})})
		stop := harness.Start(i.RunWithContext)
		harness.Sleep(time.Minute)
		b, found := i.Lookup("a/first")
		require.True(t, found)
		require.Nil(t, b.Acknowledged)
		require.True(t, b.Unsettled)
		require.Greater(t, b.Waiting.Attempts, 1)
		stop()
		require.True(t, b.Unsettled, "what it has begun is not forgotten")
		fails = false
		defer harness.Start(i.RunWithContext)()
		time.Sleep(time.Minute)
		b, _ = i.Lookup("a/first")
		require.NotNil(t, b.Acknowledged)
		require.False(t, b.Unsettled)
		require.Nil(t, b.Waiting)
	})
}

func TestLookupOfASharedInformerIsThatOfTheHandlerLeastFar(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/first")
		s := harness.Share(w, informer.InformerConfig{})
		held := make(chan struct{})
		quick := harness.AddHandler(t, s, &harness.Recorder{})
		slow := harness.AddHandler(t, s, &harness.Recorder{Before: func(call string) {
			if call != "add a/first initial" {
				<-held
			}
		}})
		_, found := s.Lookup("a/first")
		require.False(t, found)
		defer harness.Settle(s.RunWithContext)()
		was, found := s.Lookup("a/first")
		require.True(t, found)
		require.Nil(t, was.Waiting)
		w.UpdatePod("a/first", "changed")
		w.CreatePods("a/second")
		synctest.Wait()
		ofQuick, _ := quick.Lookup("a/first")
		ofSlow, _ := slow.Lookup("a/first")
		require.Nil(t, ofQuick.Waiting)
		require.Equal(t, was.Acknowledged.ResourceVersion, ofSlow.Acknowledged.ResourceVersion)
		require.Equal(t, ofQuick.Acknowledged.ResourceVersion, ofSlow.Waiting.ResourceVersion)
		b, _ := s.Lookup("a/first")
		require.Equal(t, ofSlow, b)
		b, found = s.Lookup("a/second")
		require.True(t, found)
		require.Nil(t, b.Acknowledged, "not by all")
		require.NotNil(t, b.Waiting)
		close(held)
		synctest.Wait()
		b, _ = s.Lookup("a/second")
		require.NotNil(t, b.Acknowledged)
		require.Nil(t, b.Waiting)
	})
}
