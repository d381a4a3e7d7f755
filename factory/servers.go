package factory

import (
	"fmt"
	"sync"
)

// ServerConflictError says that informers of one cluster would be of two servers.
type ServerConflictError struct {
	// Cluster is that of InformerOptions.
	Cluster string
	// Server was to be used, and Used is.
	Server, Used string
}

func (e *ServerConflictError) Error() string {
	of := fmt.Sprintf("cluster %q", e.Cluster)
	if e.Cluster == "" {
		of = "the cluster without a name"
	}
	return fmt.Sprintf("%s has the server %s, not %s: give each cluster a name", of, e.Used, e.Server)
}

// UseServer says that the informers of a cluster, by InformerOptions.Cluster, list and
// watch at a server, until release is called: those of two servers under one name would be
// taken for the same. The error is a *ServerConflictError if another server is in use for
// the cluster. It is up to the caller what identifies a server: the URL, for instance.
func (f *Factory) UseServer(cluster, server string) (release func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	u := f.servers[cluster]
	switch {
	case u == nil:
		u = &serverUse{server: server}
		f.servers[cluster] = u
	case u.server != server:
		return nil, &ServerConflictError{Cluster: cluster, Server: server, Used: u.server}
	}
	u.users++
	return sync.OnceFunc(func() { f.releaseServer(cluster) }), nil
}

func (f *Factory) releaseServer(cluster string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	u := f.servers[cluster]
	if u.users--; u.users == 0 {
		delete(f.servers, cluster)
	}
}

// serverUse is the server of a cluster, and how many use it.
type serverUse struct {
	server string
	users  int
}
