// Package server is one API server and how it is asked. A Server has the connections and the
// client, and remembers what the server refuses. A Resource is one resource of it in one
// namespace, with selectors. A Resource lends the body of a list or a watch to a reader that
// takes objects off the wire, decodes lists and watches for other readers, and tells which
// cluster the server is of.
//
// The root package makes a Server for each DynamicListerWatcherFactory.
package server

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// Server is one API server, as its newest configuration reaches it. It is safe for concurrent use.
type Server struct {
	// link is what new requests are made with.
	link atomic.Pointer[link]
	// turns is what lists take turns by: see Resource.Turns.
	turns        any
	asksProtobuf bool
	parameters   *failureMemory
	presence     *presence
	acquaintance *acquaintance

	mu sync.Mutex
	// retired are former links, the oldest first. Watches may go on over them.
	retired []*link
}

// New returns the server of config, which is copied. The error says what is wrong with config.
func New(config *rest.Config) (*Server, error) {
	if config == nil {
		return nil, errors.New("the rest.Config is nil")
	}
	s := &Server{
		turns:        config.Host,
		asksProtobuf: strings.Contains(config.ContentType+","+config.AcceptContentTypes, runtime.ContentTypeProtobuf),
		parameters:   newFailureMemory(),
		presence:     newPresence(config.Host),
		acquaintance: newAcquaintance(),
	}
	if config.Dial != nil { // a name may mean another server to others
		s.turns = s
	}
	first, err := s.newLink(config)
	if err != nil {
		return nil, err
	}
	s.link.Store(first)
	return s, nil
}

// Resource returns a resource in a namespace, or in all of them if namespace is empty. It has a
// rate limiter of its own, unless the configuration brings one.
func (s *Server) Resource(namespace string, gvr schema.GroupVersionResource) *Resource {
	l := s.link.Load()
	limiter := l.decodingClient(l.httpClient, nil).GetRateLimiter() // as client-go makes them
	return &Resource{server: s, limiter: limiter, namespace: namespace, resource: gvr}
}

// decodingClient is a client over httpClient for callers that want lists and watches decoded. Limiter
// is its rate limiter, nil for the one that the configuration asks for.
func (l *link) decodingClient(httpClient *http.Client, limiter flowcontrol.RateLimiter) rest.Interface {
	config := l.config
	if limiter != nil {
		config = rest.CopyConfig(config)
		config.RateLimiter = limiter
	}
	client, err := restClient(config, httpClient, config.NegotiatedSerializer)
	if err != nil { // not possible: New has made one from them
		panic(fmt.Sprintf("client for decoded lists and watches: %v", err))
	}
	return client
}

// restClient is a client whose answers, where they are decoded, codecs decode.
func restClient(config *rest.Config, httpClient *http.Client, codecs runtime.NegotiatedSerializer) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion = &schema.GroupVersion{} // required, and not used
	config.APIPath = "/"                         // each request has its own
	config.NegotiatedSerializer = codecs
	return rest.RESTClientForConfigAndClient(config, httpClient)
}

// statusCodecs decode what a server says instead of a list or a watch: a Status,
// in the content type that was asked for.
var statusCodecs = sync.OnceValue(func() runtime.NegotiatedSerializer {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(scheme).WithoutConversion()
})
