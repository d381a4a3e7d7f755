package deltaqueue_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/engine/deltaqueue"
)

// The consumer was not told of the end of an object that it never saw. After a failure, it is only
// told what came then.
func TestUnseenEndIsDroppedAfterAFailure(t *testing.T) {
	for how, fail := range map[string]func(*deltaqueue.Queue, *deltaqueue.Entry){
		"retry":    func(q *deltaqueue.Queue, e *deltaqueue.Entry) { q.Retry(e, time.Second) },
		"postpone": func(q *deltaqueue.Queue, e *deltaqueue.Entry) { q.Postpone([]*deltaqueue.Entry{e}, time.Second, true) },
	} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, _ := newQueue(deltaqueue.Options{})
				put(t, q, delta(cache.Added, "a", "1"), delta(cache.Deleted, "a", "2"), delta(cache.Added, "a", "3"))
				e := take(t, q)
				require.Len(t, e.Deltas, 2)
				e.Unseen()
				fail(q, e)
				e = take(t, q)
				require.Len(t, e.Deltas, 1)
				require.Equal(t, "3", e.Deltas[0].Version.ResourceVersion)
				q.Done(e)
			})
		})
	}
}
