package typed_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/factory/typed"
	"github.com/rvinformer/informer/informertest"
)

// A user of the registry may run the informer himself, as a controller does: a start beside that
// does not end its lists.
func TestStartBesideRunOfTheRegistry(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		f := over(s, typed.WithFactory(factory.New()))
		lease, err := f.Acquire(pods)
		require.NoError(t, err)
		stop := make(chan struct{})
		var running sync.WaitGroup
		running.Go(func() { lease.Informer.Run(stop) })
		synctest.Wait()
		require.NoError(t, lease.Start())
		time.Sleep(time.Second)
		relist(s, func() { create(t, s, "one") })
		require.Equal(t, []string{"default/one"}, keys(lease.Informer))
		close(stop)
		running.Wait()
		<-lease.Release()
		f.Shutdown()
	})
}
