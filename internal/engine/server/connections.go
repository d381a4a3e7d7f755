package server

import (
	"errors"
	"net/http"
	"reflect"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// narrowWindow is how much an HTTP/2 connection holds of an answer that is not read. With the
// buffer of its reader, an unread answer costs less than 256 KiB.
const narrowWindow = 160 << 10

// connections are those of a Server, as an http.RoundTripper.
//
// With HTTP/2, a server sends as much ahead of a reader as the window of its stream allows. An
// answer that is not read costs as much as its window, and a window is also the most that one
// round trip can bring. Therefore a Server has two connections. An answer that may use it comes
// through the wide window of the one, and all others through the narrow window of the other. The
// narrow connection differs from client-go's in the size of its window only.
type connections struct {
	narrow, wide *connection
	plugin       *plugin // nil if the configuration has none
	presence     *presence
	// stub is a request that has nothing but the address of the server.
	stub *http.Request
}

// connection is one of two, or both where there is one only.
type connection struct {
	next http.RoundTripper
	*connector
}

// clientFor returns a client with connections of its own, without the Timeout of config. It fills in
// the exchange of each request, and bounds the bodies of errors.
func clientFor(config *rest.Config, p *presence, k *acquaintance) (*http.Client, error) {
	var client http.RoundTripper
	var err error
	if files := tlsFilesOf(config); files.none() {
		client, err = newConnections(config, p, k)
	} else {
		client, err = newRenewal(config, files, p, k)
	}
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: client, CheckRedirect: checkRedirect}, nil
}

func newConnections(config *rest.Config, p *presence, k *acquaintance) (c connections, err error) {
	c.presence = p
	address, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return c, err
	}
	c.stub = &http.Request{Method: http.MethodGet, URL: address}
	if c.plugin, err = newPlugin(config); err != nil {
		return c, err
	}
	config = c.plugin.install(config)
	wide, err := rest.TransportFor(config)
	if err != nil {
		return c, err
	}
	c.wide = &connection{wide, newConnector(p, k)}
	c.narrow = c.wide
	if config.Transport == nil { // else it is the user's, and stays as it is
		narrow, err := rest.TransportFor(narrowed(config))
		if err != nil {
			return c, err
		}
		c.narrow = &connection{narrow, newConnector(p, k)}
	}
	return c, nil
}

// narrowed is config for a connection with a narrow window.
func narrowed(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	// With a pool, which client-go has from 0.38 on, only one of its transports would be narrow.
	if size := reflect.ValueOf(config).Elem().FieldByName("MinConnectionPoolSize"); size.IsValid() && size.CanInt() {
		size.SetInt(1)
	}
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
	e, _ := request.Context().Value(exchangeKey{}).(*exchange)
	over := c.narrow
	if e != nil && e.MayWiden && request.URL.Scheme == "https" {
		over = c.wide
	}
	if e == nil && request.Header.Get("Accept-Encoding") == "" && isWatch(request) {
		// net/http would ask for gzip, and read an event only when the next one comes.
		request = request.Clone(request.Context())
		request.Header.Set("Accept-Encoding", "identity")
	}
	if err := c.plugin.await(request.Context()); err != nil {
		return nil, err
	}
	response, err := over.send(request, e)
	if err != nil || response == nil {
		return response, err
	}
	c.plugin.reveal(response)
	if isAnswer(response.StatusCode) {
		c.presence.heard(request.Context(), e != nil && e.asks)
	}
	if e != nil {
		e.over = response.TLS
		if e.tells {
			decompress(response, e)
		}
	}
	if isError(response) {
		readErrorBody(response)
		e.obey(response)
		return response, nil
	}
	if e == nil || !e.tells {
		response.Body = &body{response.Body, isWatch(request), over.hasLost}
	}
	if e != nil {
		e.response, e.stub = response, c.stub
		e.lost = over.hasLost
		e.contentType = response.Header.Get("Content-Type")
		e.http2 = response.ProtoMajor == 2
		e.wide = over != c.narrow && e.http2
	}
	return response, nil
}

// send sends a request when it may be sent, and returns the head of the answer.
func (c *connection) send(request *http.Request, e *exchange) (response *http.Response, err error) {
	request, first, err := c.await(request, e != nil && e.asks)
	if err != nil {
		return nil, err
	}
	err = errUnanswered // if a transport of the caller's ends the goroutine
	if first != nil {
		defer func() {
			if connected := c.finish(first, request, err); !connected && e != nil {
				e.symptom = unconnected
			}
		}()
	} else {
		request = e.lighten(request)
	}
	if e != nil {
		e.Sent()
	}
	response, err = c.next.RoundTrip(request)
	if e != nil {
		e.Answered()
	}
	if err != nil {
		c.lost()
	}
	return response, err
}

// errUnanswered is the error of a request whose transport has not returned.
var errUnanswered = errors.New("the transport has not returned")

// CloseIdleConnections is how an http.Client closes them.
func (c connections) CloseIdleConnections() {
	for _, over := range []*connection{c.narrow, c.wide} {
		utilnet.CloseIdleConnectionsFor(over.next)
	}
}
