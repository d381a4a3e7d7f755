package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// authority signs the certificates of clients.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	cert, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: name}, key)
	if err != nil {
		return nil, err
	}
	return &authority{key: key, cert: cert}, nil
}

func (a *authority) pem() []byte { return certificatePEM(a.cert.Raw) }

func certificatePEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: der})
}

// administrator passes every authorizer.
var administrator = pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}}

// issue returns a new certificate of a client, and its key.
func (a *authority) issue(subject pkix.Name, lifetime time.Duration) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-time.Minute),
		NotAfter:     now.Add(lifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, a.cert, &private.PublicKey, a.key)
	if err != nil {
		return nil, nil, err
	}
	key, err = keyutil.MarshalPrivateKeyToPEM(private)
	return certificatePEM(der), key, err
}

// IssueClientCertificate writes a new certificate of an administrator, and its
// key, to files which are the same for the same name, as a program would that
// renews them. They go with the cluster.
func (c *Cluster) IssueClientCertificate(name string, lifetime time.Duration) (certFile, keyFile string, err error) {
	cert, key, err := c.identity.clientCA.issue(administrator, lifetime)
	if err != nil {
		return "", "", fmt.Errorf("issuing a client certificate: %w", err)
	}
	certFile, keyFile = filepath.Join(c.dir, name+".client.crt"), filepath.Join(c.dir, name+".client.key")
	for path, content := range map[string][]byte{certFile: cert, keyFile: key} {
		if err := replaceFile(path, content); err != nil {
			return "", "", fmt.Errorf("issuing a client certificate: %w", err)
		}
	}
	return certFile, keyFile, nil
}

// replaceFile replaces a file as a whole, so that no reader sees half of it.
func replaceFile(path string, content []byte) error {
	aside := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	if err := os.WriteFile(aside, content, 0o600); err != nil {
		return err
	}
	return os.Rename(aside, path)
}
