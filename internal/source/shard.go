package source

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/internal/server"
)

// request opens a list or a watch of the Shard. If the server refuses a shardSelector, it is asked
// without one, and so are others for an hour. It returns the shardSelector that the server has
// accepted.
//
// A server that does not know the parameter ignores it. So every object is looked at on this side,
// whatever the server says.
func (s *Source) request(ctx context.Context, opts metav1.ListOptions, how server.Request) (*server.Body, string, error) {
	if s.Shard.IsAll() || s.resource.ShardFailure() != nil {
		body, err := s.resource.Open(ctx, opts, how)
		return body, "", err
	}
	opts.ShardSelector = s.Shard.String()
	body, err := s.resource.Open(ctx, opts, how)
	if !mayRefuseShard(err) {
		return body, opts.ShardSelector, err
	}
	opts.ShardSelector = ""
	body, again := s.resource.Open(ctx, opts, how)
	if again == nil {
		s.resource.ShardFailed(err)
	}
	return body, "", again
}

// mayRefuseShard reports whether an error may be due to a shardSelector. A kube-apiserver answers
// one that it cannot read with an internal error.
func mayRefuseShard(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	return apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) || apierrors.IsInternalError(err) && strings.Contains(status.Status().Message, "shard")
}

// checkShard compares the selector that a list says it was made with, if it says one, with the one
// that was asked for. Another one is an error, because the list may lack objects.
func (s *Source) checkShard(asked, applied string) error {
	if s.Shard.IsAll() || applied == "" || applied == asked {
		return nil
	}
	err := fmt.Errorf("the server has listed the shard %q, and was asked for %q", applied, asked)
	if asked != "" {
		s.resource.ShardFailed(err)
	}
	return err
}
