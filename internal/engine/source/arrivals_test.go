package source

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/internal/leaf/moment"
)

// at is a moment so many milliseconds after the watch was asked for, which is at 1.
func at(ms int64) moment.Moment { return 1 + moment.Moment(ms*int64(time.Millisecond)) }

// Each read is of ten bytes.
func TestArrivalsProve(t *testing.T) {
	const opened = moment.Moment(1)
	type read struct {
		last, began, returned int64
		stood                 bool // the process stood still
	}
	for name, test := range map[string]struct {
		reads    []read
		bookmark bool
		unread   int
		want     moment.Moment
	}{
		"a bookmark after a pause":               {[]read{{0, 0, 60000, false}}, true, 0, at(60000)},
		"an event after a pause":                 {[]read{{0, 0, 1000, false}}, false, 0, at(1000)},
		"an event of a watch that may be behind": {[]read{{0, 0, 999, false}}, false, 0, 0},
		"a bookmark of such a watch":             {[]read{{0, 0, 999, false}}, true, 0, opened},
		"an event that was there":                {[]read{{0, 0, 1000, false}, {1000, 1000, 1000, false}}, false, 0, at(1000)},
		"more had arrived, and is unread":        {[]read{{0, 0, 1000, false}}, false, 1, 0},
		"what is unread came later":              {[]read{{0, 0, 1000, false}, {1000, 1000, 1000, false}}, false, 10, at(1000)},
		"the reader was away":                    {[]read{{0, 0, 1000, false}, {1000, 2000, 2100, false}}, false, 0, 0},
		"a bookmark after that":                  {[]read{{0, 0, 1000, false}, {1000, 2000, 2100, false}}, true, 0, opened},
		"a pause after that":                     {[]read{{0, 0, 1000, false}, {1000, 2000, 3000, false}}, false, 0, at(3000)},
		"the process stood still":                {[]read{{0, 0, 14000, true}}, false, 0, 0},
		"a bookmark that came meanwhile":         {[]read{{0, 0, 14000, true}}, true, 0, opened},
		"what comes behind that":                 {[]read{{0, 0, 1000, false}, {1000, 1000, 15000, true}, {15000, 15000, 15010, false}}, false, 0, 0},
		"a pause behind that":                    {[]read{{0, 0, 14000, true}, {14000, 14000, 15000, false}}, false, 0, at(15000)},
		"a short wait":                           {[]read{{0, 0, 1000, false}, {1000, 1999, 2000, false}}, false, 0, at(2000)},
	} {
		t.Run(name, func(t *testing.T) {
			a := arrivals{opened: opened}
			for _, r := range test.reads {
				a.returned(at(r.last), at(r.began), at(r.returned), 10, false, !r.stood)
			}
			require.Equal(t, test.want, a.proven(test.bookmark, test.unread))
			if test.want > opened {
				require.Zero(t, a.proven(false, 0), "it is told once")
			}
		})
	}
}

// A bookmark shows that the watch has caught up, if it has just arrived, and the end of initial
// events that it has not.
func TestArrivalsCatchUp(t *testing.T) {
	a := arrivals{opened: at(0)}
	a.returned(at(0), at(0), at(10), 10, false, true)
	require.Equal(t, at(0), a.proven(true, 0))
	a.returned(at(10), at(10), at(20), 10, false, true)
	require.Equal(t, at(20), a.proven(false, 0))
	a.behind()
	a.returned(at(20), at(20), at(30), 10, false, true)
	require.Zero(t, a.proven(false, 0))

	a.returned(at(30), at(30), at(14000), 10, false, false)
	a.returned(at(14000), at(14000), at(14010), 10, false, true)
	require.Equal(t, at(0), a.proven(true, 0), "the bookmark may be one from before the process stood still")
	a.returned(at(14010), at(14010), at(14020), 10, false, true)
	require.Zero(t, a.proven(false, 0))
	a.returned(at(14020), at(23990), at(24010), 10, false, true)
	require.Equal(t, at(0), a.proven(true, 0))
	a.returned(at(24010), at(24010), at(24020), 10, false, true)
	require.Equal(t, at(24020), a.proven(false, 0))

	a = arrivals{opened: at(0)}
	a.returned(at(0), at(0), at(0), 10, false, true)
	require.Equal(t, at(0), a.proven(true, 0), "the bookmark was there")
	a.returned(at(0), at(0), at(10), 10, false, true)
	require.Zero(t, a.proven(false, 0))
}
