package informer

import (
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// narrowWindow is how much an HTTP/2 connection holds of an answer that is not read. With the
// buffer of its reader, an answer costs less than 256 KiB.
const narrowWindow = 160 << 10

// connections are those of a factory to its server, as an http.RoundTripper.
//
// With HTTP/2, a server sends as much ahead of a reader as the window of its stream lets it:
// that is what an answer costs that is not read, and, once in each round trip, all that one
// can bring. So a server has two connections. An answer comes through the wide window of the
// one if it has leave to, and else through the narrow window of the other. The size of its
// window is all that the narrow one has of its own; it is client-go's otherwise.
type connections struct {
	narrow, wide *connection
}

// connection is one of two, or both where there is one only.
type connection struct {
	next  http.RoundTripper
	first *firstConnection
}

// clientFor returns a client with connections of its own. Its answers fill in their headings,
// and their error bodies are bounded.
func clientFor(config *rest.Config) (*http.Client, error) {
	wide, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	c := connections{wide: &connection{wide, newFirstConnection()}}
	c.narrow = c.wide
	if config.Transport == nil { // else it is the user's, and stays as it is
		narrow, err := rest.TransportFor(narrowed(config))
		if err != nil {
			return nil, err
		}
		c.narrow = &connection{narrow, newFirstConnection()}
	}
	return &http.Client{Transport: c, Timeout: config.Timeout, CheckRedirect: checkRedirect}, nil
}

// narrowed is config for connections with a narrow window.
func narrowed(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	if config.Proxy == nil {
		// The default, said explicitly: client-go shares the transport of a configuration
		// with all that have an equal one, unless that has a function to find the proxy.
		config.Proxy = http.ProxyFromEnvironment
	}
	// The first wrapper is nearest to the transport, which has no connections yet.
	config.WrapTransport = transport.Wrappers(func(rt http.RoundTripper) http.RoundTripper {
		for inner := rt; inner != nil; {
			switch t := inner.(type) {
			case *http.Transport:
				t.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: narrowWindow}
				return rt
			case utilnet.RoundTripperWrapper:
				inner = t.WrappedRoundTripper()
			default:
				return rt
			}
		}
		return rt
	}, config.WrapTransport)
	return config
}

func (c connections) RoundTrip(request *http.Request) (*http.Response, error) {
	h, _ := request.Context().Value(headingKey{}).(*heading)
	over := c.narrow
	if h != nil && h.mayWiden && request.URL.Scheme == "https" {
		over = c.wide
	}
	request = over.first.await(request)
	defer over.first.over()
	if h != nil {
		h.sent()
	}
	response, err := over.next.RoundTrip(request)
	if h != nil {
		h.answered()
	}
	if err != nil || response == nil {
		return response, err
	}
	if isError(response) {
		readErrorBody(response)
	} else if h != nil {
		h.contentType = response.Header.Get("Content-Type")
		h.wide = over != c.narrow && response.ProtoMajor == 2
	}
	return response, nil
}

// CloseIdleConnections is how an http.Client closes them.
func (c connections) CloseIdleConnections() {
	for _, over := range []*connection{c.narrow, c.wide} {
		utilnet.CloseIdleConnectionsFor(over.next)
	}
}
