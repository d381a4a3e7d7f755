package source

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/internal/server"
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
// asked without it, and so are others for an hour. Request returns the shardSelector that the server
// has accepted.
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
	body, err := s.resource.Open(ctx, opts, how)
	if p := refused(&opts, err); p != nil {
		return s.requestWithout(ctx, p, err, opts, how)
	}
	return body, opts.ShardSelector, err
}

// requestWithout makes a request again without a parameter that the server has refused, and then
// without others that it refuses. They are remembered if that works.
func (s *Source) requestWithout(ctx context.Context, p *parameter, refusal error, opts metav1.ListOptions, how server.Request) (*server.Body, string, error) {
	refusals := map[string]error{}
	for {
		refusals[p.name] = refusal
		p.leaveOut(&opts)
		body, err := s.resource.Open(ctx, opts, how)
		if err == nil {
			for name, why := range refusals {
				s.leaveOut(name, why)
			}
			return body, opts.ShardSelector, nil
		}
		if p, refusal = refused(&opts, err), err; p == nil {
			return nil, "", err
		}
	}
}

// leaveOut remembers that the server has refused a parameter.
func (s *Source) leaveOut(name string, why error) {
	s.resource.ParameterFailed(name, why)
	s.Report.Logger().Info("The server refuses a query parameter: it is left out for an hour", "resource", s.resource.GroupResource().String(), "parameter", name, "reason", why.Error())
}

// refused returns the optional parameter that an error refuses, or nil. The error names it; a
// shardSelector may also be what an error refuses that names none. A kube-apiserver answers a
// shardSelector that it cannot read with an internal error.
func refused(opts *metav1.ListOptions, err error) *parameter {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return nil
	}
	status := answer.Status()
	invalid := apierrors.IsBadRequest(err) || apierrors.IsInvalid(err)
	for i := range optional {
		if p := &optional[i]; p.isIn(opts) && invalid && names(&status, p.name) {
			return p
		}
	}
	shard := &optional[0]
	if shard.isIn(opts) && (invalid || apierrors.IsInternalError(err) && strings.Contains(status.Message, "shard")) {
		return shard
	}
	return nil
}

// names reports whether a status names a parameter.
func names(status *metav1.Status, parameter string) bool {
	if status.Details != nil && slices.ContainsFunc(status.Details.Causes, func(c metav1.StatusCause) bool { return c.Field == parameter }) {
		return true
	}
	words := strings.FieldsFunc(status.Message, func(c rune) bool { return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') })
	return slices.Contains(words, parameter)
}
