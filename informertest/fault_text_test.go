package informertest_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer/informertest"
)

func TestParseFault(t *testing.T) {
	for text, want := range map[string]informertest.Fault{
		"refuse":                              {Effect: informertest.Refuse()},
		"list page=later 410 times=1":         {Match: informertest.Match{Verbs: []string{"list"}, Page: informertest.LaterPages}, Effect: informertest.Status(410), Times: 1},
		"list,watch resource=v1/pods hang":    {Match: informertest.Match{Verbs: []string{"list", "watch"}, Resource: pods}, Effect: informertest.Hang()},
		"resource=example.com/v1/widgets lag": {Match: informertest.Match{Resource: widgets}, Effect: informertest.Lag()},
		"get 429 retry-after=7 skip=2 odds=3": {Match: informertest.Match{Verbs: []string{"get"}}, Effect: informertest.Status(429).RetryAfter(7 * time.Second), Skip: 2, Odds: 3},
		"page=first reset":                    {Match: informertest.Match{Page: informertest.FirstPage}, Effect: informertest.Reset()},
		"cut=0":                               {Effect: informertest.Cut(0)},
		"cut=100,clean":                       {Effect: informertest.CutClean(100)},
		"slow=10":                             {Effect: informertest.Slow(10)},
		"garbage=2":                           {Effect: informertest.Garbage(2)},
		"mistyped=3":                          {Effect: informertest.Mistyped(3)},
		"unversioned=3":                       {Effect: informertest.Unversioned(3)},
		"oversize=2,1000":                     {Effect: informertest.Oversize(2, 1000)},
		"watch error-event=500":               {Match: informertest.Match{Verbs: []string{"watch"}}, Effect: informertest.ErrorEvent(500)},
		"no-bookmarks":                        {Effect: informertest.NoBookmarks()},
		"drop-bookmarks=2":                    {Effect: informertest.DropBookmarks(2)},
		"ignore-watch-list":                   {Effect: informertest.IgnoreWatchList()},
		"refuse-watch-list":                   {Effect: informertest.RefuseWatchList()},
		"endless-watch-list":                  {Effect: informertest.EndlessWatchList()},
		"watch error-event=410,late":          {Match: informertest.Match{Verbs: []string{"watch"}}, Effect: informertest.LateErrorEvent(410)},
		"repeat-token":                        {Effect: informertest.RepeatToken()},
		"list foreign":                        {Match: informertest.Match{Verbs: []string{"list"}}, Effect: informertest.Foreign()},
		"close":                               {Effect: informertest.CloseWatch()},
		"repeat=3":                            {Effect: informertest.Repeat(3)},
		"watch lose=2":                        {Match: informertest.Match{Verbs: []string{"watch"}}, Effect: informertest.Lose(2)},
		"list corrupt=0":                      {Match: informertest.Match{Verbs: []string{"list"}}, Effect: informertest.Corrupt(0)},
		"wrong-checksum":                      {Effect: informertest.WrongChecksum()},
		"swap=4":                              {Effect: informertest.Swap(4)},
		"delay=250ms":                         {Effect: informertest.Delay(250 * time.Millisecond)},
		"close=5m0s":                          {Effect: informertest.CloseWatchAfter(5 * time.Minute)},
		"goaway odds=50":                      {Effect: informertest.GoAway(), Odds: 50},
		"goaway=1.5s":                         {Effect: informertest.GoAwayAndCut(1500 * time.Millisecond)},
		"with=shardSelector 422":              {Match: informertest.Match{With: "shardSelector"}, Effect: informertest.Status(422)},
		"list page=first without=resourceVersion 429 retry-after=1": {
			Match:  informertest.Match{Verbs: []string{"list"}, Page: informertest.FirstPage, Without: "resourceVersion"},
			Effect: informertest.Status(429).RetryAfter(time.Second),
		},
	} {
		got, err := informertest.ParseFault(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, text, got.String())
	}
	for text, want := range map[string]string{
		"list watch  503 ":                    "list,watch 503",
		"times=1 503 retry-after=2 list":      "list 503 retry-after=2 times=1",
		"retry-after=2 page=any 503 odds=0":   "503 retry-after=2",
		"watch-list get,list cut=7,clean":     "watch-list,get,list cut=7,clean",
		"swap=1 resource=apps/v1/deployments": "resource=apps/v1/deployments swap=1",
		"close=300s without=b with=a":         "with=a without=b close=5m0s",
	} {
		got, err := informertest.ParseFault(text)
		require.NoError(t, err)
		require.Equal(t, want, got.String())
	}
}

func TestParseFaultRefuses(t *testing.T) {
	for text, why := range map[string]string{
		"":                           "no effect",
		"list":                       "no effect",
		"explode":                    `unknown word "explode"`,
		"delete 503":                 `unknown word "delete"`,
		"list,delete 503":            `unknown verb "delete"`,
		"list list 503":              "named twice",
		"503 404":                    `"404" beside "503"`,
		"hang times=1 times=2":       `"times" comes twice`,
		"hang times=-1":              `"times=-1"`,
		"hang times=":                `"times="`,
		"hang odds=x":                `"x" is no number`,
		"hang page=second":           "first or later",
		"hang resource=pods":         "group/version/name",
		"hang resource=/pods":        "group/version/name",
		"200":                        "from 400",
		"600":                        "to 599",
		"error-event=1":              "from 400",
		"cut":                        "needs a number",
		"cut=1,dirty":                `"dirty"`,
		"slow=0":                     "from 1",
		"slow=1,clean":               `"clean"`,
		"garbage=0":                  "from 1",
		"mistyped=0":                 "from 1",
		"mistyped":                   "needs a number",
		"get mistyped=1":             "it meets nothing: mistyped=1 happens to list, watch, watch-list only",
		"unversioned=0":              "from 1",
		"list unversioned=1":         "it meets nothing: unversioned=1 happens to watch, watch-list only",
		"oversize=1":                 "a place and a size",
		"oversize=1,0":               "from 1 to 67108864 bytes",
		"oversize=1,67108865":        "from 1 to 67108864 bytes",
		"list close":                 "it meets nothing: close happens to watch, watch-list only",
		"get garbage=1":              "it meets nothing: garbage=1 happens to list, watch, watch-list only",
		"list no-bookmarks":          "it meets nothing",
		"watch ignore-watch-list":    "it meets nothing: ignore-watch-list happens to watch-list only",
		"page=first close":           "it meets nothing: close happens to watch, watch-list only",
		"watch page=later 410":       "only lists have pages, not watch",
		"get page=first 500":         "only lists have pages, not get",
		"503 times=2147483648":       "is no number from 0 to 2147483647",
		"503 retry-after=2147483648": "is no number from 0 to 2147483647",
		"hang=1":                     "takes no number",
		"hang retry-after=1":         "no time to retry after",
		"503 retry-after=0":          "at least a second",
		"list refuse":                "takes no verbs",
		"with=limit refuse":          "takes no verbs",
		"with= 503":                  "the name of a parameter",
		"without=a_b 503":            `no parameter has the name "a_b"`,
		"with=a without=a 503":       "has the parameter a and lacks it",
		"with=a with=b 503":          `"with" comes twice`,
		"delay":                      "needs a time",
		"delay=0s":                   "more than 0",
		"delay=-1s":                  "more than 0",
		"delay=1":                    "is no time",
		"delay=24h1ns":               "at most 24h",
		"get delay=1s":               "it meets nothing: delay=1s happens to list, watch, watch-list only",
		"close=0s":                   "more than 0",
		"list close=1s":              "it meets nothing",
		"goaway=":                    "is no time",
		"goaway=0s":                  "more than 0",
		"cut=99999999999999999999":   "is no number",
		"503=1":                      "unknown word",
		"resource=v1/po\u00e4s hang": "characters",
	} {
		_, err := informertest.ParseFault(text)
		require.ErrorContains(t, err, why, text)
		require.ErrorContains(t, err, "fault \"", text)
	}
}

func TestInvalidFaultsPanic(t *testing.T) {
	s := start(t, informertest.Options{})
	require.Panics(t, func() { s.Inject(informertest.Fault{}) })
	require.Panics(t, func() { s.Inject(informertest.Fault{Effect: informertest.Hang(), Times: -1}) })
	require.Panics(t, func() {
		s.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{}}, Effect: informertest.Hang()})
	})
	require.Panics(t, func() {
		s.Inject(informertest.Fault{Match: informertest.Match{Page: 3}, Effect: informertest.Hang()})
	})
}

func TestRetryAfterRoundsUp(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                              "429",
		1:                              "429 retry-after=1",
		time.Second:                    "429 retry-after=1",
		time.Second + time.Millisecond: "429 retry-after=2",
		100 * 365 * 24 * time.Hour:     "429 retry-after=2147483647",
		math.MaxInt64:                  "429 retry-after=2147483647",
	} {
		f := informertest.Fault{Effect: informertest.Status(429).RetryAfter(d)}
		require.Equal(t, want, f.String())
		again, err := informertest.ParseFault(want)
		require.NoError(t, err)
		require.Equal(t, f, again)
	}
	for _, wrong := range []informertest.Effect{informertest.Status(429).RetryAfter(-1), informertest.Hang().RetryAfter(1)} {
		_, err := informertest.ParseFault(wrong.String())
		require.Error(t, err, wrong)
	}
}

// drawFault draws any fault, also such that are not valid.
func drawFault(t *rapid.T) informertest.Fault {
	n := rapid.OneOf(rapid.IntRange(1, 9), rapid.IntRange(1, 64<<20), rapid.Int())
	effects := []informertest.Effect{
		informertest.Reset(), informertest.Hang(), informertest.Cut(n.Draw(t, "n") - 1), informertest.CutClean(n.Draw(t, "n")),
		informertest.Slow(n.Draw(t, "n")), informertest.Garbage(n.Draw(t, "n")), informertest.Mistyped(n.Draw(t, "n")), informertest.Oversize(n.Draw(t, "n"), n.Draw(t, "n")),
		informertest.Status(rapid.IntRange(400, 599).Draw(t, "code")), informertest.ErrorEvent(rapid.IntRange(400, 599).Draw(t, "code")),
		informertest.Status(429).RetryAfter(time.Duration(rapid.Int64().Draw(t, "retry after"))),
		informertest.NoBookmarks(), informertest.DropBookmarks(n.Draw(t, "n")), informertest.IgnoreWatchList(), informertest.RefuseWatchList(),
		informertest.EndlessWatchList(), informertest.CloseWatch(), informertest.Lag(), informertest.Repeat(n.Draw(t, "n")), informertest.Swap(n.Draw(t, "n")), informertest.Lose(n.Draw(t, "n")),
		informertest.Corrupt(n.Draw(t, "n")), informertest.WrongChecksum(),
		informertest.GoAway(),
	}
	d := time.Duration(rapid.OneOf(rapid.Int64Range(-1, 100), rapid.Int64Range(0, int64(25*time.Hour)), rapid.Int64()).Draw(t, "time"))
	effects = append(effects, informertest.Delay(d), informertest.CloseWatchAfter(d), informertest.GoAwayAndCut(d))
	f := informertest.Fault{Effect: rapid.SampledFrom(effects).Draw(t, "effect")}
	verbs := rapid.Permutation([]string{"list", "watch", "watch-list", "get"}).Draw(t, "verbs")
	f.Verbs = slices.Clone(verbs[:rapid.IntRange(0, 4).Draw(t, "how many")])
	if len(f.Verbs) == 0 {
		f.Verbs = nil
	}
	f.Page = rapid.SampledFrom([]informertest.Page{informertest.AnyPage, informertest.FirstPage, informertest.LaterPages}).Draw(t, "page")
	if rapid.Bool().Draw(t, "of a resource") {
		f.Resource.Group = rapid.StringMatching(`([a-z][a-z.=,0-9-]{0,9})?`).Draw(t, "group")
		f.Resource.Version = rapid.StringMatching(`v[0-9=a-z]{1,3}`).Draw(t, "version")
		f.Resource.Resource = rapid.StringMatching(`[a-z=,]{1,9}`).Draw(t, "resource")
	}
	parameter := rapid.OneOf(rapid.Just(""), rapid.SampledFrom([]string{"limit", "resourceVersion"}), rapid.StringMatching(`[a-zA-Z_=-]{0,9}`))
	f.With, f.Without = parameter.Draw(t, "with"), parameter.Draw(t, "without")
	number := rapid.OneOf(rapid.IntRange(0, 9), rapid.IntRange(0, 1<<31-1), rapid.Int())
	f.Skip, f.Times, f.Odds = number.Draw(t, "skip"), number.Draw(t, "times"), number.Draw(t, "odds")
	return f
}

// Each fault that a server takes comes back from its text, and what it does not take has a text
// with an error.
func TestFaultsComeBackFromTheirText(t *testing.T) {
	s := start(t, informertest.Options{InMemory: true})
	valid := 0
	rapid.Check(t, func(t *rapid.T) {
		f := drawFault(t)
		words := strings.Fields(f.String())
		got, err := informertest.ParseFault(strings.Join(rapid.Permutation(words).Draw(t, "words"), " "))
		if err != nil {
			require.Panics(t, func() { s.Inject(f) }, f)
			return
		}
		s.Inject(f)()
		require.Equal(t, f, got)
		valid++
	})
	require.Positive(t, valid)
}

func FuzzParseFault(f *testing.F) {
	for _, text := range []string{"list page=later 410 times=1", "oversize=1,2", "watch mistyped=3 odds=2", "cut=3,clean odds=2", "resource=apps/v1/d 503 retry-after=1", "watch-list,get lag skip=1", "with=limit without=continue 422", "delay=1m2s", "close=5ms", "goaway=9h odds=50"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		fault, err := informertest.ParseFault(text)
		if err != nil {
			return
		}
		again, err := informertest.ParseFault(fault.String())
		require.NoError(t, err)
		require.Equal(t, fault, again)
	})
}
