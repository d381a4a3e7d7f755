package script_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest/oracle"
	"github.com/rvinformer/informer/informertest/script"
)

func TestMain(m *testing.M) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // client-go logs much that scripts do to it
	debug.SetGCPercent(400)                           // plays allocate much and keep little
	goleak.VerifyTestMain(m)
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"jump":                           `s:1: "jump": "jump" is no action`,
		"# why\n\ncreate a/1\ncreate":    `s:4: "create": it needs keys`,
		"create a":                       `"a" is not the key of an object, namespace/name`,
		"create a/b/c":                   `"a/b/c" is not the key`,
		"fill":                           `it needs a number, not ""`,
		"fill -1":                        `it needs a number, not "-1"`,
		"fill 1 2":                       `"2" is not expected`,
		"fill 1 keys=2":                  `keys= is not expected`,
		"churn 1 keys=0":                 `keys=0 leaves nothing to write`,
		"churn 1 every=soon":             `every=soon is not a duration`,
		"churn 1 seed=1 seed=2":          `seed= is there twice`,
		"wait":                           `it needs a duration, not ""`,
		"wait -1s":                       `it needs a duration, not "-1s"`,
		"start over":                     `"over" is neither again nor new`,
		"informer list=some":             `list=some is not one of auto, paged, full, watch-list`,
		"informer color=red":             `color= is not expected`,
		"handler slow=1":                 `slow=1 is not a duration`,
		"fault":                          `fault`,
		"fault list tired":               `tired`,
		"expect":                         `expect needs synced, not synced, told`,
		"expect joy=1":                   `expect needs synced, not synced, told`,
		"expect lists=many":              `expect needs synced, not synced, told`,
		"expect lists=1 watches=1":       `is not expected`,
		"expect not told":                `"told" is not expected`,
		"expect told born a/1":           `"born" is neither added, updated, deleted nor synced`,
		"expect told added":              `it needs keys`,
		"fill 1\nserver versions=opaque": `it has to be the first line`,
		"server dialect=odd":             `dialect=odd is not one of none, antrea, computed, `,
		"server versions=odd":            `versions=odd is not one of numbers, opaque`,
		"compact all":                    `"all" is not expected`,
		"compact odds=some":              `odds=some is not a number`,
		"handler exits=-1":               `exits=-1 is not a number`,
		"start\nstop within=soon":        `s:2: "stop within=soon"`,
		"fill 1\n\n" + strings.Repeat("a", 100_000) + "\nstop": `s:3: a line has fewer than 65536 bytes: `,
	} {
		_, err := script.Parse("s", []byte(text))
		require.ErrorContains(t, err, want, text)
	}
}

// Any white space is between words.
func TestParseWhiteSpace(t *testing.T) {
	const text = "server\tbookmarks=1s\n\tfill\t3 \r\nfault\t list  tired\t\n"
	_, err := script.Parse("s", []byte(text))
	require.ErrorContains(t, err, `s:3: `)
	require.ErrorContains(t, err, `unknown word "tired"`)

	s := parse(t, "server\tversions=opaque\nfill\t3\nfault\t list  \t 500\ttimes=1\nstart\u00a0new\nmark\nsettle\t5m\t\nexpect\tsynced\n")
	result, err := play(t, s, script.Ours)
	require.NoError(t, err)
	require.NoError(t, result.Err())
}

// What cannot be played says at which line.
func TestPlayErrors(t *testing.T) {
	for text, want := range map[string]string{
		"stop":                                   `s:1: "stop": no informer runs`,
		"kill":                                   `no informer runs`,
		"fuse 1":                                 `no informer runs`,
		"settle":                                 `no informer runs that could settle`,
		"start\nstart":                           `s:2: "start": an informer runs already`,
		"start\nkill\nsettle":                    `no informer runs that could settle`,
		"start\nfuse 1\nfill 1\nwait 1m\nsettle": `the process is dead`,
		"restore":                                `there is no backup`,
		"create a/1\ncreate a/1":                 `s:2: "create a/1": pods "1" already exists`,
		"delete a/1":                             `"1" not found`,
		"start\nstop\nwarm":                      `s:3: "warm": an informer was started already`,
		"server versions=opaque\nrewind 1":       `the server's versions are no numbers`,
		"fill 1\nhold\nstart\nwait 1s\nstop":     `s:5: "stop": calls are held`,
	} {
		_, err := play(t, parse(t, text), script.Ours)
		require.ErrorContains(t, err, want, text)
	}
}

// A Maker that makes nothing of use is told so.
func TestPlayWithAWrongMaker(t *testing.T) {
	run, synced := func(context.Context) {}, func() bool { return false }
	broken := errors.New("broken")
	for want, maker := range map[string]script.Maker{
		`s: there is no Maker`: nil,
		`s:2: "start": making an informer: the Maker returned no Subject`: func(script.Setup) (*script.Subject, error) { return nil, nil },
		`s:2: "start": making an informer: the Subject has no Run`:        func(script.Setup) (*script.Subject, error) { return &script.Subject{HasSynced: synced}, nil },
		`s:2: "start": making an informer: the Subject has no HasSynced`:  func(script.Setup) (*script.Subject, error) { return &script.Subject{Run: run}, nil },
		`s:2: "start": making an informer: broken`:                        func(script.Setup) (*script.Subject, error) { return nil, broken },
	} {
		_, err := play(t, parse(t, "fill 1\nstart"), maker)
		require.ErrorContains(t, err, want)
	}
}

func parse(t *testing.T, text string) *script.Script {
	t.Helper()
	s, err := script.Parse("s", []byte(text))
	require.NoError(t, err)
	return s
}

// What a script expects and does not get is in the result, with its line.
func TestExpectations(t *testing.T) {
	const text = `
create a/1
informer list=paged
start
expect synced
expect not synced
expect told added a/1
expect told added a/1 times=2
expect told updated a/1
expect lists=1
expect lists>=2
expect unlimited<=0
expect watches=1
expect calls=1
expect errors>=1
mark
expect calls=0
expect told added a/1 times=0
stop within=1s
`
	result, err := play(t, parse(t, text), script.Ours)
	require.NoError(t, err)
	require.Empty(t, result.Violations)
	var missed []string
	for _, err := range result.Missed {
		missed = append(missed, err.Error())
	}
	require.Equal(t, []string{
		`s:6: "expect not synced": HasSynced is true`,
		`s:8: "expect told added a/1 times=2": a/1 was told 1 times`,
		`s:9: "expect told updated a/1": a/1 was told 0 times`,
		`s:11: "expect lists>=2": there are 1`,
		`s:15: "expect errors>=1": there are 0`,
	}, missed)
	require.ErrorContains(t, result.Err(), missed[0])
	require.EqualValues(t, 1, result.Calls)
}

// forgetful is a handler that never gets one event in five.
type forgetful struct {
	informer.ResourceEventHandler
	n int
}

func (f *forgetful) OnUpdate(oldObj, newObj interface{}) {
	if f.n++; f.n%5 > 0 {
		f.ResourceEventHandler.OnUpdate(oldObj, newObj)
	}
}

// An informer that loses something is found out.
func TestABrokenInformer(t *testing.T) {
	lossy := func(s script.Setup) (*script.Subject, error) {
		s.Handler = &forgetful{ResourceEventHandler: s.Handler}
		return script.Ours(s)
	}
	s := parse(t, "fill 30\nstart\nchurn 300 every=10s seed=1\nsettle")
	result, err := play(t, s, lossy)
	require.NoError(t, err)
	require.NotEmpty(t, result.Violations)
	require.ErrorContains(t, result.Err(), "reliable")

	result, err = play(t, s, script.Ours)
	require.NoError(t, err)
	require.NoError(t, result.Err())
	require.GreaterOrEqual(t, result.Writes, 330)
}

// A run whose last checkpoint could not be saved may be followed by one that knows less; with a
// save that succeeds later it may not.
func TestAFullDiskAtTheEnd(t *testing.T) {
	const text = `
informer checkpoint=on interval=1s changes=1
fill 3
start
wait 1m
full 1
delete ns0/pod-0
wait 5s
%s
start new
full 0
settle`
	for _, end := range []string{"stop", "stop\nstart\nstop", "full 0\nwait 5s\nstop", "full 0\nstop"} {
		result, err := play(t, parse(t, fmt.Sprintf(text, end)), script.Ours)
		require.NoError(t, err)
		require.NoError(t, result.Err(), end)
	}
	forgets := func(s script.Setup) (*script.Subject, error) {
		s.Checkpoint = &onlyFirst{CheckpointStore: s.Checkpoint}
		return script.Ours(s)
	}
	result, err := play(t, parse(t, fmt.Sprintf(text, "full 0\nstop")), forgets)
	require.NoError(t, err)
	require.ErrorContains(t, result.Err(), "resumable")
}

// What could not be saved is known all the same to the next run of the same process.
func TestStartedAgainAfterAFullDisk(t *testing.T) {
	for _, again := range []string{"start again", "start"} {
		s := parse(t, "server versions=opaque\ninformer checkpoint=on interval=30s\nfill 3\nstart\nwait 1m\nfull 1\ndelete ns0/pod-0\nwait 5s\nstop\n"+
			again+"\nsettle\nstop\nstart new\nsettle")
		result, err := play(t, s, script.Ours)
		require.NoError(t, err)
		require.NoError(t, result.Err(), again)
	}
}

// onlyFirst pretends to save; it saves what is saved in the first half minute.
type onlyFirst struct {
	informer.CheckpointStore
	began time.Time
}

func (s *onlyFirst) Save(ctx context.Context, write func(io.Writer) error) error {
	if s.began.IsZero() {
		s.began = time.Now()
	}
	if time.Since(s.began) > 30*time.Second {
		return nil
	}
	return s.CheckpointStore.Save(ctx, write)
}

// What an informer says of itself, keeps, stores and hands out is looked at.
func TestAnUntidyInformer(t *testing.T) {
	const text = "fill 9\ninformer batch=4 synced=ignored\nhandler exits=20\nwarm\nupdate ns0/pod-0\nstart\nchurn 100 every=1s\nrelist\nsettle\nstop"
	for name, untidy := range map[string]func(setup *script.Setup, subject *script.Subject){
		"": func(*script.Setup, *script.Subject) {},
		`s:9: "settle": restless`: func(_ *script.Setup, subject *script.Subject) {
			subject.Idle = func(complete bool) error {
				if complete {
					return errors.New("restless")
				}
				return nil
			}
		},
		"memory: 7 bytes are queued, and the run has stopped": func(_ *script.Setup, subject *script.Subject) {
			subject.Memory = func() (int64, int64) { return 7, 10 }
		},
		"memory: 1 keys are said to wait, and all has settled": func(_ *script.Setup, subject *script.Subject) {
			subject.Waiting = func() int { return 1 }
		},
		"stored: ": func(setup *script.Setup, _ *script.Subject) {
			stored := setup.Stored
			setup.Stored = func(key, _ string) { stored(key, "1") }
		},
		"authentic: ": func(setup *script.Setup, _ *script.Subject) {
			next := setup.BatchHandler
			setup.BatchHandler = informer.BatchHandlerFunc(func(ctx context.Context, events []informer.Event) error {
				defer func() {
					for _, e := range events {
						e.Object.(metav1.Object).SetResourceVersion("1")
					}
				}()
				return next.OnBatch(ctx, events)
			})
		},
		", which this run was not to tell": func(setup *script.Setup, _ *script.Subject) {
			setup.IgnoreSynced = false
		},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := play(t, parse(t, text), func(setup script.Setup) (*script.Subject, error) {
				ignores := setup.IgnoreSynced
				untidy(&setup, &script.Subject{})
				subject, err := script.Ours(setup)
				origin := subject.Origin
				subject.Origin = func() (oracle.Run, error) {
					run, err := origin()
					run.IgnoresSynced = ignores
					return run, err
				}
				untidy(&script.Setup{}, subject)
				return subject, err
			})
			require.NoError(t, err)
			if name == "" {
				require.NoError(t, result.Err())
			} else {
				require.ErrorContains(t, result.Err(), name)
			}
		})
	}
}

// What an informer says of how much waits is compared with the calls under way.
func TestAnInformerThatDoesNotCountWhatTheHandlerHas(t *testing.T) {
	s := parse(t, "fill 3\nstart\nwait 1m\nhold\nupdate ns0/pod-0\nwait 1m\nrelease\nsettle")
	result, err := play(t, s, script.Ours)
	require.NoError(t, err)
	require.NoError(t, result.Err())
	result, err = play(t, s, func(setup script.Setup) (*script.Subject, error) {
		subject, err := script.Ours(setup)
		subject.Waiting = func() int { return 0 }
		return subject, err
	})
	require.NoError(t, err)
	require.ErrorContains(t, result.Err(), "memory: 0 keys are said to wait, and the handler is called with 1")
	for _, v := range result.Violations {
		require.Equal(t, "memory", v.Guarantee)
	}
}

// A later informer of the same process must not say that it is synced before it is.
func TestLaterInformerThatIsSyncedTooEarly(t *testing.T) {
	s := parse(t, "fill 3\nstart\nwait 1m\nstop\nupdate ns0/pod-0\nhold\nstart\nwait 1m\nrelease\nsettle")
	result, err := play(t, s, script.Ours)
	require.NoError(t, err)
	require.NoError(t, result.Err())
	made := 0
	result, err = play(t, s, func(setup script.Setup) (*script.Subject, error) {
		subject, err := script.Ours(setup)
		if made++; made == 2 {
			subject.HasSynced = func() bool { return true }
		}
		return subject, err
	})
	require.NoError(t, err)
	require.ErrorContains(t, result.Err(), "synced: ns0/pod-0: synced, and this object, there in version")
}

// What does not fit its type may be told later by an informer that is asked to decode it to that,
// and by no other.
func TestMistypedObjectsAreAMatterOfTypes(t *testing.T) {
	const text = "informer decode=%s\nfill 3\nstart\nwait 1m\nfault watch,watch-list mistyped=1 times=1\nupdate ns0/pod-0\nwait 5m\nsettle 1h"
	decodes := func(setup script.Setup) (*script.Subject, error) {
		setup.Decode = "typed"
		return script.Ours(setup)
	}
	result, err := play(t, parse(t, fmt.Sprintf(text, "unstructured")), decodes)
	require.NoError(t, err)
	require.ErrorContains(t, result.Err(), "bookmarkable: ns0/pod-0")
	for _, decode := range []string{"typed", "unstructured", "raw", "metadata"} {
		result, err := play(t, parse(t, fmt.Sprintf(text, decode)), script.Ours)
		require.NoError(t, err)
		require.NoError(t, result.Err(), decode)
	}
}

func TestPlayEndsWithItsContext(t *testing.T) {
	for _, text := range []string{
		"fill 3\nstart\nwait 24h",
		"fill 3\nhandler slow=72h\nstart\nwait 1m\nstop",
		"fill 3\nhold\nstart\nwait 24h",
		"start\nhold\nchurn 1000000 every=10s",
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
			defer cancel()
			begin := time.Now()
			_, err := script.Play(ctx, parse(t, text), script.Ours, script.Options{})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, time.Hour, time.Since(begin), text)
		})
	}
}

// What would take no time by itself ends too.
func TestBusyPlaysEndWithTheirContext(t *testing.T) {
	over, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	cancel(why)
	for _, text := range []string{"fill 2000000000", "churn 2000000000", "other 2000000000"} {
		_, err := script.Play(over, parse(t, text), script.Ours, script.Options{})
		require.ErrorIs(t, err, why, text)
	}
}

// An informer that has acknowledged nothing is followed by one of the same process: the handler may
// have taken something in all the same, so that a deletion is right.
func TestStartedAgainWithAnEmptyStorage(t *testing.T) {
	for _, again := range []string{"start", "start again"} {
		s := parse(t, "fill 1\ninformer batch=1 list=paged\nhandler errors=1\nstart\nwait 1m\nstop\ndelete ns0/pod-0\nhandler\n"+again+"\nsettle\n"+
			"create ns0/pod-0\nsettle\nstop\nstart new\nsettle")
		var origins []oracle.Run
		var fresh []bool
		result, err := play(t, s, func(setup script.Setup) (*script.Subject, error) {
			fresh = append(fresh, setup.NewProcess)
			subject, err := script.Ours(setup)
			origin := subject.Origin
			subject.Origin = func() (oracle.Run, error) {
				run, err := origin()
				origins = append(origins, run)
				return run, err
			}
			return subject, err
		})
		require.NoError(t, err)
		require.NoError(t, result.Err(), again)
		require.Len(t, origins, 3)
		require.Nil(t, origins[0].Known)
		require.Equal(t, map[string]string{}, origins[1].Known)
		require.Nil(t, origins[2].Known)
		require.True(t, fresh[0])
		require.True(t, fresh[len(fresh)-1])
		require.NotContains(t, fresh[1:len(fresh)-1], true)
	}
}

// A dead process does not wait for what is held.
func TestHeldCallsOfADeadProcess(t *testing.T) {
	for _, text := range []string{
		"fill 3\nhold\nstart\nwait 1m\nkill\nstart\nsettle",
		"fill 3\nstart\nfuse 1\nhold\nupdate ns0/pod-0\nwait 1m\nstop\nstart\nsettle",
	} {
		result, err := play(t, parse(t, text), script.Ours)
		require.NoError(t, err, text)
		require.NoError(t, result.Err(), text)
	}
}

// A random script is a text that can be kept, and the same dice give the same.
func TestRandom(t *testing.T) {
	roll := func(seed uint64) *script.Script {
		return script.Random(rand.New(rand.NewPCG(seed, 0)).IntN, script.RandomOptions{})
	}
	for seed := range uint64(100) {
		s := roll(seed)
		again, err := script.Parse(s.Name, []byte(s.String()))
		require.NoError(t, err)
		require.Equal(t, s.String(), again.String())
		require.Equal(t, s.String(), roll(seed).String())
	}
	require.NotEqual(t, roll(1).String(), roll(2).String())
}

func FuzzParse(f *testing.F) {
	f.Add("fill 3\nfault list page=later 410 times=1\nstart\nsettle\n")
	for seed := range uint64(10) {
		f.Add(script.Random(rand.New(rand.NewPCG(seed, 0)).IntN, script.RandomOptions{}).String())
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := script.Parse("s", []byte(text))
		if err != nil {
			require.ErrorContains(t, err, "s:")
			return
		}
		again, err := script.Parse("s", []byte(s.String()))
		require.NoError(t, err)
		require.Equal(t, s.String(), again.String())
	})
}
