package e2e

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/e2e/cluster"
)

// stopTimeout is how long Run may take to return after it was told to.
const stopTimeout = time.Minute

// session is one run of an informer with a mirror for a handler.
type session struct {
	informer informer.ResourceVersionInformer
	mirror   *mirror

	cancel context.CancelFunc
	done   chan struct{} // closed when Run has returned

	mu     sync.Mutex
	errors []error // as the ErrorHandler was told them
}

// source lists and watches the objects as a user of the library would.
func source(t *testing.T, config *rest.Config, objects *cluster.Objects) cache.ListerWatcher {
	t.Helper()
	factory, err := informer.NewDynamicListerWatcherFactory(config)
	require.NoError(t, err)
	return factory.ForResource(objects.Namespace, objects.Resource)
}

// start runs an informer that reports to m. The test need not stop it.
func start(ctx context.Context, t *testing.T, m *mirror, config informer.InformerConfig) *session {
	t.Helper()
	s := newSession(t, m, config)
	s.run(ctx, t)
	return s
}

// newSession makes an informer that is yet to be run. Where config has a handler
// already, that must hand on to m what it is told.
func newSession(t *testing.T, m *mirror, config informer.InformerConfig) *session {
	t.Helper()
	s := &session{mirror: m}
	if config.Handler == nil {
		config.Handler = m
	}
	if config.Storage == nil {
		config.Storage = informer.NewResourceVersionStorage()
	}
	handle := config.ErrorHandler
	config.ErrorHandler = func(r *informer.Reflector, err error) {
		s.note(err)
		if handle != nil {
			handle(r, err)
		}
	}
	s.informer = informer.NewResourceVersionInformer(t.Name(), config)
	return s
}

func (s *session) run(ctx context.Context, t *testing.T) {
	t.Helper()
	ctx, s.cancel = context.WithCancel(ctx)
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		s.informer.RunWithContext(ctx)
	}()
	t.Cleanup(func() {
		s.stop(t)
		if t.Failed() {
			t.Logf("errors that the informer reported: %v", s.reported())
		}
	})
}

func (s *session) note(err error) {
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errors = append(s.errors, err)
}

func (s *session) reported() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]error(nil), s.errors...)
}

// stop ends the run and waits for it. Stopping again does nothing.
func (s *session) stop(t *testing.T) {
	t.Helper()
	s.cancel()
	s.awaitReturn(t)
}

// awaitReturn returns when Run has, which was told to.
func (s *session) awaitReturn(t *testing.T) {
	t.Helper()
	select {
	case <-s.done:
	case <-time.After(stopTimeout):
		require.Fail(t, "Run did not return", "%v after it was told to", stopTimeout)
	}
}

// waitSynced returns when the first generation has been delivered.
func (s *session) waitSynced(ctx context.Context, t *testing.T) {
	t.Helper()
	select {
	case <-s.informer.HasSyncedChecker().Done():
	case <-ctx.Done():
		require.Fail(t, "never synced", "after %d events, errors %v", len(s.mirror.known()), s.reported())
	}
	require.True(t, s.informer.HasSynced())
}

// requireEqual waits until what the mirror was told is what the server has,
// stops the informer, and looks once more: nothing may come after it, and
// nothing on the way may have been wrong. There may be no writes meanwhile.
func (s *session) requireEqual(ctx context.Context, t *testing.T, objects *cluster.Objects) {
	t.Helper()
	want := versions(ctx, t, objects)
	err := s.mirror.await(ctx, "the handler was told all that the server has", func() bool {
		return maps.Equal(want, s.mirror.objects)
	})
	// Where it was not, the difference says more than the error.
	requireSame(t, want, s.mirror.known())
	require.NoError(t, err)
	s.waitSynced(ctx, t)
	s.stop(t)
	requireSame(t, want, s.mirror.known())
	assert.Empty(t, s.mirror.complaints(), "events that do not follow from those before")
}

// requireSame names the objects that differ, and how many they are.
func requireSame(t *testing.T, want, got map[string]cluster.Version) {
	t.Helper()
	const most = 5
	differ := 0
	note := func(format string, args ...any) {
		if differ++; differ <= most {
			t.Errorf(format, args...)
		}
	}
	for key, version := range want {
		switch told, ok := got[key]; {
		case !ok:
			note("%s: the server has %v, and the handler was not told", key, version)
		case told != version:
			note("%s: the server has %v, and the handler was told %v", key, version, told)
		}
	}
	for key, told := range got {
		if _, ok := want[key]; !ok {
			note("%s: the server does not have it, and the handler was told %v", key, told)
		}
	}
	if differ > 0 {
		require.FailNow(t, "the handler was not told what the server has", "%d objects differ of %d", differ, len(want))
	}
}
