package server

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// verdict is what an event may do.
type verdict struct {
	waits bool
	again time.Duration
	err   error
}

func TestStandingAfterEvent(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	in := now.Add
	refused, timeout := errors.New("refused"), errors.New("timeout")
	const long = time.Hour

	type event func(standing) (standing, verdict)
	follow := func(next func(standing) standing) event {
		return func(s standing) (standing, verdict) { return next(s), verdict{} }
	}
	answered := follow(func(s standing) standing { return s.answered(now, false) })
	questionAnswered := follow(func(s standing) standing { return s.answered(now, true) })
	noAnswer := func(how symptom, retryAfter time.Duration) event {
		return follow(func(s standing) standing { return s.unanswered(now, timeout, how, retryAfter) })
	}
	failed := follow(func(s standing) standing { return s.failed(now, refused) })
	leaving := follow(func(s standing) standing { return s.leaving(now) })
	connecting := func(s standing) (standing, verdict) {
		next, err := s.connecting(now)
		return next, verdict{err: err}
	}
	asking := func(s standing) (standing, verdict) {
		next, err := s.asking(now)
		return next, verdict{err: err}
	}
	joining := func(answered, silent bool) event {
		return func(s standing) (standing, verdict) {
			next, waits := s.joining(now, answered, silent)
			return next, verdict{waits: waits}
		}
	}
	trying := func(tried bool) event {
		return func(s standing) (standing, verdict) {
			next, again := s.trying(now, tried)
			return next, verdict{again: again}
		}
	}

	gone := func(how symptom, since time.Duration) away {
		return away{since: ago(since), symptom: how, reason: timeout, told: timeout, toldAt: ago(since)}
	}
	begins := away{since: now, symptom: unconnected, reason: refused, told: refused, toldAt: now}
	lapses := away{since: now, symptom: unanswered, reason: timeout, told: timeout, toldAt: now}
	for name, test := range map[string]struct {
		state standing
		event event
		want  standing
		may   verdict
	}{
		"there, answered":                    {standing{condition: there{}}, answered, standing{condition: there{}, news: 1, returns: 1}, verdict{}},
		"suspected, answered":                {standing{condition: suspected{}, waiting: 1, failure: refused}, answered, standing{condition: there{}, waiting: 1, news: 1, returns: 1}, verdict{}},
		"suspected, question answered":       {standing{condition: suspected{}, waiting: 1}, questionAnswered, standing{condition: there{}, waiting: 1, news: 1, returns: 1, next: in(askAgain)}, verdict{}},
		"away, question answered":            {standing{condition: gone(unanswered, outageLeast), waiting: 1}, questionAnswered, standing{condition: there{}, spread: spreadLeast, waiting: 1, news: 1, returns: 1, next: in(askAgain)}, verdict{}},
		"away, question answered soon":       {standing{condition: gone(unanswered, outageLeast-1), waiting: 1}, questionAnswered, standing{condition: there{}, waiting: 1, news: 1, returns: 1, next: in(askAgain)}, verdict{}},
		"away, question answered, many":      {standing{condition: gone(unanswered, long), waiting: 1000}, questionAnswered, standing{condition: there{}, spread: 2500 * time.Millisecond, waiting: 1000, news: 1, returns: 1, next: in(askAgain)}, verdict{}},
		"away, question answered, too many":  {standing{condition: gone(unanswered, long), waiting: 10000}, questionAnswered, standing{condition: there{}, spread: spreadMost, waiting: 10000, news: 1, returns: 1, next: in(askAgain)}, verdict{}},
		"away, other answered":               {standing{condition: gone(unanswered, long), waiting: 1}, answered, standing{condition: gone(contested, long), waiting: 1}, verdict{}},
		"away, other answered after failure": {standing{condition: gone(unanswered, long), waiting: 1, failure: refused}, answered, standing{condition: gone(contested, long), waiting: 1}, verdict{}},
		"away, other answered, none waits":   {standing{condition: gone(unanswered, long)}, answered, standing{condition: there{}, spread: spreadLeast, news: 1, returns: 1}, verdict{}},
		"unconnected, other answered":        {standing{condition: gone(unconnected, long), waiting: 1, failure: refused}, answered, standing{condition: there{}, spread: spreadLeast, waiting: 1, news: 1, returns: 1}, verdict{}},
		"contested, question answered":       {standing{condition: gone(contested, long), waiting: 1}, questionAnswered, standing{condition: there{}, spread: spreadLeast, waiting: 1, news: 1, returns: 1, next: in(askAgain)}, verdict{}},
		"contested, not answered":            {standing{condition: gone(contested, long), waiting: 1}, noAnswer(unanswered, 0), standing{condition: there{}, waiting: 1, news: 1, returns: 1}, verdict{}},
		"contested, no connection":           {standing{condition: gone(contested, long), waiting: 1}, failed, standing{condition: gone(contested, long), waiting: 1, failure: refused}, verdict{}},
		"contested, no connection twice":     {standing{condition: gone(contested, long), waiting: 1, newest: now, failure: refused}, failed, standing{condition: away{since: ago(long), symptom: unconnected, reason: refused, told: refused, toldAt: now}, waiting: 1, news: 1, newest: now, next: in(attemptEvery), failure: refused}, verdict{}},
		"suspected, not answered":            {standing{condition: suspected{}, waiting: 1, newest: ago(2 * time.Second)}, noAnswer(unanswered, 0), standing{condition: lapses, waiting: 1, news: 1, newest: ago(2 * time.Second), next: now}, verdict{}},
		"suspected, told to wait":            {standing{condition: suspected{}, waiting: 1, newest: now}, noAnswer(unanswered, long), standing{condition: lapses, waiting: 1, news: 1, newest: now, next: in(long)}, verdict{}},
		"suspected, told to wait shortly":    {standing{condition: suspected{}, waiting: 1, newest: now}, noAnswer(unanswered, 1), standing{condition: lapses, waiting: 1, news: 1, newest: now, next: in(attemptEvery)}, verdict{}},
		"away, not answered, as before":      {standing{condition: gone(unanswered, long), newest: ago(long)}, noAnswer(unconnected, 0), standing{condition: gone(unconnected, long), newest: ago(long), next: now}, verdict{}},
		"there, no connection":               {standing{condition: there{}, newest: ago(1), former: ago(long)}, failed, standing{condition: there{}, newest: now, former: ago(long), failure: refused}, verdict{}},
		"there, no connection, of two":       {standing{condition: there{}, newest: ago(1), former: ago(2)}, failed, standing{condition: there{}, newest: now, former: now, failure: refused}, verdict{}},
		"there, no connection after long":    {standing{condition: there{}, newest: ago(attemptEvery), former: ago(long)}, failed, standing{condition: there{}, newest: ago(attemptEvery), former: ago(long), failure: refused}, verdict{}},
		"there, no connection twice":         {standing{condition: there{}, newest: ago(1), failure: timeout}, failed, standing{condition: begins, news: 1, newest: now, next: in(attemptEvery), failure: refused}, verdict{}},
		"away, no connection, other reason":  {standing{condition: gone(unanswered, tellEvery), newest: now, failure: timeout}, failed, standing{condition: away{since: ago(tellEvery), symptom: unconnected, reason: refused, told: refused, toldAt: now}, news: 1, newest: now, next: in(attemptEvery), failure: refused}, verdict{}},
		"away, no connection, told lately":   {standing{condition: gone(unanswered, tellEvery-1), newest: now, failure: timeout}, failed, standing{condition: away{since: ago(tellEvery - 1), symptom: unconnected, reason: refused, told: timeout, toldAt: ago(tellEvery - 1)}, newest: now, next: in(attemptEvery), failure: refused}, verdict{}},
		"there, connecting":                  {standing{condition: there{}, newest: ago(1), former: ago(2), next: in(long)}, connecting, standing{condition: there{}, newest: now, former: ago(1), next: in(long)}, verdict{}},
		"failed once, connecting":            {standing{condition: there{}, newest: ago(1), former: ago(attemptEvery), failure: refused}, connecting, standing{condition: there{}, newest: now, former: ago(1), failure: refused}, verdict{}},
		"failed once, connecting, of three":  {standing{condition: there{}, newest: ago(1), former: ago(2), failure: refused}, connecting, standing{condition: there{}, newest: ago(1), former: ago(2), failure: refused, next: in(attemptEvery - 2)}, verdict{err: refused}},
		"away, connecting":                   {standing{condition: gone(unanswered, long), next: in(long)}, connecting, standing{condition: gone(unanswered, long), newest: now, next: in(attemptEvery)}, verdict{}},
		"away, connecting, of three":         {standing{condition: gone(unanswered, long), newest: ago(1), former: ago(2), next: in(long)}, connecting, standing{condition: gone(unanswered, long), newest: now, former: ago(1), next: in(attemptEvery)}, verdict{}},
		"away, connecting, failed once":      {standing{condition: gone(unanswered, long), newest: ago(1), former: ago(2), next: in(long), failure: refused}, connecting, standing{condition: gone(unanswered, long), newest: ago(1), former: ago(2), next: in(long), failure: refused}, verdict{err: refused}},
		"unconnected, connecting":            {standing{condition: gone(unconnected, long), next: in(1), failure: refused}, connecting, standing{condition: gone(unconnected, long), next: in(1), failure: refused}, verdict{err: refused}},
		"unconnected, connecting, no reason": {standing{condition: gone(unconnected, long), next: in(1)}, connecting, standing{condition: gone(unconnected, long), next: in(1)}, verdict{err: timeout}},
		"unconnected, connecting in time":    {standing{condition: gone(unconnected, long), next: now}, connecting, standing{condition: gone(unconnected, long), newest: now, next: in(attemptEvery)}, verdict{}},
		"suspected, asking":                  {standing{condition: suspected{}, newest: ago(1), former: ago(2), next: now}, asking, standing{condition: suspected{}, newest: now, former: ago(1), next: in(attemptEvery)}, verdict{}},
		"suspected, asking too early":        {standing{condition: suspected{}, next: in(1)}, asking, standing{condition: suspected{}, next: in(1)}, verdict{err: errEarly}},
		"failed once, asking, of three":      {standing{condition: suspected{}, newest: ago(1), former: ago(2), failure: refused}, asking, standing{condition: suspected{}, newest: ago(1), former: ago(2), failure: refused, next: in(attemptEvery - 2)}, verdict{err: refused}},
		"away, asking, of three":             {standing{condition: gone(unanswered, long), newest: ago(1), former: ago(2)}, asking, standing{condition: gone(unanswered, long), newest: ago(1), former: ago(2), next: in(attemptEvery - 2)}, verdict{err: timeout}},
		"there, joining after answer":        {standing{condition: there{}}, joining(true, true), standing{condition: suspected{}}, verdict{}},
		"there, joining among answers":       {standing{condition: there{}}, joining(false, false), standing{condition: suspected{}}, verdict{}},
		"there, joining in silence":          {standing{condition: there{}}, joining(false, true), standing{condition: suspected{due: true}, waiting: 1, next: in(askAfter)}, verdict{waits: true}},
		"suspected, joining":                 {standing{condition: suspected{}, next: in(long)}, joining(true, false), standing{condition: suspected{due: true}, waiting: 1, next: in(long)}, verdict{waits: true}},
		"suspected, joining again":           {standing{condition: suspected{due: true}, next: ago(1)}, joining(true, false), standing{condition: suspected{due: true}, waiting: 1, next: ago(1)}, verdict{waits: true}},
		"away, joining alone":                {standing{condition: gone(unanswered, long), next: ago(1)}, joining(true, false), standing{condition: gone(unanswered, long), waiting: 1, next: ago(1)}, verdict{waits: true}},
		"away, joining others":               {standing{condition: gone(unanswered, long), waiting: 1}, joining(true, false), standing{condition: gone(unanswered, long), waiting: 2}, verdict{waits: true}},
		"away, leaving":                      {standing{condition: gone(unanswered, long), waiting: 2}, leaving, standing{condition: gone(unanswered, long), waiting: 1}, verdict{}},
		"suspected, pause over":              {standing{condition: suspected{}, waiting: 1, newest: now}, trying(false), standing{condition: suspected{}, waiting: 1, newest: now}, verdict{}},
		"away, pause over":                   {standing{condition: gone(unconnected, long), waiting: 3}, trying(false), standing{condition: gone(unconnected, long), waiting: 3}, verdict{again: 3 * trialEvery}},
		"unconnected, pause over again":      {standing{condition: gone(unconnected, long), waiting: 3, next: in(long)}, trying(true), standing{condition: gone(unconnected, long), waiting: 3, next: now}, verdict{}},
		"away, pause over again":             {standing{condition: gone(unanswered, long), waiting: 3, next: in(long)}, trying(true), standing{condition: gone(unanswered, long), waiting: 3, next: in(long)}, verdict{}},
		"away, pause over, just attempted":   {standing{condition: gone(unanswered, long), newest: ago(attemptEvery/2 - 1)}, trying(true), standing{condition: gone(unanswered, long), newest: ago(attemptEvery/2 - 1)}, verdict{again: attemptEvery}},
		"away, pause over, attempted twice":  {standing{condition: gone(unanswered, long), newest: ago(attemptEvery / 2), former: ago(attemptEvery - 1)}, trying(true), standing{condition: gone(unanswered, long), newest: ago(attemptEvery / 2), former: ago(attemptEvery - 1)}, verdict{again: attemptEvery}},
	} {
		t.Run(name, func(t *testing.T) {
			next, may := test.event(test.state)
			require.Equal(t, test.want, next)
			require.Equal(t, test.may, may)
		})
	}
}

// From the first failure, attempts that get no connection reach a server twice a second at most,
// and they go on: those of two requests at a time, and of questions. An attempt that takes long
// reaches it at any time until its end.
func TestStandingAllowsFewAttempts(t *testing.T) {
	const lasts, tick, longest = time.Minute, 10 * time.Millisecond, 900 * time.Millisecond
	type actor struct {
		asks bool
		ends time.Time // of its attempt, zero without one
	}
	for range 50 {
		s := standing{condition: there{}, waiting: 1}
		actors := []*actor{{}, {}, {asks: true}}
		began := time.Now()
		var arrivals []time.Time
		for now := began; now.Sub(began) < lasts; now = now.Add(rand.N(tick)) {
			a := actors[rand.N(len(actors))]
			switch {
			case a.ends.IsZero():
				next, err := s.attempt(now, a.asks)
				s = next
				if err == nil && (!a.asks || s.failure != nil) {
					takes := rand.N(longest)
					a.ends = now.Add(takes)
					arrivals = append(arrivals, now.Add(rand.N(takes+1)))
				}
			case !now.Before(a.ends):
				a.ends = time.Time{}
				if s = s.failed(now, errEarly); a.asks {
					s = s.unanswered(now, errEarly, unconnected, 0)
				}
			}
			if rand.N(100) == 0 {
				s, _ = s.trying(now, true)
			}
		}
		slices.SortFunc(arrivals, time.Time.Compare)
		for n := 2; n < len(arrivals); n++ {
			require.GreaterOrEqual(t, arrivals[n].Sub(arrivals[n-2]), attemptEvery)
		}
		require.Greater(t, len(arrivals), int(lasts/(2500*time.Millisecond)))
	}
}
