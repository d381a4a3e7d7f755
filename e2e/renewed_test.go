package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/e2e/cluster"
)

// replace replaces a file as a whole.
func replace(t *testing.T, path string, content []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".new", content, 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

// The API server gets a certificate of another authority while watches run. They stay; when they
// break, the new authority is trusted at once, and the old one is not any more. Nothing is listed.
func TestTrialOfARenewedAuthority(t *testing.T) {
	skipInShort(t)
	t.Parallel()
	ctx := testContext(t)
	c := startCluster(ctx, t)
	network := startProxy(t, c)
	file := filepath.Join(t.TempDir(), "ca.crt")
	replace(t, file, c.CA())
	tr := newTrial(ctx, t, c, newRecognized(ctx, t, c), steady(), func() *rest.Config {
		config := through(network, c)
		config.CAData, config.CAFile = nil, file
		return config
	})
	tr.awaitSynced(ctx, t)
	lists := tr.count(exchange.isSet)

	// A request that fails has the file looked at, a second later at most.
	require.NoError(t, c.RenewCA(ctx))
	network.Drop()
	network.Heal()
	failed := tr.count(exchange.isFailed)
	tr.awaitMore(ctx, t, failed, exchange.isFailed)
	watches := tr.count(exchange.isGoodWatch)
	replace(t, file, c.CA())
	tr.awaitMore(ctx, t, watches, exchange.isGoodWatch)
	require.NoError(t, tr.writer.Await(ctx, 100))
	tr.judge(ctx, t)
	require.Equal(t, lists, tr.count(exchange.isSet), "nothing is listed again")
}

// isFailed tells an exchange without an answer.
func (e exchange) isFailed() bool { return e.err != nil }

// Thousands of watches run, half of them with a token file and half with a client certificate, when
// all credentials are replaced: these, and the authority. A minute later nothing is asked for with
// a former one, and nothing was listed.
func TestThousandsOfWatchesGoOnWithRenewedCredentials(t *testing.T) {
	skipInShort(t)
	t.Parallel()
	ctx := testContext(t)
	options := usual.Options
	options.Audit = true
	c, err := cluster.Start(ctx, options)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	c.ShowLogs(t)
	network := startProxy(t, c)
	authority := filepath.Join(t.TempDir(), "ca.crt")
	replace(t, authority, c.CA())
	tokens := newAccount(ctx, t, c)
	tokens.renew(ctx, t)
	certFile, keyFile, err := c.IssueClientCertificate("crowd", time.Hour)
	require.NoError(t, err)

	config := c.Config()
	config.BearerToken, config.CAData, config.CAFile = "", nil, authority
	withToken, withCertificate := rest.CopyConfig(config), rest.CopyConfig(config)
	withToken.Host, withToken.BearerTokenFile = through(network, c).Host, tokens.path
	withCertificate.CertFile, withCertificate.KeyFile = certFile, keyFile
	certified := startCrowd(ctx, t, c, withCertificate)
	bearers := startCrowd(ctx, t, c, withToken)

	// Watches with a certificate end, and are opened again. Those with a token stay.
	replaced := time.Now()
	token := tokens.renew(ctx, t)
	_, _, err = c.IssueClientCertificate("crowd", time.Hour)
	require.NoError(t, err)
	require.NoError(t, c.RenewCA(ctx))
	replace(t, authority, c.CA())
	certified.awaitWatches(ctx, t, replaced, certificateID(t, certFile))
	certified.requireTold(ctx, t)
	bearers.requireTold(ctx, t)
	require.Empty(t, bearers.audited(t, replaced))

	minute := replaced.Add(time.Minute)
	select {
	case <-time.After(time.Until(minute)):
	case <-ctx.Done():
		require.NoError(t, context.Cause(ctx))
	}
	network.Drop()
	network.Heal()
	renewed, err := cluster.TokenCredential(token.text)
	require.NoError(t, err)
	bearers.awaitWatches(ctx, t, minute, renewed)
	bearers.requireTold(ctx, t)
	certified.requireTold(ctx, t)
	bearers.requireOnly(t, minute, renewed)
	certified.requireOnly(t, minute, certificateID(t, certFile))
	bearers.requireNotListed(t)
	certified.requireNotListed(t)
}

// certificateID is what an API server calls a client's certificate.
func certificateID(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	block, _ := pem.Decode(text)
	require.NotNil(t, block)
	return fmt.Sprintf("X509SHA256=%x", sha256.Sum256(block.Bytes))
}
