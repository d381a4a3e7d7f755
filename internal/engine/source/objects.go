package source

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/engine/listwatch"
	"github.com/rvinformer/informer/internal/engine/server"
	"github.com/rvinformer/informer/internal/leaf/backoff"
)

// Objects lists the objects of a ListerWatcher again, for a redelivery. It belongs to one goroutine.
type Objects struct {
	options  Options
	pageSize int64
	all      *Source
	first    wait.Backoff
	// versioned tells that a list had a resource version.
	versioned bool
	// next is that of the next failed request.
	next wait.Backoff
}

// NewObjects returns those objects of o that the selector selects, in pages of at most
// pageSize, if that is set. Failed requests wait as custom says, or as long as by default, and fail
// is called with errors that no call returns.
func NewObjects(o Options, selector string, pageSize int64, custom *wait.Backoff, fail func(error)) (*Objects, error) {
	if _, err := labels.Parse(selector); err != nil {
		return nil, err
	}
	memory := &Memory{}
	memory.lists.learn(o.Memory.lists.known())
	memory.unselected.Store(true) // the informer reports it
	o.Memory, o.Shared, o.Here, o.Budget, o.Report = memory, nil, nil, nil, &report.Report{Handler: fail}
	s := &Objects{options: o, pageSize: pageSize, first: backoff.OrDefault(custom)}
	s.next = s.first
	s.all = s.of(server.Selecting(selector))
	return s, nil
}

// of returns a source of a part of the objects. Its caller reads as slowly as the handler.
func (s *Objects) of(part server.Tweak) *Source {
	o := s.options
	o.ListerWatcher = server.Narrow(o.ListerWatcher, part)
	narrow := New(o)
	narrow.Narrow = true
	return narrow
}

// Page lists a page of the objects that are selected, the first one if token is empty.
func (s *Objects) Page(ctx context.Context, token string, limit int64, each Each) (Page, error) {
	if s.pageSize > 0 {
		limit = min(limit, s.pageSize)
	}
	return s.checked(s.all.Page(ctx, metav1.ListOptions{Limit: limit, Continue: token}, each))
}

// checked checks that the last page of a list has a resource version if another one had.
func (s *Objects) checked(p Page, err error) (Page, error) {
	if err == nil && p.Continue == "" {
		if p.ResourceVersion == "" && s.versioned {
			return p, fmt.Errorf("%w: it has no resource version, and one before had", api.ErrNotList)
		}
		s.versioned = s.versioned || p.ResourceVersion != ""
	}
	return p, err
}

// Ask lists the object of a key.
func (s *Objects) Ask(ctx context.Context, key string, each Each) (Page, error) {
	return s.checked(s.of(server.Only(key)).Page(ctx, metav1.ListOptions{}, each))
}

// Rest waits after a request has failed, longer each time. Brought tells that objects were handed on
// since the last time, so that it waits as after the first one. The error is that of ctx.
func (s *Objects) Rest(ctx context.Context, err error, brought bool) error {
	if brought {
		s.next = s.first
	}
	pause := listwatch.RetryAfter(err)
	if !errors.Is(err, ErrUnread) {
		pause = max(pause, s.next.Step())
	}
	s.all.AwaitServer(ctx, pause, err)
	return context.Cause(ctx)
}
