package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rvinformer/informer/e2e/cluster"
)

// testTimeout ends a test that waits for something that never comes. The longest, whose server is
// paused for a minute, takes 80 s on a quiet machine.
const testTimeout = 10 * time.Minute

// inClusters are the tests of a package, with the clusters that they are in.
type inClusters struct{ *testing.M }

func TestMain(m *testing.M) { goleak.VerifyTestMain(inClusters{m}) }

func (m inClusters) Run() (code int) {
	binaries, err := cluster.Build(context.Background(), "")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := waitTogether(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	usual.Options = cluster.Options{Binaries: binaries}
	if cluster.StoreIsKine() {
		if binaries, err = cluster.BuildKine(context.Background(), binaries); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		usual.Options = cluster.Options{Binaries: binaries, Kine: true}
	}
	for _, g := range gates {
		g.switched.Options = usual.Options
		g.switched.Options.APIServerFlags = g.flags
	}
	defer func() {
		err := usual.Close()
		for _, g := range gates {
			err = errors.Join(err, g.switched.Close())
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}()
	return m.M.Run()
}

// parallelTrials is how many of the tests run side by side that may, unless the
// command line says otherwise: they wait for servers most of the time.
const parallelTrials = 4

func waitTogether() error {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if asked {
		return nil
	}
	return flag.Set("test.parallel", fmt.Sprint(parallelTrials))
}

// The clusters of this package: usual has the settings that servers have by default, and each of
// gates has a feature gate that is switched. Every test works in a namespace of its own. Those
// that do not run in parallel may kill the API server; the others run after them.
var usual cluster.Lazy

func testContext(t *testing.T) context.Context { return cluster.TestContext(t, testTimeout) }

// sample returns n of the cases in a short run, which make test does, and all of them otherwise.
func sample[T any](cases []T, n int) []T {
	if !testing.Short() {
		return cases
	}
	some := make([]T, n)
	for i := range some {
		some[i] = cases[i*len(cases)/n]
	}
	return some
}

// skipInShort leaves a test out of a short run.
func skipInShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it is too long for a short run; make e2e runs it")
	}
}

// newPods fills a new namespace with n pods.
func newPods(ctx context.Context, t *testing.T, c *cluster.Cluster, n int) *cluster.Objects {
	t.Helper()
	namespace, err := c.CreateNamespace(ctx, "pods")
	require.NoError(t, err)
	pods, err := c.Pods(namespace)
	require.NoError(t, err)
	require.NoError(t, pods.Fill(ctx, n))
	return pods
}

// newWidgets fills a new namespace with n custom resources.
func newWidgets(ctx context.Context, t *testing.T, c *cluster.Cluster, n int) *cluster.Objects {
	t.Helper()
	require.NoError(t, c.CreateWidgetDefinition(ctx))
	namespace, err := c.CreateNamespace(ctx, "widgets")
	require.NoError(t, err)
	widgets, err := c.Widgets(namespace)
	require.NoError(t, err)
	require.NoError(t, widgets.Fill(ctx, n))
	return widgets
}

// versions of all objects, as the server has them now.
func versions(ctx context.Context, t *testing.T, objects *cluster.Objects) map[string]cluster.Version {
	t.Helper()
	now, err := objects.Versions(ctx)
	require.NoError(t, err)
	return now
}
