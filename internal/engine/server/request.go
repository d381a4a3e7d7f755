package server

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Request says how a list or a watch is read, beside its options.
type Request struct {
	// Accept has the content types that the caller can read.
	Accept string
	// MayWiden allows the answer to come through a wide window: see connections.
	MayWiden bool
	// Sent is called when the server is asked, and Answered when it has answered, or the
	// connection has failed. Between the two, the caller waits for the server. Before, it may
	// wait for its rate limiter, and after, for as long as the server has asked it to.
	Sent, Answered func()
	// Arrived, if set, is called when bytes of a compressed answer have come, from within a read of
	// the Body.
	Arrived func(bytes int)
}

// Body is the answer to a Request, while it arrives. It is to be closed.
type Body struct {
	io.ReadCloser
	ContentType string
	// Over identifies the connection of the answer: it is equal for two answers over one. It is nil
	// without TLS.
	Over *tls.ConnectionState
	// Wide tells that the answer comes through a wide window: the connection may hold much of
	// it while it is not read.
	Wide bool
	// HTTP2 tells that the answer shares a connection with others, by HTTP/2.
	HTTP2 bool
	// Options are those that the server was asked with.
	Options metav1.ListOptions
	// Zipped is nil unless the answer comes compressed. It is what decompresses it, below the
	// ReadCloser.
	Zipped *Zipped
	// Lost is to be called when reading has failed, or a watch has come to its end: the connection
	// may be lost.
	Lost func()
}

// exchange is a request that is made with withExchange, and the head of its answer. The body of
// a rest.Request.Stream comes without its head.
type exchange struct {
	Request
	// ctx is the context without what client-go adds to it.
	ctx         context.Context
	contentType string
	// over is Response.TLS, which the answers over one connection have in common.
	over     *tls.ConnectionState
	lost     func()
	response *http.Response
	// stub takes the place of the request of an answer that is read on. A transport of the caller's
	// may have kept the answer.
	stub        *http.Request
	wide, http2 bool
	// unzips tells that the answer may be compressed. Zipped is its body if it is, else nil.
	unzips bool
	zipped *Zipped
	// tells tells that the reader of the answer calls lost.
	tells bool
	// asks tells that it is a question whether the server is there: see Server.ask.
	asks bool
	// symptom is how it has failed.
	symptom symptom
	// delay is for how many seconds the head of the answer asks to leave the server alone.
	delay int
}

type exchangeKey struct{}

func withExchange(ctx context.Context, e *exchange) context.Context {
	e.ctx = ctx
	return context.WithValue(ctx, exchangeKey{}, e)
}

// lighten returns the request without the values that client-go has added to its context, which
// trace the making of a connection. A stream keeps its context for as long as it lasts. The context
// of a request that may end by itself stays.
func (e *exchange) lighten(request *http.Request) *http.Request {
	if e == nil || request.Context().Done() != e.ctx.Done() {
		return request
	}
	return request.WithContext(e.ctx)
}

// forgetHead forgets the rest of the answer beside its body, because the body keeps it for as long
// as it lasts. A transport that wraps another may still look at the answer, or set a header.
func (e *exchange) forgetHead() {
	e.response.Request, e.response.Header = e.stub, http.Header{}
}
