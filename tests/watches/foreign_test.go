package watches_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/tests/harness"
)

// A call of another ListerWatcher that hangs is given up after five minutes, whether it obeys its
// context or not.
func TestForeignCallThatHangsIsGivenUp(t *testing.T) {
	for name, test := range map[string]struct {
		obeys, watches bool
		after          time.Duration
	}{
		"list that obeys":     {true, false, 5 * time.Minute},
		"list that does not":  {false, false, 5*time.Minute + 10*time.Second},
		"watch that obeys":    {true, true, 5 * time.Minute},
		"watch that does not": {false, true, 5*time.Minute + 10*time.Second},
	} {
		harness.SynctestRun(t, name, func(t *testing.T) {
			var lists, watches atomic.Int32
			release := make(chan struct{})
			late := watch.NewFake()
			hang := func(ctx context.Context) error {
				if test.obeys {
					<-ctx.Done()
					return ctx.Err()
				}
				<-release
				return nil
			}
			lw := harness.Script{
				List: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
					if lists.Add(1) == 1 && !test.watches {
						return harness.List("9", "", harness.Pod("a/late", "9")), hang(ctx)
					}
					return harness.List("1", "", harness.Pod("a/1", "1")), nil
				},
				Watch: func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
					if watches.Add(1) == 1 && test.watches {
						return late, hang(ctx)
					}
					return watch.NewFake(), nil
				},
			}
			var r harness.Recorder
			var f harness.Failures
			i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lw.LW(), Handler: &r, ErrorHandler: f.Handle})
			stop := harness.Start(i.RunWithContext)
			time.Sleep(test.after - time.Second)
			errs := f.Errors()
			require.Empty(t, errs)
			time.Sleep(time.Minute)
			errs, started := f.All()
			require.Len(t, errs, 1)
			stalled := harness.ErrorAs[*informer.StallError](t, errs[0])
			require.Equal(t, 5*time.Minute, stalled.Silence)
			if !test.obeys {
				require.ErrorContains(t, errs[0], "left behind")
			}
			require.Equal(t, 1, started, "it has gone on")
			require.Equal(t, []string{"add a/1 initial"}, r.Events())
			close(release)
			synctest.Wait()
			require.Equal(t, test.watches && !test.obeys, late.IsStopped())
			stop()
			require.Equal(t, []string{"add a/1 initial"}, r.Events(), "what comes too late does not count")
		})
	}
}

// StallTimeout also bounds a call of another ListerWatcher that takes a context.
func TestForeignCallIsGivenUpAfterStallTimeout(t *testing.T) {
	for _, watches := range []bool{false, true} {
		harness.SynctestRun(t, fmt.Sprint("watch ", watches), func(t *testing.T) {
			var hung atomic.Bool
			hang := func(ctx context.Context) error {
				if !hung.CompareAndSwap(false, true) {
					return nil
				}
				<-ctx.Done()
				return ctx.Err()
			}
			lw := harness.Script{
				List: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
					if !watches {
						if err := hang(ctx); err != nil {
							return nil, err
						}
					}
					return harness.List("1", "", harness.Pod("a/1", "1")), nil
				},
				Watch: func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
					if watches {
						if err := hang(ctx); err != nil {
							return nil, err
						}
					}
					return watch.NewFake(), nil
				},
			}
			var r harness.Recorder
			var f harness.Failures
			i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lw.LW(), Handler: &r, ErrorHandler: f.Handle, StallTimeout: 20 * time.Second})
			defer harness.Start(i.RunWithContext)()
			time.Sleep(19 * time.Second)
			errs := f.Errors()
			require.Empty(t, errs)
			time.Sleep(2 * time.Second)
			errs, _ = f.All()
			require.Len(t, errs, 1)
			stalled := harness.ErrorAs[*informer.StallError](t, errs[0])
			require.Equal(t, 20*time.Second, stalled.Silence)
			time.Sleep(2 * time.Second) // for the backoff
			require.Equal(t, []string{"add a/1 initial"}, r.Events())
		})
	}
}

// A bookmark of another ListerWatcher that is no object is reported and skipped.
func TestForeignBookmarkThatIsNoObjectIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := watch.NewFake()
		lw := harness.Script{
			List: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				return harness.List("1", "", harness.Pod("a/1", "1")), nil
			},
			Watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return events, nil },
		}
		var r harness.Recorder
		var f harness.Failures
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lw.LW(), Handler: &r, ErrorHandler: f.Handle})
		defer harness.Settle(i.RunWithContext)()
		events.Action(watch.Bookmark, &metav1.Status{})
		synctest.Wait()
		require.ErrorContains(t, f.Errors()[0], "bookmark")
	})
}

// withoutContext is a ListerWatcher whose calls take no context, and so cannot be ended.
type withoutContext struct{ takes time.Duration }

func (w withoutContext) List(metav1.ListOptions) (runtime.Object, error) {
	time.Sleep(w.takes)
	return harness.List("1", "", harness.Pod("a/1", "1")), nil
}

func (w withoutContext) Watch(metav1.ListOptions) (watch.Interface, error) {
	return watch.NewFake(), nil
}

// A call that takes no context is not left behind because of StallTimeout: it would go on, and
// another one beside it.
func TestForeignCallWithoutContextMayTakeLongerThanStallTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r harness.Recorder
		var f harness.Failures
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: withoutContext{4 * time.Minute}, Handler: &r, ErrorHandler: f.Handle, StallTimeout: 20 * time.Second})
		defer harness.Start(i.RunWithContext)()
		time.Sleep(4*time.Minute + 10*time.Second)
		require.True(t, i.HasSynced())
		require.Empty(t, f.Errors())
	})
}

// Run does not wait for ever for a call that does not obey its context.
func TestRunLeavesForeignCallBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		lw := harness.Script{List: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			<-release
			return nil, nil
		}}
		var f harness.Failures
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lw.LW(), Handler: &harness.Recorder{}, ErrorHandler: f.Handle})
		stop := harness.Start(i.RunWithContext)
		time.Sleep(time.Second)
		began := time.Now()
		stop()
		require.Equal(t, 10*time.Second, time.Since(began))
		require.ErrorContains(t, f.One(t), "left behind")
		close(release)
	})
}

// Calls that hang for ever do not pile up.
func TestForeignCallsThatHangAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lists, hanging atomic.Int32
		release := make(chan struct{})
		lw := harness.Script{
			List: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				lists.Add(1)
				hanging.Add(1)
				defer hanging.Add(-1)
				<-release
				return harness.List("1", "", harness.Pod("a/1", "1")), nil
			},
			Watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
		}
		var f harness.Failures
		i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lw.LW(), Handler: &harness.Recorder{}, ErrorHandler: f.Handle})
		defer harness.Start(i.RunWithContext)()
		time.Sleep(24 * time.Hour)
		require.EqualValues(t, 4, hanging.Load())
		require.ErrorContains(t, i.Status().LastError, "have not returned")
		close(release)
		time.Sleep(2 * time.Minute)
		require.True(t, i.HasSynced(), "a call is made again")
	})
}
