package informer

import (
	"context"
	"net/http"
)

// heading is what the head of an answer says, for a request that is made with
// withHeading. The body of a rest.Request.Stream comes without its head.
type heading struct {
	contentType string
}

type headingKey struct{}

func withHeading(ctx context.Context) (context.Context, *heading) {
	h := &heading{}
	return context.WithValue(ctx, headingKey{}, h), h
}

// telling returns a copy of client that fills in the headings of its answers.
func telling(client *http.Client) *http.Client {
	next := client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	told := *client
	told.Transport = headingTransport{next}
	return &told
}

type headingTransport struct{ next http.RoundTripper }

func (t headingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if h, ok := request.Context().Value(headingKey{}).(*heading); ok && err == nil {
		h.contentType = response.Header.Get("Content-Type")
	}
	return response, err
}

// WrappedRoundTripper is how the API machinery finds the connections.
func (t headingTransport) WrappedRoundTripper() http.RoundTripper { return t.next }
