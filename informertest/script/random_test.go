package script_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer/informertest/script"
)

// scenarios are the scripts that have a name.
const scenarios = "../../testdata/scenarios/*.txt"

func readScenarios(t *testing.T) (all []*script.Script) {
	t.Helper()
	files, err := filepath.Glob(scenarios)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		s, err := script.Parse(filepath.Base(file), text)
		require.NoError(t, err)
		all = append(all, s)
	}
	return all
}

func scenarioName(s *script.Script) string {
	return strings.TrimSuffix(filepath.Base(s.Name), ".txt")
}

// survivePanics lets handlers panic.
func survivePanics(t *testing.T) {
	t.Helper()
	crash, handlers := utilruntime.ReallyCrash, utilruntime.PanicHandlers
	t.Cleanup(func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = crash, handlers })
	utilruntime.ReallyCrash, utilruntime.PanicHandlers = false, nil
}

// TestScenarios plays each of the scripts that have a name.
func TestScenarios(t *testing.T) {
	survivePanics(t)
	for _, s := range readScenarios(t) {
		t.Run(scenarioName(s), func(t *testing.T) {
			result, err := play(t, s, script.Ours)
			require.NoError(t, err)
			require.NoError(t, result.Err())
		})
	}
}

// number is that of an environment variable, if it has one.
func number(variable string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return otherwise
}

// scriptsToPlay is how many random scripts are played. The default is a sample: make proof plays
// many more.
func scriptsToPlay() int { return number("INFORMER_TORTURE", 4) }

// playTheSame has rapid begin at INFORMER_TORTURE_FROM, or else where it has begun in the last run:
// what is red then is what has changed.
func playTheSame(t *testing.T) {
	t.Helper()
	if flag.Lookup("rapid.seed").Value.String() == "0" { // not set
		setFlag(t, "rapid.seed", fmt.Sprint(number("INFORMER_TORTURE_FROM", 1)))
	}
}

// setFlag sets a flag of this process until the test ends.
func setFlag(t *testing.T, name, value string) {
	t.Helper()
	before := flag.Lookup(name).Value.String()
	require.NoError(t, flag.Set(name, value))
	t.Cleanup(func() { require.NoError(t, flag.Set(name, before)) })
}

// scripts24h are random days: others for each turn of the dice, where rapid begins with the same
// seed.
func scripts24h(turn int, shards bool) *rapid.Generator[*script.Script] {
	return rapid.Custom(func(t *rapid.T) *script.Script {
		dice := func(n int) int { return (rapid.IntRange(0, n-1).Draw(t, "dice") + turn) % n }
		return script.Random(dice, script.RandomOptions{Duration: 24 * time.Hour, Writes: 12_000, Shards: shards, TLS: true})
	})
}

// TestRandomScripts plays INFORMER_TORTURE random scripts, of a day each. The script that
// rapid shows in the end is the shortest that it has found; it can be played again, or as
// a scenario.
func TestRandomScripts(t *testing.T) {
	survivePanics(t)
	playTheSame(t)
	setFlag(t, "rapid.checks", fmt.Sprint((scriptsToPlay()+1)/2))
	var writes, calls, scripts atomic.Int64
	t.Cleanup(func() {
		t.Logf("%d scripts, %d writes, %d events told", scripts.Load(), writes.Load(), calls.Load())
	})
	for i := range 2 {
		t.Run(fmt.Sprint("half=", i+1), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				s := scripts24h(i, false).Draw(rt, "script")
				seed := drawSeed(rt)
				result, err := playSeed(t, s, script.Ours, seed)
				if err == nil {
					scripts.Add(1)
					writes.Add(int64(result.Writes))
					calls.Add(int64(result.Calls))
					err = result.Err()
				}
				if err != nil {
					fail(rt, err, s, seed, "ours")
				}
			})
		})
	}
}

// TestSharedScenarios plays them with a shared informer, for which the oracle's judgement counts,
// and not how many requests a script expects. Nor does a server that has forgotten make each
// handler list: another may have the watch that it needs. So the dead letters of a handler stay,
// which is why the scripts are left out whose handlers end goroutines.
func TestSharedScenarios(t *testing.T) {
	survivePanics(t)
	for _, s := range readScenarios(t) {
		if name := scenarioName(s); !strings.HasPrefix(name, "handler-exits") {
			t.Run(name, func(t *testing.T) {
				result, err := play(t, s, script.Shared)
				require.NoError(t, err)
				result.Missed = nil
				require.NoError(t, result.Err())
			})
		}
	}
}

var (
	surrenders = regexp.MustCompile(` (exits|attempts)=\d+`)
	panics     = regexp.MustCompile(` panics=\d+`)
)

// withoutGivingUp is a script without dead letters: its handlers end no goroutines, and do not panic
// six times in a row.
func withoutGivingUp(t require.TestingT, s *script.Script) *script.Script {
	text := panics.ReplaceAll(surrenders.ReplaceAll([]byte(s.String()), nil), []byte(" panics=50"))
	without, err := script.Parse(s.Name, text)
	require.NoError(t, err)
	return without
}

// TestSharedRandomScripts plays a quarter as many with a shared informer.
func TestSharedRandomScripts(t *testing.T) {
	survivePanics(t)
	playTheSame(t)
	setFlag(t, "rapid.checks", fmt.Sprint((scriptsToPlay()+7)/8))
	for _, name := range []string{"shared", "shared-late"} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				s := withoutGivingUp(rt, scripts24h(0, false).Draw(rt, "script"))
				seed := drawSeed(rt)
				result, err := playSeed(t, s, makers[name], seed)
				if err == nil {
					result.Missed = nil
					err = result.Err()
				}
				if err != nil {
					fail(rt, err, s, seed, name)
				}
			})
		})
	}
}

// TestShardedRandomScripts plays a quarter as many in which the informers that start follow other
// shards than those before.
func TestShardedRandomScripts(t *testing.T) {
	survivePanics(t)
	playTheSame(t)
	setFlag(t, "rapid.checks", fmt.Sprint((scriptsToPlay()+3)/4))
	rapid.Check(t, func(rt *rapid.T) {
		s := peaceful(rt, scripts24h(0, true).Draw(rt, "script"))
		seed := drawSeed(rt)
		result, err := playSeed(t, s, script.Ours, seed)
		if err == nil {
			err = result.Err()
		}
		if err != nil {
			fail(rt, err, s, seed, "ours")
		}
	})
}

// TestRestoredRandomScripts plays a quarter as many in which the server is restored again and again
// while no process runs.
func TestRestoredRandomScripts(t *testing.T) {
	survivePanics(t)
	playTheSame(t)
	setFlag(t, "rapid.checks", fmt.Sprint((scriptsToPlay()+3)/4))
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.Custom(func(t *rapid.T) *script.Script {
			dice := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "dice") }
			return script.Random(dice, script.RandomOptions{Duration: 24 * time.Hour, Writes: 3_000, Restores: true, TLS: true})
		}).Draw(rt, "script")
		result, err := play(t, peaceful(rt, s), script.Ours)
		if err == nil {
			err = result.Err()
		}
		if err != nil {
			rt.Fatalf("%v\n\nThe script:\n\n%s", err, s)
		}
	})
}

// peaceful is a script whose handlers neither panic nor end goroutines: what they fail with then is
// passed over, as with client-go.
func peaceful(t require.TestingT, s *script.Script) *script.Script {
	text := panics.ReplaceAll(surrenders.ReplaceAll([]byte(s.String()), nil), nil)
	without, err := script.Parse(s.Name, text)
	require.NoError(t, err)
	return without
}

// cachedMakers are those of objectcache's informer, with the handler of the script added before it
// runs, or late, or with objects decoded.
var cachedMakers = []string{"cached", "cached-late", "cached-decoded"}

// TestCachedScenarios plays the scenarios with the informer that keeps objects. The oracle's
// judgement counts, and not what a script expects of calls for unchanged objects, of checkpoints or
// of batches, which it does not have.
func TestCachedScenarios(t *testing.T) {
	survivePanics(t)
	for _, s := range readScenarios(t) {
		if s.HasShards() {
			continue // this informer follows the same set for ever
		}
		for _, name := range cachedMakers {
			t.Run(name+" "+scenarioName(s), func(t *testing.T) {
				result, err := play(t, peaceful(t, s), makers[name])
				require.NoError(t, err)
				result.Missed = nil
				require.NoError(t, result.Err())
			})
		}
	}
}

// TestCachedRandomScripts plays a quarter as many with it.
func TestCachedRandomScripts(t *testing.T) {
	survivePanics(t)
	playTheSame(t)
	setFlag(t, "rapid.checks", fmt.Sprint((scriptsToPlay()+7)/8))
	for _, name := range cachedMakers {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				s := peaceful(rt, scripts24h(0, false).Draw(rt, "script"))
				seed := drawSeed(rt)
				result, err := playSeed(t, s, makers[name], seed)
				if err == nil {
					result.Missed = nil
					err = result.Err()
				}
				if err != nil {
					fail(rt, err, s, seed, name)
				}
			})
		})
	}
}
