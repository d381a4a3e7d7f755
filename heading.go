package informer

import (
	"context"
	"net/http"
)

// heading is what a request that is made with withHeading learns of its answer:
// the body of a rest.Request.Stream comes without its head.
type heading struct {
	contentType string
	// sent is called when the server is asked, and answered when it has answered, or
	// the connection has failed. Between the two it is the server's turn: before, the
	// client may wait for its rate limiter, and after, for as long as the server has
	// asked it to before it asks again.
	sent, answered func()
}

type headingKey struct{}

func withHeading(ctx context.Context, h *heading) context.Context {
	return context.WithValue(ctx, headingKey{}, h)
}

// telling returns a copy of client that fills in the headings of its answers.
func telling(client *http.Client) *http.Client {
	next := client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	told := *client
	told.Transport = headingTransport{next, newFirstConnection()}
	told.CheckRedirect = checkRedirect
	return &told
}

type headingTransport struct {
	next  http.RoundTripper
	first *firstConnection
}

func (t headingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	request = t.first.await(request)
	defer t.first.over()
	h, ok := request.Context().Value(headingKey{}).(*heading)
	if ok {
		h.sent()
	}
	response, err := t.next.RoundTrip(request)
	if ok {
		h.answered()
	}
	if err != nil || response == nil {
		return response, err
	}
	if isError(response) {
		readErrorBody(response)
	} else if ok {
		h.contentType = response.Header.Get("Content-Type")
	}
	return response, nil
}

// WrappedRoundTripper is how the API machinery finds the connections.
func (t headingTransport) WrappedRoundTripper() http.RoundTripper { return t.next }
