// Package moment has points in time that take eight bytes.
package moment

import "time"

// Moment is a point in time, in nanoseconds of the monotonic clock: what the wall clock is set to
// later changes nothing between two of them. Zero is none. It takes a third of a time.Time.
//
// In a testing/synctest bubble, where times have no reading of the monotonic clock, it is the time
// of the bubble.
type Moment int64

// anchor is when the process began. It is the one time whose moment is that of the wall clock; all
// others are as far from it as the monotonic clock says.
var anchor = time.Now()

// maxSkew is how far the wall clock may be from where it would be without having been set, before
// the time of a moment follows it.
const maxSkew = time.Second

// Now returns the present moment.
func Now() Moment { return Of(time.Now()) }

// Of returns the moment of a time; zero for the zero time. A time without a reading of the
// monotonic clock is taken as the wall clock at the start of the process had it.
func Of(t time.Time) Moment {
	if t.IsZero() {
		return 0
	}
	return Moment(anchor.UnixNano() + int64(t.Sub(anchor)))
}

// Time returns the local time of a moment as the wall clock has it now, with the reading of the
// monotonic clock; the zero time for none.
func (m Moment) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return m.timeAt(time.Now())
}

// timeAt is Time at a present time.
func (m Moment) timeAt(now time.Time) time.Time {
	present := Of(now)
	switch skew := time.Duration(now.UnixNano() - int64(present)); {
	case !isMonotonic(now): // of a bubble
		return time.Unix(0, int64(m))
	case -maxSkew < skew && skew < maxSkew: // the same time whenever it is asked for
		return anchor.Add(time.Duration(m) - time.Duration(anchor.UnixNano()))
	default:
		return now.Add(m.Since(present))
	}
}

// isMonotonic reports whether t has a reading of the monotonic clock, which Round takes away.
func isMonotonic(t time.Time) bool { return t != t.Round(0) }

// Since returns how long m is after an earlier moment.
func (m Moment) Since(earlier Moment) time.Duration { return time.Duration(m - earlier) }
