package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// How often in a row an answer has to come before it is believed. A refusal twice, because a first
// 403 or 404 may be meant for one way of listing (a watch-list) and not for the next. A closed port
// more often: a server may just be restarting.
const (
	refusalsBelieved    = 2
	closedPortsBelieved = 4
)

// patience decides when there is no sense in waiting for a first sync any longer. With no limit it
// never runs out: a mirror that runs on waits for its clusters.
type patience struct {
	limit time.Duration // without progress; 0 = for ever

	mu       sync.Mutex
	progress int64     // the highest seen
	since    time.Time // of that progress
	last     error
	refusals int
	closed   int
}

func newPatience(limit time.Duration, now time.Time) *patience {
	return &patience{limit: limit, since: now}
}

// Failed takes note of one failed try. nil is the news that all is well.
func (p *patience) Failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.last = err
	switch {
	case err == nil:
		p.refusals, p.closed = 0, 0
	case isRefusal(err):
		p.refusals++
	case utilnet.IsConnectionRefused(err):
		p.closed++
	}
}

// Spent returns why waiting has become pointless, or nil. progress is any number that grows as
// things go on.
func (p *patience) Spent(now time.Time, progress int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()

	if progress > p.progress {
		p.progress, p.since, p.refusals, p.closed = progress, now, 0, 0
	}
	switch {
	case p.limit == 0:
		return nil
	case p.refusals >= refusalsBelieved, p.closed >= closedPortsBelieved:
		return errors.New(reason(p.last))
	case now.Sub(p.since) < p.limit:
		return nil
	case p.last != nil:
		return fmt.Errorf("no progress for %s: %s", p.limit, reason(p.last))
	default:
		return fmt.Errorf("no progress for %s", p.limit)
	}
}

// Context ends with its parent, or when the limit is over, whatever progress there is.
func (p *patience) Context(parent context.Context) (context.Context, context.CancelFunc) {
	if p.limit == 0 {
		return context.WithCancel(parent)
	}
	return context.WithTimeoutCause(parent, p.limit, fmt.Errorf("no progress for %s", p.limit))
}

// isRefusal reports whether the server has understood and says no: asking again does not help.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// reason is the part of an error that several resources of a cluster have in common: without the
// URL that was asked for. Messages name the place themselves.
func reason(err error) string {
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		return failed.Err.Error()
	}
	status := apierrors.APIStatus(nil)
	if errors.As(err, &status) && isRefusal(err) {
		return fmt.Sprintf("%d %s: %s", status.Status().Code, http.StatusText(int(status.Status().Code)), status.Status().Message)
	}
	return err.Error()
}
