package server

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/rvinformer/informer/internal/testkit/selfsigned"
)

// The address of a server may have a password in it, which is not logged with what becomes of the
// files.
func TestLogOfReplacedFilesHasNoPassword(t *testing.T) {
	defer klog.CaptureState().Restore()
	log := ktesting.NewLogger(ktesting.NopTL{}, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(1)))
	klog.SetLoggerWithOptions(log, klog.ContextualLogger(true))
	path := filepath.Join(t.TempDir(), "ca")
	replace := func() {
		_, authority, err := selfsigned.Certificate()
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, authority, 0o600))
	}
	replace()
	config := &rest.Config{Host: "https://admin:hunter2@127.0.0.1:1", TLSClientConfig: rest.TLSClientConfig{CAFile: path}}
	r, err := newRenewal(config, tlsFilesOf(config), newPresence(config.Host), newAcquaintance())
	require.NoError(t, err)
	replace()
	r.look(0)
	require.NoError(t, os.Remove(path))
	r.look(0)
	text := log.GetSink().(ktesting.Underlier).GetBuffer().String()
	require.Contains(t, text, "TLS files have changed")
	require.Contains(t, text, "TLS files cannot be used")
	require.Contains(t, text, "127.0.0.1:1")
	require.NotContains(t, text, "hunter2")
}

// Content that a configuration has itself comes before its files, as in client-go.
func TestFilesOfConfigurationThatHasContent(t *testing.T) {
	files := rest.TLSClientConfig{CAFile: "ca", CertFile: "cert", KeyFile: "key"}
	for name, test := range map[string]struct {
		change func(*rest.Config)
		want   tlsFiles
	}{
		"files only":     {func(*rest.Config) {}, tlsFiles{ca: "ca", cert: "cert", key: "key"}},
		"CAData":         {func(c *rest.Config) { c.CAData = []byte("x") }, tlsFiles{cert: "cert", key: "key"}},
		"CertData":       {func(c *rest.Config) { c.CertData = []byte("x") }, tlsFiles{ca: "ca"}},
		"KeyData":        {func(c *rest.Config) { c.KeyData = []byte("x") }, tlsFiles{ca: "ca"}},
		"no CertFile":    {func(c *rest.Config) { c.CertFile = "" }, tlsFiles{ca: "ca"}},
		"no KeyFile":     {func(c *rest.Config) { c.KeyFile = "" }, tlsFiles{ca: "ca"}},
		"a Transport":    {func(c *rest.Config) { c.Transport = http.DefaultTransport }, tlsFiles{}},
		"content of all": {func(c *rest.Config) { c.CAData, c.CertData, c.KeyData = []byte("x"), []byte("x"), []byte("x") }, tlsFiles{}},
	} {
		t.Run(name, func(t *testing.T) {
			config := rest.Config{TLSClientConfig: files}
			test.change(&config)
			require.Equal(t, test.want, tlsFilesOf(&config))
		})
	}
}
