package e2e

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// pause is a place at which something stops, once, until the test lets it go
// on.
type pause struct {
	reached  chan struct{} // closed when it stops there
	released chan struct{} // closed when it may go on

	reach, release sync.Once
}

func newPause() *pause {
	return &pause{reached: make(chan struct{}), released: make(chan struct{})}
}

// here blocks, the first time that it is called, until goOn or the end of ctx.
func (p *pause) here(ctx context.Context) {
	p.reach.Do(func() {
		close(p.reached)
		select {
		case <-p.released:
		case <-ctx.Done():
		}
	})
}

// goOn lets whoever stopped at the pause go on, now or later.
func (p *pause) goOn() { p.release.Do(func() { close(p.released) }) }

// await returns when a goroutine has stopped at the pause.
func (p *pause) await(ctx context.Context, t *testing.T) {
	t.Helper()
	select {
	case <-p.reached:
	case <-ctx.Done():
		require.NoError(t, context.Cause(ctx), "the informer never came so far")
	}
}
