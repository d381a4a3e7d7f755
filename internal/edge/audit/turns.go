package audit

import (
	"context"
	"sync"
)

// Turns has audits of one server take turns. The zero value is ready for use.
type Turns struct {
	mu      sync.Mutex
	servers map[any]*turn
}

// turn is that of one server. It goes when nothing has it or waits for it.
type turn struct {
	// taken has an entry while an audit has the turn.
	taken chan struct{}
	users int
}

// Begin waits until no other audit of a server is under way. End is to be called when this one is
// over. The error is that of ctx.
func (t *Turns) Begin(ctx context.Context, server any) (end func(), err error) {
	of := t.use(server)
	select {
	case of.taken <- struct{}{}:
		return func() {
			<-of.taken
			t.leave(server)
		}, nil
	case <-ctx.Done():
		t.leave(server)
		return nil, context.Cause(ctx)
	}
}

func (t *Turns) use(server any) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.servers == nil {
		t.servers = map[any]*turn{}
	}
	of := t.servers[server]
	if of == nil {
		of = &turn{taken: make(chan struct{}, 1)}
		t.servers[server] = of
	}
	of.users++
	return of
}

func (t *Turns) leave(server any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.servers[server]
	if of.users--; of.users == 0 {
		delete(t.servers, server)
	}
}
