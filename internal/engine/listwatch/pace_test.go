package listwatch_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"
	"pgregory.net/rapid"

	. "github.com/rvinformer/informer/internal/engine/listwatch"
)

// backoff is the default one, without what is added at random.
var backoff = wait.Backoff{Duration: 800 * time.Millisecond, Cap: 30 * time.Second, Steps: 37, Factor: 2}

func TestPaceGrowsAndStartsAgain(t *testing.T) {
	p := NewPace(wait.Backoff{Duration: time.Second, Factor: 2, Steps: 100, Cap: time.Minute})
	retry, list := Step{Pause: RetryPause}, Step{Pause: ListPause}
	for _, test := range []struct {
		step Step
		want time.Duration
	}{
		{Step{}, 0},
		{retry, time.Second},
		{retry, 2 * time.Second},
		{list, time.Second},
		{list, 2 * time.Second},
		{Step{Pause: AskedPause, RetryAfter: time.Second}, time.Second},
		{retry, 4 * time.Second},
		{Step{Pause: RetryPause, RetryAfter: time.Hour}, time.Hour},
		{Step{Pause: ListPause, RetryAfter: 3 * time.Second}, 4 * time.Second},
		{Step{Progress: RequestProgress}, 0},
		{retry, time.Second},
		{Step{Progress: RequestProgress, Pause: RetryPause}, time.Second},
		{list, 8 * time.Second},
		{Step{Progress: WatchProgress, Pause: ListPause}, time.Second},
		{list, 2 * time.Second},
		{retry, time.Second},
	} {
		require.Equal(t, test.want, p.After(test.step), "%+v", test.step)
	}
	turn := p.After(Step{Pause: TurnPause, RetryAfter: 2 * time.Second})
	require.True(t, 2*time.Second <= turn && turn <= 3*time.Second, turn)
	require.Equal(t, 2*time.Second, p.After(retry), "a turn leaves the backoffs as they are")
}

// A failure that was not the request's own does not make the backoff grow.
func TestPaceForgives(t *testing.T) {
	p := NewPace(wait.Backoff{Duration: time.Second, Factor: 2, Steps: 100, Cap: time.Minute})
	retry, list := Step{Pause: RetryPause}, Step{Pause: ListPause}
	require.Equal(t, time.Second, p.After(retry))
	for range 10 {
		require.Equal(t, 2*time.Second, p.After(retry))
		p.Forgive()
	}
	require.Equal(t, time.Second, p.After(list), "lists have a backoff of their own")
	require.Equal(t, time.Second, p.After(Step{Progress: RequestProgress, Pause: RetryPause}))
	p.Forgive()
	require.Equal(t, time.Second, p.After(retry))
}

// played is a reflector against a server that answers as a test says. Time passes in watches
// and pauses, and in nothing else.
type played struct {
	policy    Policy
	state     State
	pace      *Pace
	questions Questions
	now       time.Duration
	// counted is when a request was made, but for the further pages of a list where the one
	// before showed objects. Lists is when a list began that showed objects.
	counted, lists []time.Duration
	free           bool // the next request is not counted
	pages          int
}

func (p *played) request() {
	if !p.free {
		p.counted = append(p.counted, p.now)
	}
	p.free = false
}

// step is one request, and what follows it.
func (p *played) step(o Outcome) {
	p.request()
	streamed := p.policy.Streams(p.state)
	switch s := p.state.(type) {
	case Start:
		o = p.answer(o, streamed)
		if o.Shown {
			p.lists = append(p.lists, p.now)
		}
	case Listing:
		o = p.answer(o, false)
	case Watching:
		if !o.Refused {
			o, p.state = p.watch(s, o)
		}
	}
	if o.Kind == Unproven {
		p.ask(2)
	}
	o.At = time.Unix(0, 0).Add(p.now)
	next := p.policy.Next(p.state, o)
	p.free = o.Kind == PageRead && (o.Continue != "" && o.Shown || streamed)
	p.state = next.State
	p.now += p.pace.After(next)
}

// answer is what becomes of a list.
func (p *played) answer(o Outcome, streamed bool) Outcome {
	p.pages++
	if o.Continue != "" {
		o.Continue = fmt.Sprint(p.pages)
	}
	if streamed {
		o.Continue = ""
	}
	return o
}

// mostQuestions is how many requests an inquiry takes: for kube-system, for three known objects, and for
// any object.
const mostQuestions = 5

// ask asks the server about itself, if it may be asked.
func (p *played) ask(questions int) (asked bool) {
	at := time.Unix(0, 0).Add(p.now)
	if !p.questions.MayAsk(at) {
		return false
	}
	for range questions {
		p.request()
	}
	p.questions = p.questions.Asked(at, questions)
	return true
}

// watch is what becomes of a watch that was opened.
func (p *played) watch(s Watching, o Outcome) (Outcome, State) {
	if s.Unsure {
		s.Unsure = !p.ask(mostQuestions)
	}
	p.now += o.Lasted
	if o.Moved {
		s.Strikes = 0
	}
	return o, s
}

func outcomes(moment ...time.Duration) (all []Outcome) {
	for _, shown := range []bool{false, true} {
		all = append(all,
			Outcome{Kind: PageRead, ResourceVersion: "7", Shown: shown},
			Outcome{Kind: PageRead, ResourceVersion: "7", Continue: "c", Shown: shown},
			Outcome{Kind: PageRead, Shown: shown},
			Outcome{Kind: Unproven, Shown: shown},
			Outcome{Kind: Failed, Shown: shown},
			Outcome{Kind: EndedEarly, Shown: shown},
			Outcome{Kind: EndedEarly, Shown: shown, ResourceVersion: "8"},
			Outcome{Kind: NoWatchList, Shown: shown})
	}
	for _, kind := range []Kind{Failed, Expired, Circular, TooLarge, BadRequest, NoWatch} {
		all = append(all, Outcome{Kind: kind, Refused: true}, Outcome{Kind: kind, Refused: true, RetryAfter: time.Second})
	}
	for _, lasted := range moment {
		for _, kind := range []Kind{WatchEnded, Stalled, WatchBroken, Failed, Expired, TooLarge, BadRequest} {
			all = append(all, Outcome{Kind: kind, Lasted: lasted, Doubtful: true}, Outcome{Kind: kind, Lasted: lasted, Doubtful: true, Moved: true})
		}
		if lasted < time.Second {
			all = append(all, Outcome{Kind: WatchTooShort, Lasted: lasted, Doubtful: true})
		}
	}
	return all
}

// ofState is those outcomes that a request of a state can have.
func ofState(s State, streams bool, all []Outcome) []Outcome {
	_, watches := s.(Watching)
	return slices.DeleteFunc(slices.Clone(all), func(o Outcome) bool {
		switch o.Kind {
		case PageRead, Unproven:
			return watches
		case NoWatchList, EndedEarly:
			return watches || !streams
		case Circular:
			_, lists := s.(Listing)
			return !lists
		case WatchEnded, Stalled, WatchBroken, WatchTooShort, NoWatch:
			return !watches
		default:
			return !watches && (o.Lasted > 0 || o.Moved || o.Doubtful)
		}
	})
}

// busiest is how many of sorted times lie in the busiest minute.
func busiest(at []time.Duration) (most int) {
	first := 0
	for i := range at {
		for at[i]-at[first] >= time.Minute {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// The worst that a search found were 97 requests a minute, questions included, from a server that
// ends each watch after an event and a second, and 43 lists, some of them given up.
const (
	mostRequests = 120 // as oracle.Requests has it
	mostLists    = 60
)

// The server answers in any way, and the same way again.
func TestNoServerIsHammered(t *testing.T) {
	all := outcomes(0, time.Second, Turn-1, Turn, Steady-1, Steady)
	rapid.Check(t, func(t *rapid.T) {
		p := &played{
			policy: Policy{
				WatchList:          rapid.Bool().Draw(t, "watch-list"),
				Style:              Style(rapid.IntRange(0, 2).Draw(t, "style")),
				InternalErrorRetry: rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(t, "internal errors"),
			},
			state: Start{Known: rapid.SampledFrom([]string{"", "5"}).Draw(t, "known")},
			pace:  NewPace(backoff),
		}
		turns := rapid.SliceOfN(rapid.IntRange(0, 1000), 1, 9).Draw(t, "turns")
		for n := 0; p.now < 8*time.Minute && n < 2000; n++ {
			able := ofState(p.state, p.policy.Streams(p.state), all)
			p.step(able[turns[n%len(turns)]%len(able)])
		}
		require.LessOrEqual(t, busiest(p.counted), mostRequests)
		require.LessOrEqual(t, busiest(p.lists), mostLists)
	})
}

// Pages that come again are found by their first objects where each has a token of its own.
func TestFirstObjectsThatComeAgain(t *testing.T) {
	for loop := 1; loop < 10; loop++ {
		state := Listing{}
		pages := 0
		for ; !state.Circular(fmt.Sprint("token", pages), fmt.Sprint(pages%loop)); pages++ {
			require.LessOrEqual(t, pages, 4*loop)
			outcome := Outcome{Kind: PageRead, Continue: fmt.Sprint("token", pages), First: fmt.Sprint(pages % loop), Shown: true}
			state = Policy{}.Next(state, outcome).State.(Listing)
		}
		require.GreaterOrEqual(t, pages, loop, "no object came twice")
	}
}

func TestSameTokenWithOtherObjectsIsNotCircular(t *testing.T) {
	state := Listing{}
	for page := range 100 {
		first := fmt.Sprint("object", page)
		require.False(t, state.Circular("token", first), "page %d", page)
		state = Policy{}.Next(state, Outcome{Kind: PageRead, Continue: "token", First: first, Shown: true}).State.(Listing)
	}
}

// Pages that show no object are found by their tokens.
func TestTokensThatComeAgain(t *testing.T) {
	for _, test := range []struct{ before, loop int }{{0, 1}, {0, 2}, {1, 1}, {4, 1}, {5, 3}, {100, 7}} {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			state, pages := Listing{}, 0
			for ; ; pages++ {
				n := pages
				if n > test.before {
					n = test.before + (n-test.before)%test.loop
				}
				token := fmt.Sprint(n)
				if state.Circular(token, "") {
					break
				}
				require.LessOrEqual(t, pages, 3*(test.before+test.loop)+1)
				state = Policy{}.Next(state, Outcome{Kind: PageRead, Continue: token, Shown: true}).State.(Listing)
			}
			require.GreaterOrEqual(t, pages, test.before+test.loop, "no token came twice")
		})
	}
}
