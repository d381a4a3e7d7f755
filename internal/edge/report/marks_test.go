package report

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// reading is a report that reads a version a second, for as long as that; it returns when it had
// read each.
func reading(r *Report, seconds int) (read []time.Time) {
	for v := range seconds {
		r.Contact(time.Now())
		r.Reach(strconv.Itoa(v + 1))
		read = append(read, time.Now())
		time.Sleep(time.Second)
	}
	return read
}

func TestMarksBoundWhenAVersionWasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const day = 24 * 60 * 60
		r := &Report{}
		read := reading(r, day)
		now := time.Now()
		for v, at := range read {
			from, until := r.Read(strconv.Itoa(v + 1))
			if v > 0 {
				require.False(t, from.IsZero(), "version %d", v+1)
				require.True(t, from.Before(at), "version %d", v+1)
			}
			if until.IsZero() {
				until = now
			}
			require.False(t, until.Before(at), "version %d", v+1)
			within := until.Sub(from)
			switch age := now.Sub(at); {
			case v == 0:
			case age < time.Minute:
				require.LessOrEqual(t, within, 2*time.Minute)
			case age < 10*time.Minute:
				require.LessOrEqual(t, within, 13*time.Minute)
			case age < 2*time.Hour:
				require.LessOrEqual(t, within, 3*time.Hour)
			}
		}
		from, until := r.Read("1")
		require.True(t, from.IsZero(), "it was read before the first mark was made, or with it")
		require.Equal(t, read[0], until)
		from, until = r.Read(strconv.Itoa(day + 1))
		require.False(t, from.IsZero(), "it is not read yet")
		require.True(t, until.IsZero())
	})
}

func TestMarksAreForgottenWhereVersionsGoBackOrHaveNoOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Report{}
		reading(r, 1000)
		r.Contact(time.Now())
		r.Reach("7") // of a server that was restored
		from, until := r.Read("500")
		require.Equal(t, time.Now(), from, "it is not read yet, again")
		require.True(t, until.IsZero())
		_, until = r.Read("7")
		require.Equal(t, time.Now(), until)
		time.Sleep(2 * time.Minute)
		r.Contact(time.Now())
		r.Reach("not a number")
		for _, v := range []string{"7", "not a number", "", "99999999999999999999999"} {
			from, until = r.Read(v)
			require.True(t, from.IsZero() && until.IsZero(), v)
		}
	})
}
