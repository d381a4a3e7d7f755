package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/e2e/process"
)

const (
	loopback = "127.0.0.1"

	// readyTimeout is generous: where all cores are busy with a build, a server
	// that starts in two seconds takes many.
	readyTimeout = 4 * time.Minute
	readyPoll    = 50 * time.Millisecond
)

// WithoutListSnapshots is an API server flag. With it every page of a list but
// the first is read from etcd, so that compaction expires list tokens at once.
const WithoutListSnapshots = "--feature-gates=ListFromCacheSnapshot=false"

// Options for Start. Only Binaries is needed.
type Options struct {
	Binaries Binaries

	// APIServerFlags come after the cluster's own, so that they win.
	APIServerFlags []string

	// Audit makes the API server log who lists and watches pods and configmaps: see
	// Cluster.Audited.
	Audit bool

	// Kine has kine over SQLite in the place of etcd, as k3s has it. Binaries need it: see BuildKine.
	Kine bool

	// Aggregates has the API server pass requests on to another one: see StartSampleServer and
	// StartMetricsServer.
	Aggregates bool
}

// Cluster is one etcd and one API server. Its methods are not for several
// goroutines at once; Config and what is made from it are.
type Cluster struct {
	options  Options
	dir      string // everything that the servers write
	identity *identity
	etcdURL  string // the same after a restart
	port     int    // of the API server, the same after a restart

	etcd      *process.Process // nil while it is down
	apiServer *process.Process // nil while it is down

	sample, metrics behind
}

// Start starts both servers on the loopback interface and returns when they
// are ready. The caller owns the cluster and must Close it.
func Start(ctx context.Context, options Options) (_ *Cluster, err error) {
	dir, err := os.MkdirTemp("", "rvinformer-e2e-")
	if err != nil {
		return nil, fmt.Errorf("directory of the cluster: %w", err)
	}
	c := &Cluster{options: options, dir: dir, sample: behind{name: sampleName}, metrics: behind{name: metricsName}}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if c.identity, err = newIdentity(dir); err != nil {
		return nil, err
	}
	if c.port, err = freePort(); err != nil {
		return nil, err
	}
	etcdPort, err := freePort()
	if err != nil {
		return nil, err
	}
	c.etcdURL = "http://" + net.JoinHostPort(loopback, strconv.Itoa(etcdPort))
	if err = c.StartEtcd(ctx); err != nil {
		return nil, err
	}
	if err = c.StartAPIServer(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// StartAPIServer starts the API server, again on its port and over its data if
// it ran before, and returns when it is ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	if c.apiServer != nil {
		return errors.New("kube-apiserver: it is already running")
	}
	audit, err := c.auditFlags()
	if err != nil {
		return err
	}
	proxy, err := c.proxyFlags()
	if err != nil {
		return err
	}
	server, err := process.Start("kube-apiserver", c.options.Binaries.APIServer, c.logPath("kube-apiserver"), append([]string{
		"--etcd-servers=" + c.etcdURL,
		"--bind-address=" + loopback,
		// Any address: without one, the server looks for a default route, which a
		// machine without a network does not have.
		"--advertise-address=10.0.0.1",
		"--secure-port=" + strconv.Itoa(c.port),
		"--cert-dir=" + c.dir,
		"--tls-cert-file=" + c.identity.certFile,
		"--tls-private-key-file=" + c.identity.keyFile,
		"--token-auth-file=" + c.identity.tokenFile,
		"--client-ca-file=" + c.identity.clientCAFile,
		"--authorization-mode=RBAC",
		// Tokens of service accounts are only for this server; any key is good enough.
		"--service-account-issuer=https://" + loopback,
		"--service-account-key-file=" + c.identity.keyFile,
		"--service-account-signing-key-file=" + c.identity.keyFile,
		"--service-cluster-ip-range=10.0.0.0/24",
		"--endpoint-reconciler-type=none",
		// Without a controller that makes the default service account, this
		// plugin would refuse every pod.
		"--disable-admission-plugins=ServiceAccount",
		// History goes when a test compacts it, and at no other time.
		"--etcd-compaction-interval=0",
		// The tests write as fast as they can. What a throttled client sees is
		// for a simulated server to show, which can do it at a chosen moment.
		"--enable-priority-and-fairness=false",
		"--max-requests-inflight=0",
		"--max-mutating-requests-inflight=0",
	}, slices.Concat(audit, proxy, c.options.APIServerFlags)...))
	if err != nil {
		return err
	}
	c.apiServer = server
	client, err := rest.HTTPClientFor(c.Config())
	if err != nil {
		return fmt.Errorf("client of the API server: %w", err)
	}
	defer client.CloseIdleConnections()
	return waitReady(ctx, server, client, c.host()+"/readyz")
}

// PIDs are the numbers of the processes of the API servers and of etcd, of those that are up.
func (c *Cluster) PIDs() (all []int) {
	for _, p := range []*process.Process{c.sample.process, c.metrics.process, c.apiServer, c.etcd} {
		if p != nil {
			all = append(all, p.PID())
		}
	}
	return all
}

// waitReady polls url until it answers 200, for as long as the process lives.
func waitReady(ctx context.Context, p *process.Process, client *http.Client, url string) error {
	return waitUntil(ctx, p, func(ctx context.Context) error { return probe(ctx, client, url) })
}

// waitUntil asks until the answer is no error, for as long as the process lives.
func waitUntil(ctx context.Context, p *process.Process, ask func(ctx context.Context) error) error {
	last := errors.New("never asked")
	err := wait.PollUntilContextTimeout(ctx, readyPoll, readyTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case <-p.Exited():
			return false, errors.New("it ended before it was ready")
		default:
		}
		last = ask(ctx)
		return last == nil, nil
	})
	if err != nil {
		return p.Failure(fmt.Errorf("waiting until it is ready: %w (last answer: %v)", err, last))
	}
	return nil
}

func probe(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	if err := resp.Body.Close(); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	return nil
}

// KillAPIServer ends the API server with SIGKILL, as a machine that loses its
// power would: connections break, and nothing is said on them. It returns when
// the process is gone. One that is paused dies as well.
func (c *Cluster) KillAPIServer() error {
	if c.apiServer == nil {
		return errors.New("kube-apiserver: it is not running")
	}
	if err := c.apiServer.Kill(); err != nil {
		return err
	}
	c.apiServer = nil
	return nil
}

// PauseAPIServer stops the API server with SIGSTOP, as a machine that hangs
// would: connections stay, and nothing is read from them or said on them.
func (c *Cluster) PauseAPIServer() error {
	if c.apiServer == nil {
		return errors.New("kube-apiserver: it is not running")
	}
	return c.apiServer.Pause()
}

// ResumeAPIServer lets a paused API server go on where it was.
func (c *Cluster) ResumeAPIServer() error {
	if c.apiServer == nil {
		return errors.New("kube-apiserver: it is not running")
	}
	return c.apiServer.Resume()
}

// Config returns a configuration of its own for an administrator, verifying the
// server's certificate and not limiting the rate of requests.
func (c *Cluster) Config() *rest.Config {
	// The go command caches what a test has found. It notes only here that this depends on the
	// version, because Build is called before the tests run.
	_ = os.Getenv(Variable)
	return &rest.Config{
		Host:            c.host(),
		BearerToken:     c.identity.token,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.identity.ca},
		QPS:             -1,
	}
}

func (c *Cluster) host() string {
	return "https://" + net.JoinHostPort(loopback, strconv.Itoa(c.port))
}

func (c *Cluster) logPath(name string) string {
	return filepath.Join(c.dir, name+".log")
}

// ShowLogs adds the end of all logs to t's output if t fails.
func (c *Cluster) ShowLogs(t testing.TB) {
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		names := []string{"etcd", "kube-apiserver"}
		for _, b := range []*behind{&c.sample, &c.metrics} {
			if b.port > 0 {
				names = append(names, b.name)
			}
		}
		for _, name := range names {
			t.Log(process.LogTail(c.logPath(name)))
		}
	})
}

// Close kills all servers, waits until they are gone and removes their data.
func (c *Cluster) Close() error {
	var errs []error
	for _, p := range []*process.Process{c.sample.process, c.metrics.process, c.apiServer, c.etcd} {
		if p != nil {
			errs = append(errs, p.Kill())
		}
	}
	errs = append(errs, os.RemoveAll(c.dir))
	return errors.Join(errs...)
}
