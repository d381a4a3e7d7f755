package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
)

// identity is what the API server proves itself with, and what its one user
// does. The files stay the same across restarts, so that a client keeps
// working.
type identity struct {
	token string
	ca    []byte

	certFile  string
	keyFile   string
	tokenFile string

	// clientCA signs the certificates that clients prove themselves with.
	clientCA     *authority
	clientCAFile string
}

func newIdentity(dir string) (*identity, error) {
	// The certificate file holds the server's certificate and the CA that
	// signed it; as a pool of trusted roots it serves the client as well.
	cert, key, err := certutil.GenerateSelfSignedCertKey(loopback, []net.IP{net.ParseIP(loopback)}, nil)
	if err != nil {
		return nil, fmt.Errorf("certificate of the API server: %w", err)
	}
	clientCA, err := newAuthority("e2e-clients")
	if err != nil {
		return nil, fmt.Errorf("authority for client certificates: %w", err)
	}
	secret := make([]byte, 16)
	if _, err := rand.Read(secret); err != nil {
		return nil, fmt.Errorf("token of the administrator: %w", err)
	}
	id := &identity{
		token:     hex.EncodeToString(secret),
		ca:        cert,
		certFile:  filepath.Join(dir, "apiserver.crt"),
		keyFile:   filepath.Join(dir, "apiserver.key"),
		tokenFile: filepath.Join(dir, "tokens.csv"),

		clientCA:     clientCA,
		clientCAFile: filepath.Join(dir, "client-ca.crt"),
	}
	// system:masters passes every authorizer.
	tokens := id.token + `,admin,admin,"system:masters"` + "\n"
	for path, content := range map[string][]byte{
		id.certFile:     cert,
		id.keyFile:      key,
		id.tokenFile:    []byte(tokens),
		id.clientCAFile: clientCA.pem(),
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return nil, fmt.Errorf("identity of the API server: %w", err)
		}
	}
	return id, nil
}

// CA returns what the certificate of the API server is to be verified with.
func (c *Cluster) CA() []byte { return c.identity.ca }

// RenewCA gives the API server a certificate of another authority, and returns when it uses it.
// Config and CA return the new authority from then on. Connections that are open stay.
func (c *Cluster) RenewCA(ctx context.Context) error {
	cert, key, err := certutil.GenerateSelfSignedCertKey(loopback, []net.IP{net.ParseIP(loopback)}, nil)
	if err != nil {
		return fmt.Errorf("certificate of the API server: %w", err)
	}
	// The server waits until the two belong together.
	for path, content := range map[string][]byte{c.identity.certFile: cert, c.identity.keyFile: key} {
		if err := replaceFile(path, content); err != nil {
			return fmt.Errorf("certificate of the API server: %w", err)
		}
	}
	c.identity.ca = cert
	client, err := rest.HTTPClientFor(c.Config())
	if err != nil {
		return fmt.Errorf("client of the API server: %w", err)
	}
	defer client.CloseIdleConnections()
	return waitReady(ctx, c.apiServer, client, c.host()+"/readyz")
}
