package controller

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// delayed is a work queue with keys that come to it later. Client-go's own has a
// goroutine without an owner that waits for it, and brings a key once more that has come
// otherwise since.
type delayed struct {
	workqueue.TypedInterface[string]

	mu     sync.Mutex
	closed bool
	later  map[string]*arrival
	firing sync.WaitGroup
}

// arrival is a key that is to come.
type arrival struct{ timer *time.Timer }

var _ workqueue.TypedDelayingInterface[string] = &delayed{}

func newDelayed(name string) *delayed {
	return &delayed{
		TypedInterface: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Name: name}),
		later:          map[string]*arrival{},
	}
}

// AddAfter adds key after a delay, unless it is got before.
func (q *delayed) AddAfter(key string, delay time.Duration) {
	if delay <= 0 {
		q.Add(key)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.cancelLocked(key)
	q.firing.Add(1)
	a := &arrival{}
	a.timer = time.AfterFunc(delay, func() {
		defer q.firing.Done()
		q.arrive(key, a)
	})
	q.later[key] = a
}

func (q *delayed) arrive(key string, a *arrival) {
	q.mu.Lock()
	if q.later[key] == a {
		delete(q.later, key)
	}
	q.mu.Unlock()
	q.Add(key)
}

// Get takes a key, with what was to come for it later.
func (q *delayed) Get() (key string, shutdown bool) {
	key, shutdown = q.TypedInterface.Get()
	if !shutdown {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.cancelLocked(key)
	}
	return key, shutdown
}

func (q *delayed) cancelLocked(key string) {
	a, ok := q.later[key]
	if !ok {
		return
	}
	delete(q.later, key)
	if a.timer.Stop() {
		q.firing.Done()
	}
}

// ShutDown drops what was to come later; what is in the queue can still be got.
func (q *delayed) ShutDown() {
	q.mu.Lock()
	q.closed = true
	for key := range q.later {
		q.cancelLocked(key)
	}
	q.mu.Unlock()
	q.firing.Wait()
	q.TypedInterface.ShutDown()
}

// ShutDownWithDrain does the same, and waits until what is in the queue is done.
func (q *delayed) ShutDownWithDrain() {
	q.ShutDown()
	q.TypedInterface.ShutDownWithDrain()
}
