package server

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// link is how one configuration reaches a server. It does not change.
type link struct {
	config *rest.Config
	// httpClient has the Timeout of config, and client uses it. Streams and streamClient are the same
	// without the Timeout, for what is read as it comes: that may take as long as it likes.
	httpClient, streams *http.Client
	// The requests of client and streamClient are given a rate limiter.
	client, streamClient rest.Interface
	// address is the URL of the server, without a slash at its end.
	address string
}

// newLink returns the link of a configuration, which is copied.
func (s *Server) newLink(config *rest.Config) (*link, error) {
	l := &link{config: dynamic.ConfigFor(config)} // a copy
	var err error
	if l.streams, err = clientFor(l.config, s.presence, s.acquaintance); err != nil {
		return nil, err
	}
	bounded := *l.streams
	bounded.Timeout = l.config.Timeout
	l.httpClient = &bounded
	if l.streamClient, err = restClient(l.config, l.streams, statusCodecs()); err != nil {
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
		r.server.retire(r.server.link.Swap(next))
		r.server.acquaintance.lost() // what is listed from now on may be of another cluster
	}, nil
}

// maxRetired is how many former links are remembered, for watches over them to end.
const maxRetired = 8

// retire remembers a former link, and closes what is idle of all of them.
func (s *Server) retire(former *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retired = append(s.retired, former)
	if len(s.retired) > maxRetired {
		s.retired = slices.Delete(s.retired, 0, 1)
	}
	for _, l := range s.retired {
		l.httpClient.CloseIdleConnections()
	}
}

// CloseIdleConnections closes the connections that no request uses.
func (s *Server) CloseIdleConnections() {
	s.link.Load().httpClient.CloseIdleConnections()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.retired {
		l.httpClient.CloseIdleConnections()
	}
}

// CloseIdleConnections closes the connections of the server that no request uses.
func (r *Resource) CloseIdleConnections() { r.server.CloseIdleConnections() }
