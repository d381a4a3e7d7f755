package objectcache_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
)

// gate is an index function that waits while the gate is shut.
type gate struct {
	mu sync.Mutex
	// open is closed when the gate is, entered when the function waits at it. They are nil while
	// the gate is open.
	open, entered chan struct{}
	once          *sync.Once
}

func (g *gate) shut() (entered <-chan struct{}, opened func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open, g.entered, g.once = make(chan struct{}), make(chan struct{}), &sync.Once{}
	return g.entered, sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		close(g.open)
		g.open, g.entered = nil, nil
	})
}

func (g *gate) index(interface{}) ([]string, error) {
	if open := g.enter(); open != nil {
		<-open
	}
	return nil, nil
}

func (g *gate) enter() (open <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.entered != nil {
		g.once.Do(func() { close(g.entered) })
	}
	return g.open
}

// requireEnds calls call with a context that ends soon, and fails the test if that does not end the
// call.
func requireEnds(t *testing.T, what string, call func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- call(ctx) }()
	select {
	case err := <-ended:
		require.ErrorIs(t, err, context.DeadlineExceeded, what)
	case <-time.After(10 * time.Second):
		require.Fail(t, "its context does not end the call", what)
	}
}

// WaitUntil and Audit do not wait for the writer: their context ends them while an index function
// blocks it.
func TestContextEndsWaitAndAuditWhileTheWriterIsBusy(t *testing.T) {
	for name, block := range map[string]func(w *world, i *objectcache.Informer, g *gate, entered <-chan struct{}){
		"in the index function of a watch event": func(w *world, _ *objectcache.Informer, _ *gate, _ <-chan struct{}) { w.update("a/1", "changed") },
		"in AddIndexers": func(w *world, i *objectcache.Informer, g *gate, entered <-chan struct{}) {
			w.t.Cleanup(start(func(context.Context) { _ = i.AddIndexers(cache.Indexers{"added": g.index}) }))
			<-entered
			w.update("a/1", "changed")
		},
	} {
		for _, decoded := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, decoded=%t", name, decoded), func(t *testing.T) {
				server := informertest.NewServer(informertest.Options{})
				defer server.Close()
				w := &world{t, server}
				w.create("a/1", "a/2")
				g := &gate{}
				i := newInformer(w.lister(), nil, objectcache.Options{Decoded: decoded, Indexers: cache.Indexers{"gate": g.index}})
				defer start(i.RunWithContext)()
				<-i.HasSyncedChecker().Done()
				reached := i.LastSyncResourceVersion()
				entered, opened := g.shut()
				defer opened()
				block(w, i, g, entered)
				<-entered
				versions, err := w.ResourceVersions(pods, "")
				require.NoError(t, err)
				requireEnds(t, "WaitUntil", func(ctx context.Context) error { return i.WaitUntil(ctx, versions["a/1"]) })
				require.NoError(t, i.WaitUntil(t.Context(), reached), "what was read before can be waited for")
				if decoded && name == "in AddIndexers" {
					return // client-go's own indexer has readers wait
				}
				requireEnds(t, "Audit", func(ctx context.Context) error {
					_, err := i.Audit(ctx, informer.AuditOptions{})
					return err
				})
				opened()
				require.NoError(t, i.WaitUntil(t.Context(), versions["a/1"]))
				r, err := i.Audit(t.Context(), informer.AuditOptions{})
				require.NoError(t, err)
				require.Zero(t, r.Differences())
			})
		}
	}
}
