package fanout_test

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/internal/edge/fanout"
)

// large is a value that can be seen in the memory that is in use.
type large [4 << 10]byte

// burst is a watch of so many events, and no more.
type burst struct {
	next, last int
	stopped    chan struct{}
}

func (w *burst) Next() (fanout.Event[large], error) {
	if w.next == w.last {
		<-w.stopped
		return fanout.Event[large]{}, errStopped
	}
	w.next++
	return fanout.Event[large]{Bytes: 1, ResourceVersion: strconv.Itoa(w.next)}, nil
}

func (w *burst) Stop() {
	select {
	case <-w.stopped:
	default:
		close(w.stopped)
	}
}

func (w *burst) Close() {}

func inUse() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// What was held for a reader that was behind is not, once it was read: watches are idle for long.
func TestWhatWasReadIsForgotten(t *testing.T) {
	const events = 4000 // 16 MB
	last := strconv.Itoa(events)
	for name, leave := range map[string]bool{"by the watch": false, "by the reader, which has left the watch": true} {
		t.Run(name, func(t *testing.T) {
			before := inUse()
			hub := fanout.New[large](fanout.Options{})
			watch := &burst{next: 1, last: events, stopped: make(chan struct{})}
			tap := hub.Adopt(watch, "1")
			require.Eventually(t, func() bool { return hub.ResourceVersion() == last }, time.Minute, time.Millisecond)
			if leave {
				tap.Doubt()
				other := hub.Adopt(&burst{next: events, last: events, stopped: make(chan struct{})}, last)
				defer other.Close()
				<-watch.stopped
			}
			require.Greater(t, inUse()-before, 16<<20)
			for tap.ResourceVersion() != last {
				_, err := tap.Take()
				require.NoError(t, err)
			}
			require.Less(t, inUse()-before, 1<<20)
			tap.Close()
		})
	}
}
