package script_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer/informertest/script"
	"github.com/rvinformer/informer/tests/harness"
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

// TestScenarios plays each of the scripts that have a name.
func TestScenarios(t *testing.T) {
	harness.SurvivePanics(t)
	for _, s := range readScenarios(t) {
		t.Run(scenarioName(s), func(t *testing.T) {
			result, err := play(t, s, script.Ours)
			require.NoError(t, err)
			require.NoError(t, result.Err())
		})
	}
}

// scriptsToPlay is how many random scripts are played. The default is a sample: make proof plays
// many more.
func scriptsToPlay() int { return harness.EnvInt("INFORMER_TORTURE", 4) }

// prepareDays has playDays play one in so many of the scripts to play.
func prepareDays(t *testing.T, share int) {
	t.Helper()
	harness.SurvivePanics(t)
	checks := flag.Lookup("rapid.checks").Value
	before := checks.String()
	t.Cleanup(func() { require.NoError(t, checks.Set(before)) })
	require.NoError(t, checks.Set(fmt.Sprint((scriptsToPlay()+share-1)/share)))
}

// scripts24h are random days: others for each turn of the dice, where rapid begins with the same
// seed.
func scripts24h(turn int, shards bool) *rapid.Generator[*script.Script] {
	return rapid.Custom(func(t *rapid.T) *script.Script {
		dice := func(n int) int { return (rapid.IntRange(0, n-1).Draw(t, "dice") + turn) % n }
		return script.Random(dice, script.RandomOptions{Duration: 24 * time.Hour, Writes: 12_000, Shards: shards, TLS: true, Dialects: true})
	})
}

// playDays plays random scripts with the informers of a maker, as many as rapid.checks says. The
// script that rapid shows in the end is the shortest that it has found; it can be played again, or as
// a scenario. For informers but ours, the oracle's judgement counts, and not what a script expects.
func playDays(t *testing.T, maker string, draw func(t *rapid.T) *script.Script) {
	t.Helper()
	scripts, writes, calls := 0, 0, 0
	t.Cleanup(func() { t.Logf("%d scripts, %d writes, %d events told", scripts, writes, calls) })
	rapid.Check(t, func(rt *rapid.T) {
		s := draw(rt)
		seed := drawSeed(rt)
		result, err := playSeed(t, s, makers[maker], seed)
		if err == nil {
			scripts, writes, calls = scripts+1, writes+result.Writes, calls+result.Calls
			if maker != "ours" {
				result.Missed = nil
			}
			err = result.Err()
		}
		if err != nil {
			fail(rt, err, s, seed, maker)
		}
	})
}

// TestRandomScripts plays INFORMER_TORTURE random scripts, of a day each, in two halves side by side.
func TestRandomScripts(t *testing.T) {
	prepareDays(t, 2)
	for i := range 2 {
		t.Run(fmt.Sprint("half=", i+1), func(t *testing.T) {
			t.Parallel()
			playDays(t, "ours", func(t *rapid.T) *script.Script { return scripts24h(i, false).Draw(t, "script") })
		})
	}
}

// TestSharedScenarios plays them with a shared informer, for which the oracle's judgement counts,
// and not how many requests a script expects. Nor does a server that has forgotten make each
// handler list: another may have the watch that it needs. So the dead letters of a handler stay,
// which is why the scripts are left out whose handlers end goroutines.
func TestSharedScenarios(t *testing.T) {
	harness.SurvivePanics(t)
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

// TestSharedRandomScripts plays an eighth as many with each kind of a shared informer.
func TestSharedRandomScripts(t *testing.T) {
	prepareDays(t, 8)
	for _, name := range []string{"shared", "shared-late"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			playDays(t, name, func(t *rapid.T) *script.Script { return withoutGivingUp(t, scripts24h(0, false).Draw(t, "script")) })
		})
	}
}

// TestShardedRandomScripts plays a quarter as many in which the informers that start follow other
// shards than those before.
func TestShardedRandomScripts(t *testing.T) {
	prepareDays(t, 4)
	playDays(t, "ours", func(t *rapid.T) *script.Script { return peaceful(t, scripts24h(0, true).Draw(t, "script")) })
}

// TestRestoredRandomScripts plays a quarter as many in which the server is restored again and again
// while no process runs.
func TestRestoredRandomScripts(t *testing.T) {
	prepareDays(t, 4)
	restored := rapid.Custom(func(t *rapid.T) *script.Script {
		dice := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "dice") }
		return script.Random(dice, script.RandomOptions{Duration: 24 * time.Hour, Writes: 3_000, Restores: true, TLS: true})
	})
	playDays(t, "ours", func(t *rapid.T) *script.Script { return peaceful(t, restored.Draw(t, "script")) })
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
	harness.SurvivePanics(t)
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

// TestCachedRandomScripts plays an eighth as many with each kind of it.
func TestCachedRandomScripts(t *testing.T) {
	prepareDays(t, 8)
	for _, name := range cachedMakers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			playDays(t, name, func(t *rapid.T) *script.Script { return peaceful(t, scripts24h(0, false).Draw(t, "script")) })
		})
	}
}
