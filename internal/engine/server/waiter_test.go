package server

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func newTestWaiter(p *presence, ask func(context.Context)) *waiter {
	return &waiter{presence: p, pause: time.Hour, ask: ask, note: func(error) {}}
}

// A transport of the caller's may end the goroutine that asks.
func TestWaiterThatEndsLeavesTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPresence("")
		p.heard(t.Context(), false)
		time.Sleep(time.Minute)
		var all sync.WaitGroup
		asked := 0
		for range 3 {
			all.Go(func() {
				newTestWaiter(p, func(context.Context) {
					asked++
					runtime.Goexit()
				}).await(t.Context())
			})
		}
		all.Wait()
		require.Equal(t, 3, asked)
		require.Zero(t, p.standing.waiting)
	})
}

// A waiter may run only when the server, back from an outage, is suspected or away again.
func TestLateWaiterSeesTheReturn(t *testing.T) {
	for name, then := range map[string]func(*presence){
		"suspected": func(p *presence) { step(p, newTestWaiter(p, nil).join) },
		"away":      func(p *presence) { p.unanswered(context.Background(), errors.New("timeout"), unanswered, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPresence("")
				time.Sleep(time.Minute)
				w := newTestWaiter(p, nil)
				require.True(t, step(p, w.join))
				p.unanswered(t.Context(), errors.New("timeout"), unanswered, 0)
				time.Sleep(outageLeast)
				p.heard(t.Context(), true)
				then(p)
				require.Equal(t, spreadLeast, w.untilBack(t.Context()))
			})
		})
	}
}
