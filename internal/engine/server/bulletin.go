package server

import (
	"context"
	"time"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/leaf/moment"
	"github.com/rvinformer/informer/internal/leaf/redact"
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
	// overseer is the one that was told of the outage under way, nil for none. Another informer of
	// the server may notice the end.
	overseer report.Overseer
}

// notice is a line of the log, nil for none.
type notice func(context.Context)

func (n notice) log(ctx context.Context) {
	if n != nil {
		n(ctx)
	}
}

// change returns what is to be logged when the standing of the server was one and is another.
// Ctx is that of the request whose event that is.
func (b *bulletin) change(ctx context.Context, was, is standing) notice {
	before, wasAway := was.condition.(away)
	now, isAway := is.condition.(away)
	switch {
	case wasAway && !isAway:
		return b.over("Server is back", before.since, was.waiting)
	case isAway && is.waiting == 0 && ctx.Err() != nil && b.told:
		return b.over("Server is not waited for any more", now.since, 0)
	case isAway && is.waiting == was.waiting && now.symptom != contested:
		return b.gone(ctx, now, is.waiting)
	}
	return nil
}

// gone returns what is to be logged while a server is away.
func (b *bulletin) gone(ctx context.Context, a away, informers int) notice {
	now := time.Now()
	if b.told || now.Sub(a.since) < report.TellAfter || !b.quota.Allows(moment.Of(now)) {
		return nil
	}
	b.told = true
	b.quota.Spend(moment.Of(now))
	b.overseer = report.OverseerOf(ctx)
	overseer, subject, message := b.overseer, b.subject(), redact.Error(a.reason).Error()
	values := []any{
		"server", b.server, "message", message, "since", a.since.UTC().Format(time.RFC3339),
		"for", now.Sub(a.since).Round(time.Second).String(), "informers", informers,
	}
	if b.untold > 0 {
		values = append(values, "unlogged", b.untold)
	}
	b.untold = 0
	return func(ctx context.Context) {
		report.LogBegin(ctx, "Server is away", values...)
		if overseer != nil {
			overseer.HeldUp(subject, string(api.ReasonServerUnreachable), message, a.since)
		}
	}
}

// over returns what is to be logged when an outage has ended, or is not waited for any more.
func (b *bulletin) over(text string, since time.Time, informers int) notice {
	if !b.told {
		b.untold++
		return nil
	}
	b.told = false
	b.quota.Spend(moment.Now())
	now, overseer, subject := time.Now(), b.overseer, b.subject()
	b.overseer = nil
	lasted := now.Sub(since).Round(time.Second).String()
	return func(ctx context.Context) {
		report.LogInfo(ctx, text, "server", b.server, "lasted", lasted, "informers", informers)
		if overseer != nil {
			overseer.GoesOn(subject, now)
		}
	}
}

// subject names the server to an overseer.
func (b *bulletin) subject() string { return "server " + b.server }
