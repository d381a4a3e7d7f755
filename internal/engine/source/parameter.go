package source

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/internal/engine/server"
)

// The names of query parameters that a server need not know.
const (
	watchListParameter = "sendInitialEvents" // whose refusal is the caller's to handle
	shardParameter     = "shardSelector"
)

// parameter is a query parameter without which a list or a watch does its work as well.
type parameter struct {
	name     string
	isIn     func(opts *metav1.ListOptions) bool
	leaveOut func(opts *metav1.ListOptions)
}

var optional = []parameter{
	{
		name:     shardParameter, // every object is looked at on this side
		isIn:     func(o *metav1.ListOptions) bool { return o.ShardSelector != "" },
		leaveOut: func(o *metav1.ListOptions) { o.ShardSelector = "" },
	}, {
		name:     "allowWatchBookmarks", // a watch-list cannot end its initial events without
		isIn:     func(o *metav1.ListOptions) bool { return o.AllowWatchBookmarks && !startsWithObjects(*o) },
		leaveOut: func(o *metav1.ListOptions) { o.AllowWatchBookmarks = false },
	}, {
		name: "resourceVersionMatch",
		isIn: func(o *metav1.ListOptions) bool { return o.ResourceVersionMatch != "" && !o.Watch },
		leaveOut: func(o *metav1.ListOptions) { // the newest state is not older either
			o.ResourceVersionMatch, o.ResourceVersion = "", ""
		},
	}, {
		name:     "limit",
		isIn:     func(o *metav1.ListOptions) bool { return o.Limit > 0 },
		leaveOut: func(o *metav1.ListOptions) { o.Limit = 0 },
	},
}

// request opens a list or a watch of the Shard. If the server refuses an optional parameter, it is
// asked without it, and without others that it refuses then. All requests of the next hour go
// without them too. Request returns the shardSelector that the server has accepted.
//
// A server that does not know the shardSelector usually ignores it.
func (s *Source) request(ctx context.Context, opts metav1.ListOptions, how server.Request) (*server.Body, string, error) {
	if !s.Shard.IsAll() {
		opts.ShardSelector = s.Shard.String()
	}
	for i := range optional {
		if p := &optional[i]; p.isIn(&opts) && s.resource.ParameterFailure(p.name) != nil {
			p.leaveOut(&opts)
		}
	}
	var refusals []refusal
	for {
		body, err := s.resource.Open(ctx, opts, how)
		if r, ok := refused(&opts, err); ok {
			r.leaveOut(&opts)
			refusals = append(refusals, r)
			continue
		}
		for _, r := range refusals {
			if r.isRight(err) {
				s.leaveOut(r.name, r.why)
			}
		}
		if err != nil {
			return nil, "", err
		}
		return body, opts.ShardSelector, nil
	}
}

// refusal is the answer of a server that does not take a parameter.
type refusal struct {
	*parameter
	isNamed bool // else it may be about something else
	why     error
}

// isRight reports whether a refusal was about its parameter, by the error of the request without it.
// One that names the parameter is right, unless that request is invalid as well. So a server that is
// busy then is not asked with the parameter again.
func (r refusal) isRight(err error) bool {
	return err == nil || r.isNamed && !isInvalid(err)
}

func isInvalid(err error) bool { return apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) }

// leaveOut remembers that the server has refused a parameter.
func (s *Source) leaveOut(name string, why error) {
	s.resource.ParameterFailed(name, why)
	s.Report.Logger().Info("The server refuses a query parameter: it is left out for an hour", "resource", s.resource.GroupResource().String(), "parameter", name, "reason", why.Error())
}

// refused tells whether an error refuses an optional parameter. The error names it; a shardSelector
// may also be what an error refuses that names none. A kube-apiserver answers a shardSelector that it
// cannot read with an internal error.
func refused(opts *metav1.ListOptions, err error) (r refusal, ok bool) {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return r, false
	}
	status := answer.Status()
	for i := range optional {
		if p := &optional[i]; p.isIn(opts) && isInvalid(err) && names(&status, p.name) {
			return refusal{p, true, err}, true
		}
	}
	shard := &optional[0]
	if shard.isIn(opts) && (isInvalid(err) || apierrors.IsInternalError(err) && strings.Contains(status.Message, "shard")) {
		return refusal{shard, false, err}, true
	}
	return r, false
}

// names reports whether a status names a parameter.
func names(status *metav1.Status, parameter string) bool {
	if status.Details != nil && slices.ContainsFunc(status.Details.Causes, func(c metav1.StatusCause) bool { return c.Field == parameter }) {
		return true
	}
	words := strings.FieldsFunc(status.Message, func(c rune) bool { return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') })
	return slices.Contains(words, parameter)
}
