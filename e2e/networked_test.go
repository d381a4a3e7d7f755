package e2e

import (
	"context"
	"math/rand/v2"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/e2e/cluster"
	"github.com/rvinformer/informer/e2e/proxy"
)

// The network between informer and API server is bad, in one way after another.
func TestTrialOfABadNetwork(t *testing.T) {
	skipInShort(t)
	t.Parallel()
	const lasts = 25 * time.Second
	ctx := testContext(t)
	c := usual.Get(t)
	network := startProxy(t, c)
	ways := ways()
	for i := range ways {
		// A connection that is half open reports nothing.
		ways[i].config.StallTimeout = 5 * time.Second
	}
	tr := newTrial(ctx, t, c, newPods(ctx, t, c, trialNames/2), ways, func() *rest.Config { return through(network, c) })
	faults := []func(){
		network.Drop,
		func() { network.Delay(rand.N(300 * time.Millisecond)) },
		func() { network.Halve(proxy.Client) },
		func() { network.Halve(proxy.Server) },
		network.Heal,
	}
	for over := time.Now().Add(lasts); time.Now().Before(over); {
		fault := rand.IntN(len(faults))
		t.Logf("%s fault %d", time.Now().Format("15:04:05.000"), fault)
		faults[fault]()
		select {
		case <-time.After(rand.N(3 * time.Second)):
		case <-ctx.Done():
			require.NoError(t, context.Cause(ctx))
		}
	}
	network.Heal()
	tr.judge(ctx, t)
}

// startProxy starts a proxy to the API server.
func startProxy(t *testing.T, c *cluster.Cluster) *proxy.Proxy {
	t.Helper()
	server, err := url.Parse(c.Config().Host)
	require.NoError(t, err)
	p, err := proxy.Listen(server.Host)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close()) })
	return p
}

// through is a configuration whose connections go through the proxy.
func through(p *proxy.Proxy, c *cluster.Cluster) *rest.Config {
	config := c.Config()
	config.Host = "https://" + p.Addr()
	return config
}
