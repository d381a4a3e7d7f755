package compat_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/tests/harness"
)

func TestRetryOnErrorTriesUntilSuccess(t *testing.T) {
	forQueues(t, func(t *testing.T, known cache.Store, queue cache.Queue) {
		var f harness.Failures
		var times []time.Time
		c := informer.NewNamedController("test", &informer.Config{
			Queue: queue, RetryOnError: true, WatchErrorHandler: f.Handle,
			ListerWatcher: &harness.Tap{OnList: harness.Lists(harness.List("5", "")), OnWatch: harness.Watches(harness.Open(watch.Event{Type: watch.Added, Object: harness.Pod("a/bad", "6")}, watch.Event{Type: watch.Added, Object: harness.Pod("a/good", "7")}))},
			Process: func(obj interface{}, _ bool) error {
				if slices.Contains(keysOf(obj), "a/bad") {
					times = append(times, time.Now())
					if len(times) <= 11 {
						return errors.New("failed")
					}
				}
				return harness.Apply(known, obj)
			},
		})
		stop := harness.Settle(c.RunWithContext)
		defer stop()
		require.Equal(t, map[string]string{"a/good": "7"}, harness.Contents(known), "the others do not wait")
		harness.Sleep(4 * time.Minute)
		require.Equal(t, map[string]string{"a/bad": "6", "a/good": "7"}, harness.Contents(known))
		stop()
		require.Len(t, times, 12)
		require.Len(t, f.Errors(), 11)
		least := 100 * time.Millisecond
		for i := 1; i < len(times); i++ {
			pause := times[i].Sub(times[i-1])
			require.GreaterOrEqual(t, pause, least, "attempt %d", i)
			require.LessOrEqual(t, pause, least*3/2, "attempt %d", i)
			least = min(2*least, 20*time.Second)
		}
	})
}

func TestRetryOnErrorInTheInitialList(t *testing.T) {
	forQueues(t, func(t *testing.T, known cache.Store, queue cache.Queue) {
		var f harness.Failures
		fails := 3
		c := informer.NewNamedController("test", &informer.Config{
			Queue: queue, RetryOnError: true, WatchErrorHandler: f.Handle,
			ListerWatcher: &harness.Tap{OnList: harness.Lists(harness.List("5", "", harness.Pod("a/1", "2"), harness.Pod("a/2", "3"))), OnWatch: harness.Watches(harness.Open())},
			Process: func(obj interface{}, _ bool) error {
				if fails--; fails >= 0 {
					return errors.New("failed")
				}
				return harness.Apply(known, obj)
			},
		})
		defer harness.Start(c.RunWithContext)()
		harness.Sleep(time.Minute)
		require.Equal(t, map[string]string{"a/1": "2", "a/2": "3"}, harness.Contents(known))
		require.True(t, c.HasSynced())
	})
}

func TestRetryOnErrorTriesTheNewestDelta(t *testing.T) {
	forQueues(t, func(t *testing.T, known cache.Store, queue cache.Queue) {
		var f harness.Failures
		var fails atomic.Bool
		w := harness.NewSent()
		var seen []string
		c := informer.NewNamedController("test", &informer.Config{
			Queue: queue, RetryOnError: true, WatchErrorHandler: f.Handle,
			ListerWatcher: &harness.Tap{OnList: harness.Lists(harness.List("5", "")), OnWatch: w.Answer},
			Process: func(obj interface{}, _ bool) error {
				if fails.Load() {
					return errors.New("failed")
				}
				for _, d := range obj.(cache.Deltas) {
					if u, ok := d.Object.(metav1.Object); ok {
						seen = append(seen, u.GetResourceVersion())
					}
				}
				return harness.Apply(known, obj)
			},
		})
		stop := harness.Settle(c.RunWithContext)
		defer stop()
		fails.Store(true)
		w.Add(harness.Pod("a/1", "6"))
		time.Sleep(20 * time.Second) // the backoff is long now
		w.Modify(harness.Pod("a/1", "7"))
		synctest.Wait()
		fails.Store(false)
		before := time.Now()
		w.Modify(harness.Pod("a/1", "8"))
		synctest.Wait()
		require.Equal(t, map[string]string{"a/1": "8"}, harness.Contents(known), "what is new is tried at once")
		require.Equal(t, before, time.Now())
		time.Sleep(5 * time.Minute)
		stop()
		require.Equal(t, map[string]string{"a/1": "8"}, harness.Contents(known))
		require.Equal(t, []string{"8"}, slices.Compact(seen), "nothing older is tried")
	})
}

func TestRetryOnErrorLosesNoDeletion(t *testing.T) {
	for name, c := range map[string]struct {
		then []watch.Event
		want map[string]string
	}{
		"after no success": {
			then: []watch.Event{{Type: watch.Deleted, Object: harness.WithUID(harness.Pod("a/1", "7"), "x")}},
			want: map[string]string{},
		},
		"and what came after it": {
			then: []watch.Event{{Type: watch.Deleted, Object: harness.WithUID(harness.Pod("a/1", "7"), "x")}, {Type: watch.Added, Object: harness.WithUID(harness.Pod("a/1", "8"), "y")}},
			want: map[string]string{"a/1": "8"},
		},
		"nor a second one": {
			then: []watch.Event{
				{Type: watch.Deleted, Object: harness.WithUID(harness.Pod("a/1", "7"), "x")}, {Type: watch.Added, Object: harness.WithUID(harness.Pod("a/1", "8"), "y")},
				{Type: watch.Deleted, Object: harness.WithUID(harness.Pod("a/1", "9"), "y")},
			},
			want: map[string]string{},
		},
	} {
		for _, stored := range []bool{false, true} {
			for _, pause := range []time.Duration{0, time.Second} {
				t.Run(name, func(t *testing.T) {
					forQueues(t, func(t *testing.T, known cache.Store, queue cache.Queue) {
						var f harness.Failures
						var fails atomic.Bool
						w := harness.NewSent()
						initial := harness.List("5", "")
						if stored {
							initial = harness.List("5", "", harness.WithUID(harness.Pod("a/1", "4"), "x"))
						}
						deletions := 0
						con := informer.NewNamedController("test", &informer.Config{
							Queue: queue, RetryOnError: true, WatchErrorHandler: f.Handle,
							ListerWatcher: &harness.Tap{OnList: harness.Lists(initial), OnWatch: w.Answer},
							Process: func(obj interface{}, _ bool) error {
								if fails.Load() {
									return errors.New("failed")
								}
								for _, d := range obj.(cache.Deltas) {
									if d.Type == cache.Deleted {
										deletions++
									}
								}
								return harness.Apply(known, obj)
							},
						})
						stop := harness.Settle(con.RunWithContext)
						defer stop()
						fails.Store(true)
						w.Modify(harness.WithUID(harness.Pod("a/1", "6"), "x"))
						time.Sleep(pause)
						for _, e := range c.then {
							w.Action(e.Type, e.Object)
							time.Sleep(pause)
						}
						synctest.Wait()
						fails.Store(false)
						time.Sleep(5 * time.Minute)
						stop()
						require.Equal(t, c.want, harness.Contents(known))
						require.Positive(t, deletions)
					})
				})
			}
		}
	}
}

// A deletion that only a list finds reaches what failed before the list.
func TestRetryOnErrorLosesNoDeletionThatAListFinds(t *testing.T) {
	forQueues(t, func(t *testing.T, known cache.Store, queue cache.Queue) {
		var f harness.Failures
		var fails atomic.Bool
		fails.Store(true)
		lw := &harness.Tap{OnList: harness.Lists(harness.List("5", ""), harness.List("9", "", harness.Pod("a/2", "8")))}
		lw.OnWatch = func(_ context.Context, n int, _ metav1.ListOptions) (watch.Interface, error) {
			if n > 1 {
				return harness.Stream(false), nil
			}
			w := harness.NewSent()
			go func() {
				defer w.Stop()
				w.Add(harness.Pod("a/1", "6"))
				time.Sleep(time.Second)
				w.Error(harness.Failing(harness.Expired()).Object)
			}()
			return w.FakeWatcher, nil
		}
		c := informer.NewNamedController("test", &informer.Config{
			Queue: queue, RetryOnError: true, WatchErrorHandler: f.Handle, ListerWatcher: lw,
			Process: func(obj interface{}, _ bool) error {
				if fails.Load() && slices.Contains(keysOf(obj), "a/1") {
					return errors.New("failed")
				}
				return harness.Apply(known, obj)
			},
		})
		stop := harness.Start(c.RunWithContext)
		defer stop()
		time.Sleep(10 * time.Second)
		fails.Store(false)
		time.Sleep(5 * time.Minute)
		stop()
		require.Equal(t, map[string]string{"a/2": "8"}, harness.Contents(known))
	})
}

// As above, where the call fails while the list is read that does not show the
// object any more.
func TestRetryOnErrorKeepsNoPhantomOfACallThatFailsDuringAList(t *testing.T) {
	forQueues(t, func(t *testing.T, known cache.Store, queue cache.Queue) {
		var f harness.Failures
		entered, release := make(chan struct{}), make(chan struct{})
		first := true
		lw := &harness.Tap{}
		lw.OnList = func(_ context.Context, n int, _ metav1.ListOptions) (runtime.Object, error) {
			if n == 1 {
				return harness.List("5", ""), nil
			}
			close(release)
			time.Sleep(time.Millisecond) // the call fails now
			return harness.List("9", "", harness.Pod("a/2", "8")), nil
		}
		lw.OnWatch = func(_ context.Context, n int, _ metav1.ListOptions) (watch.Interface, error) {
			if n > 1 {
				return harness.Stream(false), nil
			}
			w := harness.NewSent()
			go func() {
				defer w.Stop()
				w.Add(harness.Pod("a/1", "6"))
				<-entered
				w.Error(harness.Failing(harness.Expired()).Object)
			}()
			return w.FakeWatcher, nil
		}
		if queue != nil {
			queue = unblocking{queue}
		}
		c := informer.NewNamedController("test", &informer.Config{
			Queue: queue, RetryOnError: true, WatchErrorHandler: f.Handle, ListerWatcher: lw,
			Process: func(obj interface{}, _ bool) error {
				if first && slices.Contains(keysOf(obj), "a/1") {
					first = false
					close(entered)
					<-release
					return errors.New("failed")
				}
				return harness.Apply(known, obj)
			},
		})
		stop := harness.Start(c.RunWithContext)
		defer stop()
		time.Sleep(5 * time.Minute)
		stop()
		require.Equal(t, map[string]string{"a/2": "8"}, harness.Contents(known))
	})
}

// unblocking is a queue whose HasSynced does not wait for the call of Process
// that is under way, as is that of a queue that pops without a lock.
type unblocking struct{ cache.Queue }

func (q unblocking) HasSynced() bool { return cache.IsDone(q.HasSyncedChecker()) }

// A list that was processed is newer than what failed before it.
func TestRetryOnErrorTriesNothingOlderThanAList(t *testing.T) {
	forQueues(t, func(t *testing.T, known cache.Store, queue cache.Queue) {
		var f harness.Failures
		lw := &harness.Tap{OnList: harness.Lists(harness.List("5", "", harness.Pod("a/1", "4")), harness.List("9", "", harness.Pod("a/1", "8")))}
		lw.OnWatch = harness.Watches(harness.Broken(harness.Expired(), watch.Event{Type: watch.Modified, Object: harness.Pod("a/1", "6")}), harness.Open())
		c := informer.NewNamedController("test", &informer.Config{
			Queue: queue, RetryOnError: true, WatchErrorHandler: f.Handle, ListerWatcher: lw,
			Process: func() func(obj interface{}, _ bool) error {
				first := true
				return func(obj interface{}, _ bool) error {
					d := obj.(cache.Deltas).Newest()
					if u, ok := d.Object.(metav1.Object); ok && first && u.GetResourceVersion() == "6" {
						first = false
						return errors.New("failed")
					}
					return harness.Apply(known, obj)
				}
			}(),
		})
		stop := harness.Start(c.RunWithContext)
		defer stop()
		time.Sleep(5 * time.Minute)
		stop()
		require.Equal(t, map[string]string{"a/1": "8"}, harness.Contents(known))
	})
}

// A list that shows an object, but not readably, deletes nothing that failed before.
func TestRetryOnErrorKeepsWhatAListShowsUnreadably(t *testing.T) {
	forQueues(t, func(t *testing.T, known cache.Store, queue cache.Queue) {
		var f harness.Failures
		var fails atomic.Bool
		fails.Store(true)
		stranger := harness.Object(harness.Widgets, "a/1", "")
		stranger.SetResourceVersion("8")
		w := harness.NewSent()
		lw := &harness.Tap{OnList: harness.Lists(harness.List("5", ""), harness.List("9", "", stranger))}
		lw.OnWatch = harness.Watches(func() (watch.Interface, error) { return w.FakeWatcher, nil }, harness.Open())
		c := informer.NewNamedController("test", &informer.Config{
			Queue: queue, RetryOnError: true, WatchErrorHandler: f.Handle, ListerWatcher: lw, ObjectType: harness.Object(harness.Pods, "a/0", ""),
			Process: func(obj interface{}, _ bool) error {
				if fails.Load() && slices.Contains(keysOf(obj), "a/1") {
					return errors.New("failed")
				}
				return harness.Apply(known, obj)
			},
		})
		stop := harness.Settle(c.RunWithContext)
		defer stop()
		w.Add(harness.Pod("a/1", "6"))
		time.Sleep(10 * time.Second) // it has failed
		w.Error(harness.Failing(harness.Expired()).Object)
		w.Stop()
		time.Sleep(10 * time.Second)
		fails.Store(false)
		time.Sleep(5 * time.Minute)
		stop()
		require.Len(t, lw.Requests(), 4, "the second list has shown it")
		require.Equal(t, map[string]string{"a/1": "6"}, harness.Contents(known))
	})
}

// Each try of a call says what the first one said of the initial list.
func TestRetryOnErrorSaysWhatIsInTheInitialList(t *testing.T) {
	forQueues(t, func(t *testing.T, known cache.Store, queue cache.Queue) {
		var f harness.Failures
		w := harness.NewSent()
		var calls []string
		c := informer.NewNamedController("test", &informer.Config{
			Queue: queue, RetryOnError: true, WatchErrorHandler: f.Handle,
			ListerWatcher: &harness.Tap{OnList: harness.Lists(harness.List("5", "", harness.Pod("a/listed", "2"))), OnWatch: w.Answer},
			Process: func(obj interface{}, isInInitialList bool) error {
				for _, key := range keysOf(obj) {
					calls = append(calls, fmt.Sprint(key, " ", isInInitialList))
					if len(calls)%2 == 1 {
						return errors.New("failed")
					}
				}
				return harness.Apply(known, obj)
			},
		})
		stop := harness.Start(c.RunWithContext)
		defer stop()
		time.Sleep(time.Minute)
		w.Add(harness.Pod("a/watched", "6"))
		time.Sleep(time.Minute)
		stop()
		require.Equal(t, []string{"a/listed true", "a/listed true", "a/watched false", "a/watched false"}, calls)
	})
}

func TestStopEndsTheRetries(t *testing.T) {
	forQueues(t, func(t *testing.T, known cache.Store, queue cache.Queue) {
		var f harness.Failures
		c := informer.NewNamedController("test", &informer.Config{
			Queue: queue, RetryOnError: true, WatchErrorHandler: f.Handle,
			ListerWatcher: &harness.Tap{OnList: harness.Lists(harness.List("5", "", harness.Pod("a/1", "2"))), OnWatch: harness.Watches(harness.Open(watch.Event{Type: watch.Added, Object: harness.Pod("a/2", "6")}))},
			Process:       func(interface{}, bool) error { return errors.New("failed") },
		})
		stop := harness.Start(c.RunWithContext)
		defer stop()
		time.Sleep(time.Minute)
		before := time.Now()
		stop()
		require.Equal(t, before, time.Now())
	})
}
