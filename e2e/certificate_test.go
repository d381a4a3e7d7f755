package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// A client certificate is renewed while watches run, and the new one expires before it is renewed.
// Watches go on from where they were: nothing is listed.
func TestTrialOfARenewedCertificate(t *testing.T) {
	skipInShort(t)
	t.Parallel()
	// The library looks for new files every 20 seconds, and ends watches within 10 more. A slow
	// machine connects within the rest.
	const short = 70 * time.Second
	ctx := testContext(t)
	c := usual.Get(t)
	network := startProxy(t, c)
	issue := func(lifetime time.Duration) (certFile, keyFile string) {
		certFile, keyFile, err := c.IssueClientCertificate("renewed", lifetime)
		require.NoError(t, err)
		return certFile, keyFile
	}
	certFile, keyFile := issue(time.Hour)
	tr := newTrial(ctx, t, c, newRecognized(ctx, t, c), steady(), func() *rest.Config {
		config := through(network, c)
		config.BearerToken = ""
		config.CertFile, config.KeyFile = certFile, keyFile
		return config
	})
	tr.awaitSynced(ctx, t)
	lists := tr.count(exchange.isSet)

	// Watches that were opened with the old one end.
	watches := tr.count(exchange.isGoodWatch)
	issue(short)
	expired := time.After(short)
	tr.awaitMore(ctx, t, watches, exchange.isGoodWatch)
	require.NoError(t, tr.writer.Await(ctx, 100))

	// A connection that is there stays; a new one proves nothing any more.
	<-expired
	refused := tr.count(exchange.isUnauthorized)
	network.Drop()
	network.Heal()
	tr.awaitMore(ctx, t, refused, exchange.isUnauthorized)
	watches = tr.count(exchange.isGoodWatch)
	issue(time.Hour)
	tr.awaitMore(ctx, t, watches, exchange.isGoodWatch)
	tr.judge(ctx, t)
	require.Equal(t, lists, tr.count(exchange.isSet), "nothing is listed again")
}
