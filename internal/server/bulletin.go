package server

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"github.com/rvinformer/informer/internal/moment"
	"github.com/rvinformer/informer/internal/redact"
	"github.com/rvinformer/informer/internal/report"
)

// bulletin logs that a server is away, and that it is back, in place of all informers that wait for
// it. It belongs to the lock of the presence, and its lines are logged without it.
type bulletin struct {
	// server is its address.
	server string
	// told tells that the outage under way was logged, and untold counts those before that were
	// not.
	told   bool
	untold int
	quota  report.Quota
}

// notice is a line of the log, nil for none.
type notice struct {
	text   string
	away   bool
	values []any
}

func (n *notice) log(ctx context.Context) {
	switch {
	case n == nil:
	case n.away:
		klog.FromContext(ctx).Error(nil, n.text, n.values...)
	default:
		klog.FromContext(ctx).Info(n.text, n.values...)
	}
}

// goneFor returns what is to be logged of an outage that has lasted since a time.
func (b *bulletin) goneFor(since time.Time, reason error, informers int) *notice {
	now := time.Now()
	if b.told || now.Sub(since) < report.TellAfter || !b.quota.Allows(moment.Of(now)) {
		return nil
	}
	b.told = true
	b.quota.Spend(moment.Of(now))
	n := &notice{"Server is away", true, []any{
		"server", b.server, "message", redact.Error(reason).Error(), "since", since.UTC().Format(time.RFC3339),
		"for", now.Sub(since).Round(time.Second).String(), "informers", informers,
	}}
	if b.untold > 0 {
		n.values = append(n.values, "unlogged", b.untold)
	}
	b.untold = 0
	return n
}

// over returns what is to be logged when an outage has ended, or is not waited for any more.
func (b *bulletin) over(text string, since time.Time, informers int) *notice {
	if !b.told {
		b.untold++
		return nil
	}
	b.told = false
	b.quota.Spend(moment.Now())
	return &notice{text, false, []any{"server", b.server, "lasted", time.Since(since).Round(time.Second).String(), "informers", informers}}
}
