package mirror

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rvinformer/informer/e2e/cluster"
)

// testTimeout ends a test that waits for something that never comes.
const testTimeout = 5 * time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(withClusters{m}) }

// withClusters are the tests of this package, and what they share.
type withClusters struct{ *testing.M }

func (m withClusters) Run() (code int) {
	binaries, err := cluster.Build(context.Background(), "")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	home.options = cluster.Options{Binaries: binaries, Audit: true}
	away.options = cluster.Options{Binaries: binaries, Audit: true}
	defer func() {
		if err := errors.Join(home.close(), away.close()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}()
	return m.M.Run()
}

// The clusters of this package, which the tests use one after the other.
var (
	// home has the Leases, and is mirrored too.
	home lazyCluster

	// away is only mirrored.
	away lazyCluster
)

// lazyCluster is started by the first test that needs it.
type lazyCluster struct {
	options cluster.Options

	once    sync.Once
	cluster *cluster.Cluster
	err     error
}

func (l *lazyCluster) get(t *testing.T) *cluster.Cluster {
	t.Helper()
	l.once.Do(func() { l.cluster, l.err = cluster.Start(context.Background(), l.options) })
	require.NoError(t, l.err)
	l.cluster.ShowLogs(t)
	return l.cluster
}

func (l *lazyCluster) close() error {
	if l.cluster == nil {
		return nil
	}
	return l.cluster.Close()
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}
