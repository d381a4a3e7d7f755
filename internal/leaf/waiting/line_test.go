package waiting_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/waiting"
)

// caller is a call of Until.
type caller struct {
	version int
	cancel  context.CancelFunc
	done    chan error
}

// wait starts a call of Until for a version, in a line that is at reached.
func wait(l *waiting.Line, version, reached int) *caller {
	ctx, cancel := context.WithCancel(context.Background())
	c := &caller{version: version, cancel: cancel, done: make(chan error, 1)}
	text := func() string { return versionText(reached) }
	go func() {
		c.done <- l.Until(ctx, waiting.Wait{
			Informer: "pods", ResourceVersion: strconv.Itoa(version), Check: func() { l.Reach(text()) }, Reached: text,
		})
	}()
	return c
}

// versionText is a version as a server writes it; 0 is none yet.
func versionText(version int) string {
	if version == 0 {
		return ""
	}
	return strconv.Itoa(version)
}

// over returns how a wait has ended, if it has.
func (c *caller) over() (err error, over bool) {
	select {
	case err := <-c.done:
		c.cancel()
		return err, true
	default:
		return nil, false
	}
}

// Callers come, go and give up in any order: each wait ends as soon as its version is reached, and
// none before.
func TestLineEndsEachWaitAtItsVersion(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			var line waiting.Line
			var waits []*caller
			reached := 0
			r.Repeat(map[string]func(*rapid.T){
				"join": func(r *rapid.T) {
					waits = append(waits, wait(&line, rapid.IntRange(1, 120).Draw(r, "version"), reached))
				},
				"give up": func(r *rapid.T) {
					if len(waits) == 0 {
						r.Skip("there are no callers")
					}
					n := rapid.IntRange(0, len(waits)-1).Draw(r, "caller")
					waits[n].cancel()
					synctest.Wait()
					err, over := waits[n].over()
					require.True(r, over)
					require.ErrorIs(r, err, context.Canceled)
					waits = append(waits[:n], waits[n+1:]...)
				},
				"reach": func(r *rapid.T) {
					reached += rapid.IntRange(1, 20).Draw(r, "by") // 9 and 10 have another order as text
					line.Reach(strconv.Itoa(reached))
				},
				"reach what has no order": func(r *rapid.T) {
					line.Reach("opaque")
					waits = allEnd(r, waits, api.ErrUnorderedVersion)
				},
				"stop": func(r *rapid.T) {
					line.Stop()
					waits = allEnd(r, waits, api.ErrStopped)
				},
				"": func(r *rapid.T) {
					synctest.Wait()
					var left []*caller
					for _, c := range waits {
						err, over := c.over()
						require.Equal(r, c.version <= reached, over, "version %d, reached %d", c.version, reached)
						require.NoError(r, err)
						if !over {
							left = append(left, c)
						}
					}
					waits = left
					require.Equal(r, len(waits) > 0, line.Waits())
				},
			})
			line.Stop()
			allEnd(r, waits, api.ErrStopped)
		})
	})
}

// allEnd demands that all waits end with an error.
func allEnd(r *rapid.T, waits []*caller, with error) []*caller {
	synctest.Wait()
	for _, c := range waits {
		err, over := c.over()
		require.True(r, over)
		require.ErrorIs(r, err, with)
	}
	return nil
}

// BenchmarkReach measures what the callers that wait for newer versions cost an event.
//
//	go test -run - -bench Reach ./internal/leaf/waiting
func BenchmarkReach(b *testing.B) {
	for _, callers := range []int{1, 10_000} {
		b.Run(strconv.Itoa(callers), func(b *testing.B) {
			var line waiting.Line
			waits := make([]*caller, callers)
			joined := make(chan struct{}, callers)
			for i := range waits {
				ctx, cancel := context.WithCancel(b.Context())
				waits[i] = &caller{cancel: cancel, done: make(chan error, 1)}
				go func() {
					waits[i].done <- line.Until(ctx, waiting.Wait{
						ResourceVersion: strconv.Itoa(1_000_000_000 - i), Check: func() { joined <- struct{}{} }, Reached: func() string { return "" },
					})
				}()
			}
			for range waits {
				<-joined
			}
			for b.Loop() {
				line.Reach("1000")
			}
			line.Stop()
			for _, w := range waits {
				<-w.done
				w.cancel()
			}
		})
	}
}
