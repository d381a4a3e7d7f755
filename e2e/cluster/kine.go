package cluster

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"

	"github.com/rvinformer/informer/e2e/process"
)

// StoreVariable is the environment variable that has all clusters of the tests run over another
// store than etcd: STORE=kine.
const StoreVariable = "STORE"

// StoreIsKine reports whether the environment asks for kine.
func StoreIsKine() bool { return os.Getenv(StoreVariable) == "kine" }

// BuildKine compiles kine from its module in e2e/servers/kine, and returns the binaries with it. It
// is the same for all versions of Kubernetes.
func BuildKine(ctx context.Context, b Binaries) (_ Binaries, err error) {
	b.Kine, err = buildServer(ctx, "kine")
	return b, err
}

// startKine starts kine on the port of etcd, with its database where the data of etcd would be.
func (c *Cluster) startKine(ctx context.Context) (err error) {
	if err := os.MkdirAll(c.etcdData(), 0o700); err != nil {
		return fmt.Errorf("directory of kine: %w", err)
	}
	at, err := url.Parse(c.etcdURL)
	if err != nil {
		return err
	}
	c.etcd, err = process.Start("kine", c.options.Binaries.Kine, c.logPath("etcd"), []string{
		"-listen=" + at.Host,
		"-database=" + filepath.Join(c.etcdData(), "state.db"),
		// History goes when a test compacts it, and at no other time.
		"-compact-every=0",
		"-retain=0",
	})
	if err != nil {
		return err
	}
	return waitUntil(ctx, c.etcd, func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at.Host)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}
