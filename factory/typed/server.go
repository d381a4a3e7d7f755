package typed

import (
	"fmt"
	"net/url"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// useServer panics if the registry has informers of another server, and nothing that
// tells the two apart. Two names of one server are the user's to tell: WithCluster.
func (f *Factory) useServer(server string) {
	f.releaseServer = func() {}
	if server == "" || f.cluster != "" || !f.shares {
		return
	}
	release, err := f.registry.UseServer(f.cluster, server)
	if err != nil {
		panic(fmt.Sprintf("typed: WithFactory without WithCluster: %v", err))
	}
	f.releaseServer = release
}

// serverOf is the URL of the server whose objects the informers are of; empty if there
// is none, as of a fake client.
func serverOf(client kubernetes.Interface, config *rest.Config) string {
	if config != nil {
		if base, _, err := rest.DefaultServerUrlFor(config); err == nil {
			return plain(base)
		}
	}
	if client != nil {
		if connection, ok := client.CoreV1().RESTClient().(*rest.RESTClient); ok && connection != nil {
			return plain(connection.Get().AbsPath("/").URL())
		}
	}
	return ""
}

// plain is a URL without what may be secret.
func plain(u *url.URL) string { return u.Scheme + "://" + u.Host + strings.TrimRight(u.Path, "/") }
