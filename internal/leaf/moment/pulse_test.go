package moment

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPulseNoticesPauses(t *testing.T) {
	var p pulse
	start := time.Now()
	at := func(after time.Duration) time.Time { return start.Add(after) }
	ran := func(from, to time.Duration) bool { return p.ran(Of(at(from)), at(to)) }
	p.enter(start)
	p.timer.Stop() // the beats are those of the test
	beat := func(after time.Duration) {
		p.beat(at(after))
		p.timer.Stop()
	}

	require.True(t, ran(0, 900*time.Millisecond))
	beat(500 * time.Millisecond)
	beat(1000 * time.Millisecond)
	require.True(t, ran(0, 1900*time.Millisecond))
	require.False(t, ran(0, 15*time.Second), "what runs first after a pause may come before the beat")
	beat(15 * time.Second)
	require.False(t, ran(0, 15*time.Second))
	require.False(t, ran(14*time.Second, 15*time.Second))
	require.True(t, ran(15*time.Second, 15*time.Second))
	beat(15500 * time.Millisecond)
	require.False(t, ran(14*time.Second, 16*time.Second))
	require.True(t, ran(15100*time.Millisecond, 16*time.Second))

	p.leave()
	p.enter(at(time.Hour))
	p.timer.Stop()
	require.True(t, ran(time.Hour, time.Hour), "nobody has asked for the pulse in between")
	p.leave()
}

// A machine that was migrated finds that its wall clock has gone on alone.
func TestPulseNoticesPauseOfAllButTheWallClock(t *testing.T) {
	var p pulse
	now := time.Now()
	p.enter(now)
	p.timer.Stop()
	p.wall = p.wall.Add(-14 * time.Second)
	now = now.Add(500 * time.Millisecond)
	require.False(t, p.ran(Of(now), now), "it may be noticed before the beat")
	p.beat(now)
	p.timer.Stop()
	require.False(t, p.ran(Of(now)-1, now))
	require.True(t, p.ran(Of(now), now))
	p.leave()
}

func TestPulseOfThisProcess(t *testing.T) {
	leave := Attend()
	require.True(t, Ran(Now()))
	leave()
	leave() // once is enough
	require.Zero(t, process.users)
	synctest.Test(t, func(t *testing.T) {
		defer Attend()()
		time.Sleep(time.Hour)
		require.True(t, Ran(Now()-Moment(time.Hour)))
		require.Zero(t, process.users)
	})
}
