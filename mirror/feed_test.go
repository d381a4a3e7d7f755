package main

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/stretchr/testify/require"
)

// everySecond is a store whose every second transaction fails, in the midst.
type everySecond struct {
	store
	tries int
}

func (s *everySecond) Apply(ctx context.Context, changes []change) error {
	if s.tries++; s.tries%2 == 1 {
		return s.store.Apply(ctx, append(changes, change{kind: changeKind(99)}))
	}
	return s.store.Apply(ctx, changes)
}

// Whenever a feed is stopped, its informer knows exactly what the database has, also while objects
// change and transactions fail. So the next run, or a checkpoint of the informer, can go on from
// there.
func TestFeedKnowsWhatIsWritten(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, "here", 1000, informertest.Options{})
	db := openTestDatabase(t)
	at, stock := place{cluster: "here", resource: pods}, c.of(t, pods)
	factory, err := informer.NewDynamicListerWatcherFactory(c.server.Config())
	require.NoError(t, err)
	w := newWriter("database", &everySecond{store: db}, 1, func(string) {})

	for round := range 8 {
		storage := informer.NewResourceVersionStorage()
		require.NoError(t, db.Seed(t.Context(), storage, at))
		f := newFeed(at, factory.ForResource("", pods), storage, nil, feedConfig{writer: w})
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(round)*50*time.Millisecond)
		var going sync.WaitGroup
		going.Go(func() { f.Run(ctx) })
		for i := 0; ctx.Err() == nil; i++ {
			require.NoError(t, stock.Create())
			require.NoError(t, stock.Delete())
			require.NoError(t, stock.Recreate(7*i))
			_, err := stock.Update(11 * i)
			require.NoError(t, err)
			time.Sleep(time.Millisecond)
		}
		going.Wait()
		cancel()
		require.Equal(t, seeded(t, db, at), maps.Collect(storage.All()), "round %d", round)
	}
	rowsByName(t, mirrorConfig{endpoints: []endpoint{c.endpoint()}, database: db, resources: []string{"pods"}})
	requireEqual(t, db, c, pods)
}

// downStore is a database that is down until it is healed.
type downStore struct {
	store

	mu    sync.Mutex
	up    bool
	tries int
}

func (s *downStore) Apply(ctx context.Context, changes []change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.up {
		s.tries++
		return errors.New("power is gone")
	}
	return s.store.Apply(ctx, changes)
}

func (s *downStore) heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.up = true
}

func (s *downStore) triedOften() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tries > 30
}

// A database that is down for a while is told in two lines, of however many feeds and tries. What
// changed meanwhile is written when it is up again.
func TestDatabaseIsDownForAWhile(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, "here", 400, informertest.Options{})
	db := openTestDatabase(t)
	down := &downStore{store: db}
	r := start(t, mirrorConfig{endpoints: []endpoint{c.endpoint()}, database: db, store: down})
	require.Eventually(t, down.triedOften, soon, time.Millisecond)
	for i := range 10 {
		require.NoError(t, c.of(t, pods).Delete())
		require.NoError(t, c.of(t, pods).Recreate(i))
		require.NoError(t, c.of(t, widgets).Create())
	}
	down.heal()
	r.settle(t)
	r.says(t, "writing again")
	r.reaches(t, c, pods, widgets)
	requireEqual(t, db, c)
	require.NoError(t, r.stop())
	require.Regexp(t, `^mirror: database \S+: cannot write: power is gone; the informers wait while it is tried again
mirror: database \S+: writing again, after \S+
$`, r.out.messages())
}
