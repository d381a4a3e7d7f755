package moment

import (
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// set returns a time as it is read after the wall clock was set forward by some seconds: the
// reading of the monotonic clock stays. It relies on how package time lays a time.Time out, and the
// test below checks that it does what it says.
func set(t time.Time, forward time.Duration) time.Time {
	const nanosecondBits = 30 // of the first word, below the seconds
	*(*uint64)(unsafe.Pointer(&t)) += uint64(forward/time.Second) << nanosecondBits
	return t
}

func TestWallClockThatIsSetChangesNoDuration(t *testing.T) {
	before := time.Now()
	for _, jump := range []time.Duration{20 * time.Minute, -time.Hour, 365 * 24 * time.Hour} {
		after := set(before.Add(time.Second), jump)
		require.Equal(t, time.Second+jump, after.Round(0).Sub(before.Round(0)), "the wall clock was set")
		require.Equal(t, time.Second, after.Sub(before), "the monotonic clock goes on")
		require.Equal(t, time.Second, Of(after).Since(Of(before)))

		shown := Of(before).timeAt(after)
		require.Equal(t, time.Second, after.Sub(shown), "what a caller reckons does not know of the jump either")
		require.Equal(t, before.Add(jump).UnixNano(), shown.UnixNano(), "what is shown is by the clock as it is now")
		require.True(t, shown.Equal(Of(before).Time()), "it is the same moment")
	}
}

func TestTimeOfAMomentIsExactAndMonotonic(t *testing.T) {
	now := time.Now()
	shown := Of(now).Time()
	require.True(t, isMonotonic(shown))
	require.True(t, now.Equal(shown))
	require.WithinDuration(t, now.Round(0), shown.Round(0), 10*time.Millisecond)
	require.Equal(t, shown, Of(now).Time(), "each time the same")
	require.Equal(t, Of(now), Of(shown))
	require.True(t, Moment(0).Time().IsZero())
	require.Zero(t, Of(time.Time{}))
	require.Equal(t, now.Round(0).Add(time.Hour).UnixNano(), int64(Of(now.Round(0).Add(time.Hour))), "a time without a monotonic clock")
}

func TestMomentOfABubbleIsItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := Now()
		require.Equal(t, time.Now(), began.Time())
		require.Equal(t, time.Now().UnixNano(), int64(began))
		time.Sleep(time.Hour)
		require.Equal(t, time.Hour, Now().Since(began))
	})
}
