package source

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/internal/moment"
)

// at is a moment so many milliseconds after the watch was asked for, which is at 1.
func at(ms int64) moment.Moment { return 1 + moment.Moment(ms*int64(time.Millisecond)) }

// Each read is of ten bytes.
func TestArrivalsProve(t *testing.T) {
	const opened = moment.Moment(1)
	type read struct{ last, began, returned int64 }
	for name, test := range map[string]struct {
		reads    []read
		bookmark bool
		unread   int
		want     moment.Moment
	}{
		"a bookmark after a pause":               {[]read{{0, 0, 60000}}, true, 0, at(60000)},
		"an event after a pause":                 {[]read{{0, 0, 1000}}, false, 0, at(1000)},
		"an event of a watch that may be behind": {[]read{{0, 0, 999}}, false, 0, 0},
		"a bookmark of such a watch":             {[]read{{0, 0, 999}}, true, 0, opened},
		"an event that was there":                {[]read{{0, 0, 1000}, {1000, 1000, 1000}}, false, 0, at(1000)},
		"more is unread of what had arrived":     {[]read{{0, 0, 1000}}, false, 1, 0},
		"what is unread came later":              {[]read{{0, 0, 1000}, {1000, 1000, 1000}}, false, 10, at(1000)},
		"the reader was away":                    {[]read{{0, 0, 1000}, {1000, 2000, 2100}}, false, 0, 0},
		"a bookmark after that":                  {[]read{{0, 0, 1000}, {1000, 2000, 2100}}, true, 0, opened},
		"a pause after that":                     {[]read{{0, 0, 1000}, {1000, 2000, 3000}}, false, 0, at(3000)},
		"a short wait":                           {[]read{{0, 0, 1000}, {1000, 1999, 2000}}, false, 0, at(2000)},
	} {
		t.Run(name, func(t *testing.T) {
			a := arrivals{opened: opened}
			for _, r := range test.reads {
				a.returned(at(r.last), at(r.began), at(r.returned), 10)
			}
			require.Equal(t, test.want, a.proven(test.bookmark, test.unread))
			if test.want > opened {
				require.Zero(t, a.proven(false, 0), "it is told once")
			}
		})
	}
}

// A bookmark shows that the watch has caught up, if it has just arrived, and the end of initial events that it has not.
func TestArrivalsCatchUp(t *testing.T) {
	a := arrivals{opened: at(0)}
	a.returned(at(0), at(0), at(10), 10)
	require.Equal(t, at(0), a.proven(true, 0))
	a.returned(at(10), at(10), at(20), 10)
	require.Equal(t, at(20), a.proven(false, 0))
	a.behind()
	a.returned(at(20), at(20), at(30), 10)
	require.Zero(t, a.proven(false, 0))

	a = arrivals{opened: at(0)}
	a.returned(at(0), at(0), at(0), 10)
	require.Equal(t, at(0), a.proven(true, 0), "the bookmark was there")
	a.returned(at(0), at(0), at(10), 10)
	require.Zero(t, a.proven(false, 0))
}
