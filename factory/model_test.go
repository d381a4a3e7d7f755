package factory_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
)

// TestModel does random things with a factory, and holds it against a model after each.
func TestModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// rapid would ask for a deadline, which a bubble does not have.
		rapid.Check(struct{ testing.TB }{t}, func(t *rapid.T) {
			m := newModel()
			t.Repeat(map[string]func(*rapid.T){
				"":             m.check,
				"acquire":      m.acquire,
				"acquire ":     m.acquire, // twice as often
				"informer for": m.informerFor,
				"release":      m.release,
				"lease start":  m.leaseStart,
				"start one":    m.startOne,
				"start":        m.start,
				"close":        m.close,
				"stop":         m.stop,
				"stop cluster": m.stopCluster,
				"sync":         m.sync,
				"let go":       func(*rapid.T) { m.letGo() },
				"shutdown":     m.shutdown,
			})
			m.finish(t)
		})
	})
}

// place is where there are informers.
type place struct {
	resource schema.GroupVersionResource
	cluster  string
	kind     factory.InformerType
}

func (p place) options() factory.InformerOptions {
	return factory.InformerOptions{Cluster: p.cluster, InformerType: p.kind}
}

// versions tells that the informer there keeps versions only.
func (p place) versions() bool { return p.kind == factory.ResourceVersionInformer }

func (p place) key() factory.Key {
	k, err := factory.NewKey(p.resource, p.options())
	if err != nil {
		panic(err)
	}
	return k
}

var places = []place{
	{resource: pods, cluster: "east"},
	{resource: pods, cluster: "east", kind: factory.ResourceVersionInformer},
	{resource: pods, cluster: "west", kind: factory.ResourceVersionInformer},
}

// modelled is an informer as the model sees it.
type modelled struct {
	place      place
	stub       *stub
	registered bool // the factory knows of it
	users      int
	pinned     bool
	started    bool
	stop       chan struct{} // nil: it was started without one
	removed    bool          // the factory was told to let go of it
	ran, ended bool
}

func (i *modelled) over() bool { return i.ended || i.started && i.stop != nil && !isOpen(i.stop) }

func (i *modelled) lingers() bool { return isOpen(i.stub.linger) }

type modelLease struct {
	lease interface {
		Start() error
		Release() <-chan struct{}
		Done() <-chan struct{}
	}
	of       *modelled
	released bool
}

type model struct {
	factory   *factory.Factory
	informers []*modelled
	leases    []*modelLease
	stops     []chan struct{}
	shut      bool
}

func newModel() *model {
	return &model{factory: factory.New(), stops: []chan struct{}{make(chan struct{}), make(chan struct{})}}
}

// at is the informer that the factory has somewhere.
func (m *model) at(p place) *modelled {
	for _, i := range m.informers {
		if i.place == p && i.registered {
			return i
		}
	}
	return nil
}

// ask is what asking somewhere should come to.
func (m *model) ask(t *rapid.T, p place) *modelled {
	there := m.at(p)
	if there != nil && !there.over() {
		return there
	}
	if there != nil {
		there.registered = false
	}
	i := &modelled{place: p, stub: newStub(), registered: true}
	i.stub.linger = make(chan struct{})
	if rapid.Bool().Draw(t, "prompt") {
		close(i.stub.linger)
	}
	m.informers = append(m.informers, i)
	return i
}

func (m *model) acquire(t *rapid.T) {
	p := rapid.SampledFrom(places).Draw(t, "place")
	i := m.ask(t, p)
	i.users++
	if p.versions() {
		lease, err := m.factory.AcquireResourceVersion(p.resource, p.options(), alwaysVersions(i.stub))
		require.NoError(t, err)
		require.Same(t, i.stub, lease.Informer.(versionsStub).stub)
		m.leases = append(m.leases, &modelLease{lease: lease, of: i})
	} else {
		lease, err := m.factory.Acquire(p.resource, p.options(), always(i.stub))
		require.NoError(t, err)
		require.Same(t, i.stub, lease.Informer)
		m.leases = append(m.leases, &modelLease{lease: lease, of: i})
	}
}

func (m *model) informerFor(t *rapid.T) {
	p := places[0]
	i := m.ask(t, p)
	require.Same(t, i.stub, m.factory.InformerFor(p.resource, p.options(), always(i.stub)).Informer)
	i.pinned = true
}

func (m *model) aLease(t *rapid.T) *modelLease {
	if len(m.leases) == 0 {
		t.Skip("no lease")
	}
	return rapid.SampledFrom(m.leases).Draw(t, "lease")
}

func (m *model) release(t *rapid.T) {
	l := m.aLease(t)
	l.lease.Release()
	if l.released {
		return
	}
	l.released = true
	if l.of.users--; l.of.users == 0 && !l.of.pinned {
		l.of.drop()
	}
}

func (i *modelled) drop() { i.registered, i.removed = false, true }

// begin is what starting an informer should do.
func (m *model) begin(i *modelled, stop chan struct{}) (want error) {
	switch {
	case i.removed || i.over():
		return factory.ErrStopped
	case i.started:
		return nil
	case m.shut:
		return factory.ErrShutDown
	}
	i.started, i.stop = true, stop
	return nil
}

func (m *model) leaseStart(t *rapid.T) {
	l := m.aLease(t)
	err := l.lease.Start()
	if l.released {
		require.ErrorIs(t, err, factory.ErrStopped)
		return
	}
	require.ErrorIs(t, err, m.begin(l.of, nil))
}

func (m *model) startOne(t *rapid.T) {
	p, stop := rapid.SampledFrom(places).Draw(t, "place"), rapid.SampledFrom(m.stops).Draw(t, "stop")
	err := m.factory.StartOne(p.key(), stop)
	if i := m.at(p); i != nil {
		require.ErrorIs(t, err, m.begin(i, stop))
	} else {
		require.ErrorIs(t, err, factory.ErrUnknown)
	}
}

func (m *model) start(t *rapid.T) {
	stop := rapid.SampledFrom(append(m.stops, nil)).Draw(t, "stop")
	m.factory.Start(stop)
	for _, i := range m.informers {
		if i.registered && !i.started {
			_ = m.begin(i, stop)
		}
	}
}

func (m *model) close(t *rapid.T) {
	n := rapid.IntRange(0, len(m.stops)-1).Draw(t, "stop")
	close(m.stops[n])
	m.stops[n] = make(chan struct{})
}

func (m *model) stop(t *rapid.T) {
	p := rapid.SampledFrom(places).Draw(t, "place")
	m.factory.Stop(p.key())
	if i := m.at(p); i != nil {
		i.drop()
	}
}

func (m *model) stopCluster(t *rapid.T) {
	cluster := rapid.SampledFrom([]string{"east", "west"}).Draw(t, "cluster")
	m.factory.StopCluster(cluster)
	for _, i := range m.informers {
		if i.registered && i.place.cluster == cluster {
			i.drop()
		}
	}
}

func (m *model) sync(t *rapid.T) {
	if len(m.informers) == 0 {
		t.Skip("no informer")
	}
	if s := rapid.SampledFrom(m.informers).Draw(t, "informer").stub; isOpen(s.synced) {
		close(s.synced)
	}
}

func (m *model) letGo() {
	for _, i := range m.informers {
		if i.lingers() {
			close(i.stub.linger)
		}
	}
}

func (m *model) shutdown(t *rapid.T) {
	if rapid.IntRange(0, 9).Draw(t, "dice") > 0 {
		t.Skip("too often would be dull")
	}
	m.shut = true
	impatient, cancel := context.WithCancel(context.Background())
	cancel()
	_ = m.factory.ShutdownWithContext(impatient) // whether it had to wait, finish sees
}

// settle lets the model get where the factory gets when nothing more can happen.
func (m *model) settle() {
	for _, i := range m.informers {
		switch told := i.removed || i.over() || m.shut && i.started && i.stop == nil; {
		case !told, i.started && i.ran && i.lingers():
		default:
			i.ended = true
		}
	}
	for _, i := range m.informers {
		if i.started && !i.ended && !i.over() && !i.removed && !m.busy(i) {
			i.ran = true
		}
	}
}

// busy reports whether another informer still runs where i is to run.
func (m *model) busy(i *modelled) bool {
	return i.place.versions() && slices.ContainsFunc(m.informers, func(other *modelled) bool {
		return other != i && other.place == i.place && other.ran && !other.ended
	})
}

func (m *model) check(t *rapid.T) {
	synctest.Wait()
	m.settle()
	registered, synced := 0, true
	for n, i := range m.informers {
		name := fmt.Sprintf("informer %d: %+v", n, *i)
		require.Equal(t, i.ran, i.stub.began.Load() == 1, name)
		require.Equal(t, i.ran && !i.ended, i.stub.under.Load() == 1, name)
		if i.registered {
			registered++
			status, exists := m.factory.Status(i.place.key())
			require.True(t, exists, name)
			require.Equal(t, i.users, status.Leases, name)
			require.Equal(t, i.started, !status.Started.IsZero(), name)
			synced = synced && (!i.started || !isOpen(i.stub.synced))
		}
	}
	require.Len(t, m.factory.Statuses(), registered)
	require.Equal(t, synced, m.factory.WaitForCacheSync(closedChannel()))
	require.Equal(t, synced, m.factory.WaitForCacheSyncWithContext(endedContext()).AsError() == nil)
	for n, l := range m.leases {
		require.Equal(t, l.of.ended, !isOpen(l.lease.Done()), "lease %d", n)
		if last := l.of.users == 0 && l.of.removed; l.released && !last {
			require.False(t, isOpen(l.lease.Release()), "lease %d", n)
		}
	}
}

func endedContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func (m *model) finish(t *rapid.T) {
	m.letGo()
	for _, stop := range m.stops {
		close(stop)
	}
	m.factory.Shutdown()
	for n, i := range m.informers {
		require.Zero(t, i.stub.under.Load(), "informer %d", n)
	}
	for _, l := range m.leases {
		<-l.lease.Release()
	}
}

// Many do all of this at the same time: none runs twice, of a key that keeps versions no two run at
// a time, and all end.
func TestManyUsersAtOnce(t *testing.T) {
	f := factory.New()
	var under [3]atomic.Int32
	var users sync.WaitGroup
	for user := range 8 {
		random := rand.New(rand.NewPCG(1, uint64(user)))
		users.Go(func() {
			for range 300 {
				n := random.IntN(len(places))
				p := places[n]
				start, release, err := someLease(f, p, &counted{stub: newStub(), t: t, others: &under[n]})
				if err != nil {
					t.Error(err)
					return
				}
				switch random.IntN(6) {
				case 0:
					f.Start(make(chan struct{}))
				case 1:
					stop := make(chan struct{})
					_ = f.StartOne(p.key(), stop) // it may have gone meanwhile
					defer close(stop)
				case 2:
					f.StopCluster(p.cluster)
				case 3:
					<-f.Stop(p.key())
				case 4:
					f.WaitForCacheSync(closedChannel())
				default:
					_ = start() // it may have been stopped meanwhile
				}
				if random.IntN(2) == 0 {
					release()
				} else {
					defer release()
				}
			}
		})
	}
	users.Wait()
	f.StopCluster("east")
	f.StopCluster("west")
	f.Shutdown()
	for n := range under {
		require.Zero(t, under[n].Load())
	}
	require.Empty(t, f.Statuses())
}

func someLease(f *factory.Factory, p place, c *counted) (start func() error, release func() <-chan struct{}, err error) {
	if p.versions() {
		lease, err := f.AcquireResourceVersion(p.resource, p.options(), func() informer.ResourceVersionInformer {
			f.Statuses()
			return countedVersions{counted: c}
		})
		if err != nil {
			return nil, nil, err
		}
		return lease.Start, lease.Release, nil
	}
	lease, err := f.Acquire(p.resource, p.options(), func() cache.SharedIndexInformer {
		f.Statuses()
		return c
	})
	if err != nil {
		return nil, nil, err
	}
	return lease.Start, lease.Release, nil
}

// counted is a stub that sees whether it runs twice.
type counted struct {
	*stub
	t      *testing.T
	others *atomic.Int32 // that run under its key
}

func (c *counted) RunWithContext(ctx context.Context) {
	c.others.Add(1)
	defer c.others.Add(-1)
	c.stub.RunWithContext(ctx)
	if c.began.Load() != 1 {
		c.t.Error("an informer runs twice")
	}
}

// countedVersions sees whether others of its key run.
type countedVersions struct {
	*counted
	noVersions
}

func (c countedVersions) RunWithContext(ctx context.Context) {
	if c.others.Load() != 0 {
		c.t.Error("two informers of one key at a time")
	}
	c.counted.RunWithContext(ctx)
}
