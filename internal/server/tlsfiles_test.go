package server

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

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
