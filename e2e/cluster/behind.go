package cluster

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rvinformer/informer/e2e/process"
)

// behind is an aggregated API server: the API server passes requests for its group on to it.
type behind struct {
	name    string           // of its program, and of the service behind which it is found
	port    int              // the same after a restart; 0 as long as it never ran
	process *process.Process // nil while it is down
}

// frontProxy is who the API server is when it passes on a request of somebody.
var frontProxy = pkix.Name{CommonName: "front-proxy"}

// frontProxyLifetime is longer than any cluster's.
const frontProxyLifetime = 24 * time.Hour

// buildServer compiles a server of the module in e2e/servers, or of one below it, and returns where it
// is.
func buildServer(ctx context.Context, name string) (path string, err error) {
	module, err := goCommand(ctx, "", "list", "-m", "-f", "{{.Dir}}", modulePath)
	if err != nil {
		return "", err
	}
	sources := filepath.Join(module, "servers")
	release, err := asked(sources)
	if err != nil {
		return "", err
	}
	in, of, flags := sources, release.minor, []string{"-modfile=" + release.file}
	if _, err := os.Stat(filepath.Join(sources, name, "go.mod")); err == nil { // the same for all versions
		in, of, flags = filepath.Join(sources, name), name, nil
	}
	dir, err := outputDir("", of)
	if err != nil {
		return "", err
	}
	unlock, err := lockFile(filepath.Join(dir, "lock"))
	if err != nil {
		return "", fmt.Errorf("locking the server binaries in %s: %w", dir, err)
	}
	defer unlock()
	path, what := filepath.Join(dir, name), "./"+name
	if in != sources {
		what = "."
	}
	_, err = goCommand(ctx, in, append(append([]string{"build"}, flags...), "-o", path, what)...)
	return path, err
}

// proxyFlags are those of an API server that passes requests on. The others read from the
// cluster whom they have to believe.
func (c *Cluster) proxyFlags() ([]string, error) {
	if !c.options.Aggregates {
		return nil, nil
	}
	file := func(suffix string) string { return filepath.Join(c.dir, "front-proxy"+suffix) }
	if _, err := os.Stat(file(".crt")); errors.Is(err, os.ErrNotExist) {
		ca, err := newAuthority("e2e-front-proxy")
		if err != nil {
			return nil, fmt.Errorf("authority of the front proxy: %w", err)
		}
		cert, key, err := ca.issue(frontProxy, frontProxyLifetime)
		if err != nil {
			return nil, fmt.Errorf("certificate of the front proxy: %w", err)
		}
		for path, content := range map[string][]byte{file("-ca.crt"): ca.pem(), file(".key"): key, file(".crt"): cert} {
			if err := os.WriteFile(path, content, 0o600); err != nil {
				return nil, fmt.Errorf("certificate of the front proxy: %w", err)
			}
		}
	}
	return []string{
		"--requestheader-client-ca-file=" + file("-ca.crt"),
		"--requestheader-allowed-names=" + frontProxy.CommonName,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + file(".crt"),
		"--proxy-client-key-file=" + file(".key"),
	}, nil
}

// startBehind starts an aggregated server, and returns when the API server passes lists of the resource
// on to it.
func (c *Cluster) startBehind(ctx context.Context, b *behind, resource schema.GroupVersionResource, program string, flags ...string) (err error) {
	switch {
	case !c.options.Aggregates:
		return fmt.Errorf("%s: the options of the cluster do not aggregate", b.name)
	case b.process != nil:
		return fmt.Errorf("%s: it is already running", b.name)
	}
	if b.port == 0 {
		if b.port, err = freePort(); err != nil {
			return err
		}
	}
	config := filepath.Join(c.dir, b.name+".kubeconfig")
	if err := c.writeKubeconfig(config); err != nil {
		return err
	}
	b.process, err = process.Start(b.name, program, c.logPath(b.name), append([]string{
		"--bind-address=" + loopback,
		"--secure-port=" + strconv.Itoa(b.port),
		"--cert-dir=" + filepath.Join(c.dir, b.name),
		"--kubeconfig=" + config,
		"--authentication-kubeconfig=" + config,
		"--authorization-kubeconfig=" + config,
	}, flags...))
	if err != nil {
		return err
	}
	gv := resource.GroupVersion()
	if err := c.register(ctx, b, gv); err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(c.Config())
	if err != nil {
		return fmt.Errorf("client of the API server: %w", err)
	}
	defer client.CloseIdleConnections()
	return waitReady(ctx, b.process, client, c.host()+"/apis/"+gv.String()+"/"+resource.Resource)
}

// kill ends the server with SIGKILL, and returns when the process is gone.
func (b *behind) kill() error {
	if b.process == nil {
		return fmt.Errorf("%s: it is not running", b.name)
	}
	if err := b.process.Kill(); err != nil {
		return err
	}
	b.process = nil
	return nil
}

// writeKubeconfig writes the configuration of an administrator.
func (c *Cluster) writeKubeconfig(path string) error {
	const name = "e2e"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: c.host(), CertificateAuthorityData: c.identity.ca}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: c.identity.token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return clientcmd.WriteToFile(*config, path)
}

// register has the API server find an aggregated server. Doing it twice is no error.
func (c *Cluster) register(ctx context.Context, b *behind, gv schema.GroupVersion) error {
	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		return fmt.Errorf("registering %s: %w", b.name, err)
	}
	services := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "services"}).Namespace(metav1.NamespaceDefault)
	apiServices := client.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	for _, made := range []struct {
		in     dynamic.ResourceInterface
		object map[string]any
	}{
		{services, map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": b.name},
			// Nothing routes the addresses of services here: this one is a name.
			"spec": map[string]any{"type": "ExternalName", "externalName": "localhost"},
		}},
		{apiServices, map[string]any{
			"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": gv.Version + "." + gv.Group},
			"spec": map[string]any{
				"group": gv.Group, "version": gv.Version, "groupPriorityMinimum": int64(1000), "versionPriority": int64(15),
				"insecureSkipTLSVerify": true,
				"service":               map[string]any{"namespace": metav1.NamespaceDefault, "name": b.name, "port": int64(b.port)},
			},
		}},
	} {
		_, err := made.in.Create(ctx, &unstructured.Unstructured{Object: made.object}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("registering %s: %w", b.name, err)
		}
	}
	return nil
}
