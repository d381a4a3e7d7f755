package watches_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// A watch off the wire waits in a read that nothing else can end.
func TestResyncBesideAWatchOffTheWire(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		store := &harness.Journal{}
		stop := harness.Start(informer.NewReflector(w.Lister(), nil, store, time.Minute).RunWithContext)
		defer stop()
		time.Sleep(90 * time.Second)
		w.CreatePods("a/2")
		time.Sleep(time.Minute)
		stop()
		require.Equal(t, []string{"resync", "add a/2", "resync"}, store.Events()[1:])
		require.Equal(t, []string{"list limit=500 rv=0", "watch rv=2"}, w.Verbs())
	})
}

func TestResyncErrorEndsAWatchOffTheWire(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		errs := harness.Reported(t)
		failed := errors.New("failed")
		store := &harness.Journal{Fail: func(call string) error {
			if call == "resync" {
				return failed
			}
			return nil
		}}
		stop := harness.Start(informer.NewReflector(w.Lister(), nil, store, time.Minute).RunWithContext)
		time.Sleep(90 * time.Second)
		stop()
		require.Equal(t, []string{"list limit=500 rv=0", "watch rv=1", "watch rv=1"}, w.Verbs())
		require.Len(t, errs(), 1)
		require.ErrorIs(t, errs()[0], failed)
	})
}

func TestPanicOfAResyncReachesTheCallerOfRun(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		store := &harness.Journal{Fail: func(call string) error {
			if call == "resync" {
				panic("oops")
			}
			return nil
		}}
		r := informer.NewReflector(w.Lister(), nil, store, time.Minute)
		require.PanicsWithValue(t, "oops", func() { r.RunWithContext(t.Context()) })
	})
}

// A failed assertion in a store ends the goroutine of Run, as it does outside of a resync.
func TestGoexitOfAResyncEndsRun(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		store := &harness.Journal{Fail: func(call string) error {
			if call == "resync" {
				runtime.Goexit()
			}
			return nil
		}}
		var running sync.WaitGroup
		running.Go(func() { informer.NewReflector(w.Lister(), nil, store, time.Minute).RunWithContext(t.Context()) })
		running.Wait()
		require.Equal(t, []string{"list limit=500 rv=0", "watch rv=1"}, w.Verbs())
	})
}

// What ends the watch while a store resyncs does not hide that the store fails then.
func TestResyncThatFailsAfterTheWatchHasEnded(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		errs := harness.Reported(t)
		failed := errors.New("failed")
		stop := harness.Start(informer.NewReflector(w.Lister(), nil, failingSlowly(func() error { return failed }), time.Minute).RunWithContext)
		time.Sleep(65 * time.Second) // the resync takes 10 s from the minute on
		w.CloseClientConnections()
		time.Sleep(30 * time.Second)
		stop()
		require.True(t, slices.ContainsFunc(errs(), func(err error) bool { return errors.Is(err, failed) }), "it was told %v", errs())
	})
}

func TestPanicOfAResyncAfterTheEndReachesTheCallerOfRun(t *testing.T) {
	for name, end := range map[string]func(w *harness.World, cancel func()){
		"of the watch": func(w *harness.World, _ func()) { w.CloseClientConnections() },
		"of Run":       func(_ *harness.World, cancel func()) { cancel() },
	} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r := informer.NewReflector(w.Lister(), nil, failingSlowly(func() error { panic("oops") }), time.Minute)
			time.AfterFunc(65*time.Second, func() { end(w, cancel) })
			time.AfterFunc(5*time.Minute, cancel)
			require.PanicsWithValue(t, "oops", func() { r.RunWithContext(ctx) })
		})
	}
}

// failingSlowly is a store whose first resync takes 10 s and ends with what fail does.
func failingSlowly(fail func() error) *harness.Journal {
	resynced := false
	return &harness.Journal{Fail: func(call string) error {
		if call != "resync" || resynced {
			return nil
		}
		resynced = true
		time.Sleep(10 * time.Second)
		return fail()
	}}
}

// A slow store is told of one thing at a time: what comes meanwhile waits.
func TestEventsWaitForAResync(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		store := &slowStore{}
		r := informer.NewReflector(w.Lister(), nil, store, time.Minute)
		defer harness.Start(r.RunWithContext)()
		time.Sleep(65 * time.Second) // the resync takes 10 s from the minute on
		w.CreatePods("a/1")
		synctest.Wait()
		require.False(t, slices.Contains(store.Events(), "add a/1"))
		time.Sleep(10 * time.Second)
		require.Equal(t, []string{"resync", "resynced", "add a/1"}, store.Events()[1:])
	})
}

type slowStore struct{ harness.Journal }

func (s *slowStore) Resync() error {
	_ = s.Journal.Resync()
	time.Sleep(10 * time.Second)
	return s.Note("resynced", func(map[string]string) {})
}
