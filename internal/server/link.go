package server

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// link is how one configuration reaches a server. It does not change.
type link struct {
	config     *rest.Config
	httpClient *http.Client
	// client is for what is read off the wire. Its requests are given a rate limiter.
	client rest.Interface
	// address is the URL of the server, without a slash at its end.
	address string
}

// newLink returns the link of a configuration, which is copied.
func (s *Server) newLink(config *rest.Config) (*link, error) {
	l := &link{config: dynamic.ConfigFor(config)} // a copy
	var err error
	if l.httpClient, err = clientFor(l.config, s.presence, s.acquaintance); err != nil {
		return nil, err
	}
	if l.client, err = restClient(l.config, l.httpClient, statusCodecs()); err != nil {
		return nil, err
	}
	u := l.client.Get().AbsPath().URL()
	l.address = strings.TrimSuffix((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(), "/")
	return l, nil
}

// Reconfigure returns what has the server of r reached by another configuration, which is copied:
// its address, its certificates and its credentials, for all Resources of the server. The error says
// what is wrong with config. What is open goes on as it is, and is not ended.
//
// Rate limiters, and whether protobuf is asked for, stay as they were.
func (r *Resource) Reconfigure(config *rest.Config) (apply func(), err error) {
	if config == nil {
		return nil, errors.New("the rest.Config is nil")
	}
	next, err := r.server.newLink(config)
	if err != nil {
		return nil, err
	}
	return func() {
		former := r.server.link.Swap(next)
		r.server.acquaintance.lost() // what is listed from now on may be of another cluster
		former.httpClient.CloseIdleConnections()
	}, nil
}
