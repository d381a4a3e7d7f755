//go:build !race

// Client-go v0.37.2 has a data race of its own here: loadClientCert, in its
// transport/cert_rotation.go, returns the certificate that it has after it let go of
// the lock, while another connection may replace it.

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// A client certificate is renewed while watches run, and then one expires before it
// is. Watches go on from where they were: nothing is listed.
func TestTrialOfARenewedCertificate(t *testing.T) {
	t.Parallel()
	const short = 10 * time.Second // a slow machine connects within it
	ctx := testContext(t)
	c := usual.get(t)
	network := startProxy(t, c)
	issue := func(lifetime time.Duration) (certFile, keyFile string) {
		// Client-go never stops to look for them: they cannot be in a directory that
		// goes with the test.
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

	// Client-go closes the connections that were made with the old one.
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
