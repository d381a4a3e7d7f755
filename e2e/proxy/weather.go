package proxy

import (
	"context"
	"time"
)

// Side is one end of a connection.
type Side int

const (
	// Client is the end that has connected to the proxy.
	Client Side = iota
	// Server is whom the proxy has connected to.
	Server
)

func (s Side) String() string { return [...]string{"client", "server"}[s] }

// weather is what happens to the pieces that a proxy is given.
type weather interface {
	// admit returns when a piece from the given side may be handed on, and true; or
	// false when the weather has changed before.
	admit(ctx context.Context, from Side, changed <-chan struct{}) bool
}

// fair hands on everything.
type fair struct{}

func (fair) admit(context.Context, Side, <-chan struct{}) bool { return true }

// dropped has no connections.
type dropped struct{}

func (dropped) admit(ctx context.Context, _ Side, changed <-chan struct{}) bool {
	return sit(ctx, nil, changed)
}

// delayed hands on everything later.
type delayed struct{ by time.Duration }

func (d delayed) admit(ctx context.Context, _ Side, changed <-chan struct{}) bool {
	return sit(ctx, time.After(d.by), changed)
}

// halved is silent in one direction.
type halved struct{ from Side }

func (h halved) admit(ctx context.Context, from Side, changed <-chan struct{}) bool {
	if from != h.from {
		return true
	}
	return sit(ctx, nil, changed)
}

// sit returns true when the time has come, and false at a change or the end of ctx.
func sit(ctx context.Context, time <-chan time.Time, changed <-chan struct{}) bool {
	select {
	case <-time:
		return true
	case <-changed:
	case <-ctx.Done():
	}
	return false
}
