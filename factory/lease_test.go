package factory_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
)

func acquire(t require.TestingT, f *factory.Factory, i cache.SharedIndexInformer) *factory.Lease[cache.SharedIndexInformer] {
	lease, err := f.Acquire(pods, factory.InformerOptions{}, always(i))
	require.NoError(t, err)
	return lease
}

// started returns a lease of i whose informer is started.
func started(t require.TestingT, f *factory.Factory, i cache.SharedIndexInformer) *factory.Lease[cache.SharedIndexInformer] {
	lease := acquire(t, f, i)
	require.NoError(t, lease.Start())
	return lease
}

func TestLastReleaseEndsTheInformer(t *testing.T) {
	alone(t, func(t *testing.T, f *factory.Factory) {
		s := newStub()
		a, b := acquire(t, f, s), acquire(t, f, newStub())
		require.Same(t, s, b.Informer)
		require.NoError(t, a.Start())
		require.NoError(t, b.Start())
		synctest.Wait()
		require.EqualValues(t, 1, s.began.Load())
		require.Equal(t, 2, a.Status().Leases)

		ends(t, a.Release(), "the release of one of two")
		ends(t, a.Release(), "its second release")
		synctest.Wait()
		require.EqualValues(t, 1, s.under.Load(), "another one uses it")
		require.True(t, isOpen(b.Done()))
		require.ErrorIs(t, a.Start(), factory.ErrStopped)

		ended := b.Release()
		ends(t, ended, "the last release")
		require.Zero(t, s.under.Load())
		require.Equal(t, ended, b.Release())
		require.False(t, isOpen(a.Done()))
		require.Empty(t, f.Statuses(), "it is forgotten")
		require.True(t, f.WaitForCacheSync(nil))

		again := newStub()
		c := acquire(t, f, again)
		require.Same(t, again, c.Informer)
		require.NoError(t, c.Start())
		ends(t, c.Release(), "the release of the next")
	})
}

// A lease whose Start was forgotten does not hold up a wait for the others, as in client-go. The
// wait says so.
func TestForgottenStartIsLogged(t *testing.T) {
	f := factory.New()
	defer f.Shutdown()
	lease := acquire(t, f, newStub())
	defer lease.Release()
	log := ktesting.NewLogger(ktesting.NopTL{}, ktesting.NewConfig(ktesting.BufferLogs(true)))
	require.NoError(t, f.WaitForCacheSyncWithContext(klog.NewContext(t.Context(), log)).AsError())
	text := log.GetSink().(ktesting.Underlier).GetBuffer().String()
	require.Contains(t, text, "not started")
	require.Contains(t, text, lease.Key().String())
}

func TestReleaseOfWhatWasNeverStarted(t *testing.T) {
	f := factory.New()
	s := newStub()
	ends(t, acquire(t, f, s).Release(), "the release")
	require.Empty(t, f.Statuses())
	f.Start(nil)
	f.Shutdown()
	require.Zero(t, s.began.Load())
}

// An informer that hangs in its end holds up only those who wait for that: the next informer of its
// key is there at once. If it keeps versions, it runs when the former has ended.
func TestNextResourceVersionInformerRunsAfterTheFormer(t *testing.T) {
	alone(t, func(t *testing.T, f *factory.Factory) {
		hanging, next, third := newStub(), newStub(), newStub()
		hanging.linger = make(chan struct{})
		start := func(s *stub) *factory.Lease[informer.ResourceVersionInformer] {
			lease, err := f.AcquireResourceVersion(pods, factory.InformerOptions{}, alwaysVersions(s))
			require.NoError(t, err)
			require.NoError(t, lease.Start())
			synctest.Wait()
			return lease
		}
		ended := start(hanging).Release()
		synctest.Wait()
		require.True(t, isOpen(ended), "the informer hangs")

		b := start(next)
		require.Zero(t, next.began.Load(), "two informers of one key at a time")
		ends(t, b.Release(), "the release of one that waits for its turn")

		c := start(third)
		require.Zero(t, third.began.Load(), "two informers of one key at a time")
		close(hanging.linger)
		synctest.Wait()
		require.False(t, isOpen(ended))
		require.EqualValues(t, 1, third.under.Load())
		require.Zero(t, next.began.Load())
		ends(t, c.Release(), "the release")
	})
}

// Others share nothing, and need not wait.
func TestNextInformerRunsBesideTheFormer(t *testing.T) {
	alone(t, func(t *testing.T, f *factory.Factory) {
		hanging, next := newStub(), newStub()
		hanging.linger = make(chan struct{})
		a := started(t, f, hanging)
		synctest.Wait()
		ended := a.Release()
		b := started(t, f, next)
		synctest.Wait()
		require.True(t, isOpen(ended))
		require.EqualValues(t, 1, next.under.Load())
		ends(t, b.Release(), "the release")
		close(hanging.linger)
	})
}

func TestReleaseKeepsWhatInformerForHasGivenOut(t *testing.T) {
	alone(t, func(t *testing.T, f *factory.Factory) {
		s := newStub()
		a := started(t, f, s)
		f.InformerFor(pods, factory.InformerOptions{}, never(t))
		ends(t, a.Release(), "the release")
		synctest.Wait()
		require.EqualValues(t, 1, s.under.Load())
		f.InformerFor(pods, factory.InformerOptions{}, never(t))
		f.Shutdown() // which ends it: there is no stop channel
		require.Zero(t, s.under.Load())
	})
}

func TestStopEndsAnInformerWhoeverUsesIt(t *testing.T) {
	alone(t, func(t *testing.T, f *factory.Factory) {
		s, other := newStub(), newStub()
		a, b := acquire(t, f, s), acquire(t, f, s)
		f.InformerFor(configMaps, factory.InformerOptions{}, always(other))
		stop := make(chan struct{})
		f.Start(stop)
		synctest.Wait()
		ends(t, f.Stop(a.Key()), "the stop")
		require.Zero(t, s.under.Load())
		require.False(t, isOpen(a.Done()))
		require.ErrorIs(t, b.Start(), factory.ErrStopped)
		require.Equal(t, informer.PhaseStopped, b.Status().Phase)
		require.EqualValues(t, 1, other.under.Load())
		_, exists := f.Status(a.Key())
		require.False(t, exists)
		ends(t, f.Stop(a.Key()), "the stop of no informer")

		again := newStub()
		c := started(t, f, again)
		ends(t, a.Release(), "the release after the stop")
		ends(t, b.Release(), "the release after the stop")
		synctest.Wait()
		require.EqualValues(t, 1, again.under.Load(), "leases of the former are none of the next")
		ends(t, c.Release(), "the release")
		close(stop)
	})
}

func TestStopCluster(t *testing.T) {
	alone(t, func(t *testing.T, f *factory.Factory) {
		in := func(cluster string, s *stub) {
			for _, resource := range []factory.InformerOptions{{Cluster: cluster}, {Cluster: cluster, Namespace: "x"}} {
				f.InformerFor(pods, resource, always(&stub{SharedIndexInformer: s, synced: make(chan struct{})}))
			}
			f.InformerFor(configMaps, factory.InformerOptions{Cluster: cluster}, always(s))
		}
		east, west := newStub(), newStub()
		east.linger = make(chan struct{})
		in("east", east)
		in("west", west)
		f.Start(nil)
		synctest.Wait()
		ended := f.StopCluster("east")
		synctest.Wait()
		require.True(t, isOpen(ended), "one of three hangs")
		close(east.linger)
		ends(t, ended, "the stop of a cluster")
		require.Len(t, f.Statuses(), 3)
		require.EqualValues(t, 1, west.under.Load())
		ends(t, f.StopCluster("north"), "the stop of an unknown cluster")
		f.Shutdown()
		require.Zero(t, west.under.Load())
	})
}

// An informer that another has taken the place of is waited for as well, while it still runs.
func TestStopWaitsForTheFormer(t *testing.T) {
	for name, stop := range map[string]func(*factory.Factory, factory.Key) <-chan struct{}{
		"one":         (*factory.Factory).Stop,
		"the cluster": func(f *factory.Factory, _ factory.Key) <-chan struct{} { return f.StopCluster("") },
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(t *testing.T, f *factory.Factory) {
				former, channel := newStub(), make(chan struct{})
				former.linger = make(chan struct{})
				f.InformerFor(pods, factory.InformerOptions{}, always(former)).Start(channel)
				synctest.Wait()
				close(channel)
				next := started(t, f, newStub())
				synctest.Wait()
				ended := stop(f, next.Key())
				ends(t, next.Done(), "the end of the next one")
				synctest.Wait()
				require.True(t, isOpen(ended), "the former hangs")
				close(former.linger)
				ends(t, ended, "the stop")
			})
		})
	}
}

func TestStartOne(t *testing.T) {
	alone(t, func(t *testing.T, f *factory.Factory) {
		s, other := newStub(), newStub()
		key := acquire(t, f, s).Key()
		f.InformerFor(configMaps, factory.InformerOptions{}, always(other))
		stop := make(chan struct{})
		require.NoError(t, f.StartOne(key, stop))
		require.NoError(t, f.StartOne(key, nil))
		synctest.Wait()
		require.Equal(t, []int32{1, 0}, []int32{s.began.Load(), other.began.Load()})
		close(stop)
		require.ErrorIs(t, f.StartOne(key, nil), factory.ErrStopped)
		unknown, err := factory.NewKey(widgets, factory.InformerOptions{Cluster: "east"})
		require.NoError(t, err)
		err = f.StartOne(unknown, nil)
		require.ErrorIs(t, err, factory.ErrUnknown)
		require.ErrorContains(t, err, "example.com/v1/widgets, cluster east")
		f.Shutdown()
		unstarted, err := factory.NewKey(configMaps, factory.InformerOptions{})
		require.NoError(t, err)
		require.ErrorIs(t, f.StartOne(unstarted, nil), factory.ErrShutDown)
	})
}

// Shutdown ends what has no stop channel.
func TestShutdownEndsLeasesAndWaitsForTheRest(t *testing.T) {
	alone(t, func(t *testing.T, f *factory.Factory) {
		leased, held := newStub(), newStub()
		a := started(t, f, leased)
		ctx, stop := context.WithCancel(t.Context())
		f.InformerFor(configMaps, factory.InformerOptions{}, always(held))
		f.StartWithContext(ctx)
		synctest.Wait()

		patience, giveUp := context.WithCancelCause(t.Context())
		giveUp(context.DeadlineExceeded)
		require.ErrorIs(t, f.ShutdownWithContext(patience), context.DeadlineExceeded)
		ends(t, a.Done(), "the end of a leased informer")
		require.ErrorIs(t, a.Start(), factory.ErrStopped)
		require.EqualValues(t, 1, held.under.Load())
		stop()
		require.NoError(t, f.ShutdownWithContext(t.Context()))
		require.NoError(t, f.ShutdownWithContext(patience), "there is nothing to wait for")
		ends(t, a.Release(), "the release")
	})
}

// So does Shutdown if another informer has taken the place of one whose users have all left, and one
// of them has not released its lease.
func TestShutdownEndsAnInformerThatWasLeft(t *testing.T) {
	alone(t, func(t *testing.T, f *factory.Factory) {
		left := newStub()
		a := acquire(t, f, left)
		ctx, leave := context.WithCancel(t.Context())
		require.NoError(t, a.StartUntil(ctx))
		synctest.Wait()
		leave()
		started(t, f, newStub())
		synctest.Wait()
		require.EqualValues(t, 1, left.under.Load())
		patience, giveUp := context.WithTimeout(t.Context(), time.Hour)
		defer giveUp()
		require.NoError(t, f.ShutdownWithContext(patience))
		require.Zero(t, left.under.Load())
		ends(t, a.Release(), "the release")
	})
}

// A stop channel costs a goroutine only while an informer runs with it.
func TestStopChannelThatIsNeverClosedLeavesNothing(t *testing.T) {
	alone(t, func(t *testing.T, f *factory.Factory) {
		for range 10 {
			a := acquire(t, f, newStub())
			f.Start(make(chan struct{}))
			<-a.Release()
		}
	}) // panics if a goroutine is left
}

// An informer that ended by its stop channel is remembered while it is leased, and no longer.
func TestEndedInformerIsForgottenWithItsLastLease(t *testing.T) {
	alone(t, func(t *testing.T, f *factory.Factory) {
		a := acquire(t, f, newStub())
		stop := make(chan struct{})
		f.Start(stop)
		close(stop)
		ends(t, a.Done(), "the end")
		require.False(t, f.WaitForCacheSync(nil))
		require.Len(t, f.Statuses(), 1)
		ends(t, a.Release(), "the release")
		require.True(t, f.WaitForCacheSync(nil))
		require.Empty(t, f.Statuses())
	})
}

// One without leases is remembered until its key is asked for again, or it is stopped.
func TestEndedInformerIsForgottenWhenToldTo(t *testing.T) {
	alone(t, func(t *testing.T, f *factory.Factory) {
		opts := factory.InformerOptions{Cluster: "east"}
		for n, forget := range []func() <-chan struct{}{
			func() <-chan struct{} { return f.StopCluster("east") },
			func() <-chan struct{} { return f.Stop(f.Statuses()[0].Key) },
		} {
			stop := make(chan struct{})
			first := f.InformerFor(pods, opts, newStubFunc)
			first.Start(stop)
			close(stop)
			synctest.Wait()
			require.False(t, f.WaitForCacheSync(nil), "round %d", n)
			require.Equal(t, informer.PhaseStopped, f.Statuses()[0].Phase)

			again := f.InformerFor(pods, opts, newStubFunc)
			require.NotSame(t, first.Informer, again.Informer)
			require.Equal(t, informer.PhaseIdle, f.Statuses()[0].Phase)
			stop = make(chan struct{})
			again.Start(stop)
			close(stop)
			synctest.Wait()
			require.Len(t, f.Statuses(), 1)
			require.False(t, isOpen(forget()), "it has ended before")
			require.Empty(t, f.Statuses())
			require.True(t, f.WaitForCacheSync(nil))
		}
	})
}

// Parts of a program that give an informer back do not fail others that wait for all.
func TestReleasedInformerIsNotWaitedFor(t *testing.T) {
	alone(t, func(t *testing.T, f *factory.Factory) {
		s := newStub()
		s.linger = make(chan struct{})
		a := started(t, f, s)
		waited := make(chan bool)
		go func() { waited <- f.WaitForCacheSync(nil) }()
		synctest.Wait()
		a.Release()
		require.True(t, <-waited)
		close(s.linger)
	})
}

// An informer that was started with a context runs with its values, and does not end with it.
func TestLeaseStartsWithTheValuesOfAContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type name struct{}
		f := factory.New()
		defer f.Shutdown()
		i := &listening{stub: newStub()}
		lease, err := f.Acquire(pods, factory.InformerOptions{}, always(i))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), name{}, "east"))
		require.NoError(t, lease.StartWithContext(ctx))
		cancel()
		synctest.Wait()
		require.Equal(t, "east", i.ctx.Value(name{}))
		require.NoError(t, i.ctx.Err())
		ends(t, lease.Release(), "the release")
		require.Error(t, i.ctx.Err())
		require.ErrorIs(t, lease.StartWithContext(t.Context()), factory.ErrStopped)
	})
}

// listening keeps the context that it runs with.
type listening struct {
	*stub
	ctx context.Context
}

func (l *listening) RunWithContext(ctx context.Context) {
	l.ctx = ctx
	l.stub.RunWithContext(ctx)
}
