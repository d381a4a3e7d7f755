package backoff

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"
)

func TestOrDefault(t *testing.T) {
	custom := wait.Backoff{Duration: time.Minute, Steps: 3}
	require.Equal(t, custom, OrDefault(&custom))

	waits := OrDefault(nil)
	for range 5 {
		waits.Step()
	}
	for range 100 { // it stays at the longest pause, and jitters beyond that
		pause := waits.Step()
		require.GreaterOrEqual(t, pause, 25*time.Second)
		require.LessOrEqual(t, pause, 2*Longest)
	}
}

func TestRetryDelayDoubles(t *testing.T) {
	for attempts, least := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond} {
		delay := RetryDelay(attempts)
		require.GreaterOrEqual(t, delay, least)
		require.LessOrEqual(t, delay, least*3/2)
	}
	delay := RetryDelay(1 << 40)
	require.GreaterOrEqual(t, delay, 20*time.Second)
	require.LessOrEqual(t, delay, 30*time.Second)
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		require.NoError(t, Sleep(t.Context(), time.Hour))
		require.Equal(t, time.Hour, time.Since(start))

		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(cause) })
		start = time.Now()
		require.ErrorIs(t, Sleep(ctx, time.Hour), cause)
		require.Equal(t, time.Minute, time.Since(start))
	})
}
