package informer

import "context"

// heading is what a request that is made with withHeading learns of its answer:
// the body of a rest.Request.Stream comes without its head.
type heading struct {
	contentType string
	// sent is called when the server is asked, and answered when it has answered, or
	// the connection has failed. Between the two it is the server's turn: before, the
	// client may wait for its rate limiter, and after, for as long as the server has
	// asked it to before it asks again.
	sent, answered func()
	// mayWiden tells that the answer may come through a wide window, and wide that it does:
	// see connections.
	mayWiden, wide bool
}

type headingKey struct{}

func withHeading(ctx context.Context, h *heading) context.Context {
	return context.WithValue(ctx, headingKey{}, h)
}
