// Package moment has points in time that take eight bytes.
package moment

import "time"

// Moment is a point in time of the wall clock, in nanoseconds since 1970. Zero is none. It takes a third of a time.Time, because it
// has no zone and no reading of the monotonic clock.
type Moment int64

// Now returns the present moment.
func Now() Moment { return Of(time.Now()) }

// Of returns the moment of a time; zero for the zero time.
func Of(t time.Time) Moment {
	if t.IsZero() {
		return 0
	}
	return Moment(t.UnixNano())
}

// Time returns the local time of a moment; the zero time for none.
func (m Moment) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(m))
}

// Since returns how long m is after an earlier moment.
func (m Moment) Since(earlier Moment) time.Duration { return time.Duration(m - earlier) }
