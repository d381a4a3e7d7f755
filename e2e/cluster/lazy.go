package cluster

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Lazy is a cluster that the first test starts that needs it, so that running one test starts one
// cluster. Its Options are set before.
type Lazy struct {
	Options Options

	once    sync.Once
	cluster *Cluster
	err     error
}

// Get returns the cluster, and shows its logs if the test fails.
func (l *Lazy) Get(t *testing.T) *Cluster {
	t.Helper()
	l.once.Do(func() { l.cluster, l.err = Start(context.Background(), l.Options) })
	require.NoError(t, l.err)
	l.cluster.ShowLogs(t)
	return l.cluster
}

// Close ends the cluster if it was started.
func (l *Lazy) Close() error {
	if l.cluster == nil {
		return nil
	}
	return l.cluster.Close()
}

// TestContext returns a context that ends with the test, or after a while: a test that waits for
// something that never comes fails then.
func TestContext(t *testing.T, longest time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	t.Cleanup(cancel)
	return ctx
}
