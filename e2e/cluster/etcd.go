package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/rvinformer/informer/e2e/process"
)

// StartEtcd starts etcd, or what takes its place, again on its port and over its data if it ran
// before, and returns when it is ready.
func (c *Cluster) StartEtcd(ctx context.Context) (err error) {
	if c.etcd != nil {
		return errors.New("etcd: it is already running")
	}
	if c.options.Kine {
		return c.startKine(ctx)
	}
	// There are no peers; any port will do for listening to them.
	peers := "http://" + net.JoinHostPort(loopback, "0")
	c.etcd, err = process.Start("etcd", c.options.Binaries.Etcd, c.logPath("etcd"), []string{
		"--name=default",
		"--data-dir=" + c.etcdData(),
		"--listen-client-urls=" + c.etcdURL,
		"--advertise-client-urls=" + c.etcdURL,
		"--listen-peer-urls=" + peers,
		"--initial-advertise-peer-urls=" + peers,
		"--initial-cluster=default=" + peers,
		// What is written outlives the process without a sync, and need not
		// outlive the machine.
		"--unsafe-no-fsync",
		"--log-level=warn",
	})
	if err != nil {
		return err
	}
	return waitReady(ctx, c.etcd, http.DefaultClient, c.etcdURL+"/readyz")
}

// KillEtcd ends etcd with SIGKILL, and returns when the process is gone. What
// it has acknowledged is there again after StartEtcd.
func (c *Cluster) KillEtcd() error {
	if c.etcd == nil {
		return errors.New("etcd: it is not running")
	}
	if err := c.etcd.Kill(); err != nil {
		return err
	}
	c.etcd = nil
	return nil
}

// EtcdURL is where etcd answers its clients, also after a restart.
func (c *Cluster) EtcdURL() string { return c.etcdURL }

func (c *Cluster) etcdData() string { return filepath.Join(c.dir, "etcd") }

// Backup is a copy of all data of an etcd, as it was at one moment. It goes with
// the cluster.
type Backup struct{ dir string }

// BackUpEtcd copies the data of etcd, which must be down.
func (c *Cluster) BackUpEtcd() (*Backup, error) {
	if c.etcd != nil {
		return nil, errors.New("backing up etcd: it is running")
	}
	dir, err := os.MkdirTemp(c.dir, "backup-")
	if err != nil {
		return nil, fmt.Errorf("backing up etcd: %w", err)
	}
	if err := os.CopyFS(dir, os.DirFS(c.etcdData())); err != nil {
		return nil, fmt.Errorf("backing up etcd: %w", err)
	}
	return &Backup{dir: dir}, nil
}

// RestoreEtcd gives etcd, which must be down, the data of a backup instead of
// its own: its revisions go back with it. An API server that runs meanwhile
// would believe its cache more than etcd; it has to be down too.
func (c *Cluster) RestoreEtcd(backup *Backup) error {
	if c.etcd != nil || c.apiServer != nil {
		return errors.New("restoring etcd: it, or the API server, is running")
	}
	if err := os.RemoveAll(c.etcdData()); err != nil {
		return fmt.Errorf("restoring etcd: %w", err)
	}
	if err := os.CopyFS(c.etcdData(), os.DirFS(backup.dir)); err != nil {
		return fmt.Errorf("restoring etcd: %w", err)
	}
	// etcd insists on it.
	if err := os.Chmod(c.etcdData(), 0o700); err != nil {
		return fmt.Errorf("restoring etcd: %w", err)
	}
	return nil
}
