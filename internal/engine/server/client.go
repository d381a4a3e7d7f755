package server

import (
	"net/http"

	"k8s.io/client-go/rest"
)

// Client returns the configuration of the server of r, and the client that asks it, for requests
// that are neither lists nor watches. They share the connections of the server. The caller changes
// neither.
func (r *Resource) Client() (*rest.Config, *http.Client) {
	l := r.server.link.Load()
	return l.config, l.httpClient
}
