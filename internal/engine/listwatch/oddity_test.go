package listwatch_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/rvinformer/informer/internal/engine/listwatch"
)

func TestOddityOf(t *testing.T) {
	for _, test := range []struct {
		known, listed string
		want          Oddity
	}{
		{"", "", Plain}, {"", "7", Plain}, {"", "0", Plain}, {"", "x", Plain}, {"0", "", Plain},
		{"7", "7", Plain}, {"7", "8", Plain}, {"7", "10", Plain},
		{"7", "6", Backward}, {"10", "9", Backward},
		{"7", "", Unversioned}, {"7", "0", Unversioned}, {"x", "", Unversioned}, {"x", "0", Unversioned},
		{"7", "x", Unordered}, {"7", "07", Unordered},
		{"x", "y", Plain}, {"x", "x", Plain}, {"x", "7", Plain}, // only equality means something
	} {
		require.Equal(t, test.want, OddityOf(test.known, test.listed), "%+v", test)
	}
}

func TestInsistence(t *testing.T) {
	const enough = 2 * time.Minute
	for name, test := range map[string]struct {
		at          []time.Duration
		odd         []Oddity
		empty, want bool
	}{
		"never":                          {},
		"three times, over two minutes":  {at: []time.Duration{0, time.Minute, enough}, want: true},
		"empty, over two minutes":        {at: []time.Duration{0, time.Minute, enough}, empty: true},
		"empty, over an hour":            {at: []time.Duration{0, 9 * time.Minute, 18 * time.Minute, 27 * time.Minute, 36 * time.Minute, 45 * time.Minute, 54 * time.Minute, time.Hour}, empty: true, want: true},
		"more often":                     {at: []time.Duration{0, 6 * time.Second, 30 * time.Second, time.Minute, enough}, want: true},
		"too soon":                       {at: []time.Duration{0, time.Minute, enough - 1}},
		"twice":                          {at: []time.Duration{0, enough}},
		"one list of three readers":      {at: []time.Duration{0, 0, time.Second, enough}},
		"with a long pause":              {at: []time.Duration{0, time.Minute, 12 * time.Minute}},
		"another oddity between":         {at: []time.Duration{0, time.Minute, enough}, odd: []Oddity{Unversioned, Backward, Unversioned}},
		"an ordinary one between":        {at: []time.Duration{0, time.Minute, enough, enough + time.Minute}, odd: []Oddity{Unversioned, Unversioned, Plain, Unversioned}},
		"an ordinary one, and then more": {at: []time.Duration{0, time.Minute, enough, 2 * enough, 2*enough + time.Minute}, odd: []Oddity{Unversioned, Plain, Unversioned, Unversioned, Unversioned}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			var i Insistence
			for n, at := range test.at {
				odd := Unversioned
				if test.odd != nil {
					odd = test.odd[n]
				}
				i = i.Heard(odd, test.empty, time.Unix(1000, 0).Add(at))
			}
			require.Equal(t, test.want, i.IsEnough())
		})
	}
}

func TestQuestionsArePaced(t *testing.T) {
	for _, burst := range []int{1, 5, 16} {
		t.Run(fmt.Sprint(burst, " at once"), func(t *testing.T) {
			var q Questions
			var asked []time.Duration
			for at := time.Duration(0); at < 5*time.Minute; at += 100 * time.Millisecond {
				now := time.Unix(1000, 0).Add(at)
				if !q.MayAsk(now) {
					continue
				}
				q = q.Asked(now, burst)
				for range burst {
					asked = append(asked, at)
				}
			}
			require.LessOrEqual(t, busiest(asked), 50+burst)
			require.GreaterOrEqual(t, len(asked), 150)
		})
	}
}
