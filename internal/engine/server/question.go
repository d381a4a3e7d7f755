package server

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/listwatch"
	"github.com/rvinformer/informer/internal/leaf/failure"
)

// askPatience is how long the answer to a question may take, the connection included.
const askPatience = 2500 * time.Millisecond

// Await waits for pause after a request has failed with err. If the server seems to be away, all
// that wait for it find out together, with one question in a while. If it is away, they wait for
// its return instead, and note is told why.
//
// The result tells that the server was away, so that pause does not count: what has failed is to be
// tried again as though it had not. Await returns early when ctx ends.
func (r *Resource) Await(ctx context.Context, pause time.Duration, err error, note func(reason error)) (outage bool) {
	var answer apierrors.APIStatus
	answered := errors.As(err, &answer)
	switch {
	case err == nil, listwatch.RetryAfter(err) > 0, !listwatch.Down(err),
		!answered && failure.ClassOf(err) != api.ErrorUnreachable:
		return sleep(ctx, pause, false) // the server is there
	}
	return (&waiter{presence: r.server.presence, pause: pause, answered: answered, ask: r.server.ask, note: note}).await(ctx)
}

// ServerAway reports whether the server was found away, and has not answered since.
func (r *Resource) ServerAway() bool { return r.server.presence.away() }

// ask asks the server whether it is there. Each answer says so, a refusal as well. It notes when
// there was none.
func (s *Server) ask(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	sent := false
	e := &exchange{Request: Request{Sent: func() { sent = true }, Answered: func() {}}, asks: true}
	body, err := s.link.Load().client.Get().
		AbsPath("version").
		Throttle(unlimited). // what others send must not hold it up
		MaxRetries(0).
		Stream(withExchange(limited, e))
	if err == nil {
		body.Close()
		return
	}
	err = e.withDelay(err)
	var answer apierrors.APIStatus
	switch {
	case ctx.Err() != nil, !sent, failure.ClassOf(err) == api.ErrorUnauthorized: // nothing was learnt
	case !errors.As(err, &answer):
		s.presence.unanswered(ctx, ExplainConnection(err), e.symptom, 0)
	case !isAnswer(int(answer.Status().Code)):
		s.presence.unanswered(ctx, err, unanswered, listwatch.RetryAfter(err))
	}
}

var unlimited = flowcontrol.NewFakeAlwaysRateLimiter()

// isAnswer reports whether an answer with a status code comes from the server itself. A load
// balancer whose servers are away answers too.
func isAnswer(code int) bool { return !failure.CannotServe(int32(code)) }
