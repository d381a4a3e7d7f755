package mirror

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rvinformer/informer/e2e/cluster"
)

// testTimeout ends a test that waits for something that never comes.
const testTimeout = 10 * time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(withClusters{m}) }

// withClusters are the tests of this package, and what they share.
type withClusters struct{ *testing.M }

func (m withClusters) Run() (code int) {
	binaries, err := cluster.Build(context.Background(), "")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	home.Options = cluster.Options{Binaries: binaries, Audit: true}
	away.Options = cluster.Options{Binaries: binaries, Audit: true}
	defer func() {
		if err := errors.Join(home.Close(), away.Close()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}()
	return m.M.Run()
}

// The clusters of this package, which the tests use one after the other.
var (
	// home has the Leases, and is mirrored too.
	home cluster.Lazy

	// away is only mirrored.
	away cluster.Lazy
)

func testContext(t *testing.T) context.Context { return cluster.TestContext(t, testTimeout) }
