package compat_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/tests/harness"
)

// What client-go's options of a reflector say is done. A clock that a test controls is refused.
func TestReflectorHonoursTheOptionsOfClientGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []time.Time
		var timeouts []int64
		lw := &harness.Tap{
			OnList: func(_ context.Context, n int, _ metav1.ListOptions) (runtime.Object, error) {
				asked = append(asked, time.Now())
				if n <= 3 {
					return nil, errors.New("refused")
				}
				return harness.List("5", "", harness.Pod("a/1", "2")), nil
			},
			OnWatch: harness.Watches(harness.Open()),
		}
		watched := lw.OnWatch
		lw.OnWatch = func(ctx context.Context, n int, opts metav1.ListOptions) (watch.Interface, error) {
			timeouts = append(timeouts, *opts.TimeoutSeconds)
			return watched(ctx, n, opts)
		}
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
		var j harness.Journal
		r := informer.NewReflectorWithOptions(lw, &unstructured.Unstructured{}, &j, cache.ReflectorOptions{
			Logger:          &logger,
			Name:            "some-name",
			TypeDescription: "some-type",
			ResyncPeriod:    time.Minute,
			MinWatchTimeout: time.Hour,
			Clock:           clock.RealClock{},
			Backoff:         &wait.Backoff{Duration: 7 * time.Second, Factor: 1, Steps: 100},
		})
		require.Equal(t, "some-name", r.Name())
		begin := time.Now()
		stop := harness.Start(r.RunWithContext)
		time.Sleep(150 * time.Second)
		stop()
		require.Equal(t, []time.Time{begin, begin.Add(7 * time.Second), begin.Add(14 * time.Second), begin.Add(21 * time.Second)}, asked)
		require.Equal(t, []string{"replace 5 a/1", "resync", "resync"}, j.Events())
		require.GreaterOrEqual(t, timeouts[0], int64(3600))
		logs := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
		require.Contains(t, logs, "some-name")
		require.Contains(t, logs, "some-type")

		require.Contains(t, informer.NewReflectorWithOptions(lw, nil, &j, informer.ReflectorOptions{}).Name(), "reflector_options_test.go")
		require.PanicsWithValue(t, `informer: reflector "n": a *testing.FakeClock is not supported as Clock; use testing/synctest in tests`, func() {
			informer.NewReflectorWithOptions(lw, nil, &j, informer.ReflectorOptions{Name: "n", Clock: clocktesting.NewFakeClock(begin)})
		})
	})
}
