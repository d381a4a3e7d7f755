package script_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer/informertest/script"
	"github.com/rvinformer/informer/tests/harness"
)

// makers are by the name that INFORMER_MAKER gives TestThisScript.
var makers = map[string]script.Maker{
	"ours":           script.Ours,
	"shared":         script.Shared,
	"shared-late":    script.SharedLate,
	"cached":         script.Cached,
	"cached-late":    script.CachedLate,
	"cached-decoded": script.CachedDecoded,
}

// play plays a script with the seed INFORMER_SEED, or 1.
func play(t *testing.T, s *script.Script, make script.Maker) (*script.Result, error) {
	return playSeed(t, s, make, uint64(harness.EnvInt("INFORMER_SEED", 1)))
}

func playSeed(t *testing.T, s *script.Script, make script.Maker, seed uint64) (result *script.Result, err error) {
	synctest.Test(t, func(*testing.T) {
		result, err = script.Play(context.Background(), s, make, script.Options{Seed: seed})
	})
	return result, err
}

// drawSeed draws what a script leaves open. It is drawn after the script, which thus stays the same
// for a seed of rapid.
func drawSeed(t *rapid.T) uint64 { return uint64(rapid.IntRange(1, 1<<16).Draw(t, "seed")) }

// fail ends a test with a script that has failed.
func fail(t *rapid.T, err error, s *script.Script, seed uint64, maker string) {
	t.Fatal(failure(err, s, seed, maker))
}

// failure shows a script that has failed, and the command that plays it again, for which it keeps
// the script in a file.
func failure(err error, s *script.Script, seed uint64, maker string) string {
	file := filepath.Join(os.TempDir(), "informer-script-"+maker+".txt")
	if err := os.WriteFile(file, []byte(s.String()), 0o600); err != nil {
		file = "file" // the reader has to make it
	}
	return fmt.Sprintf("%v\n\nThe script:\n\n%s\nThe command that plays it again:\n\n"+
		"INFORMER_SCRIPT=%s INFORMER_SEED=%d INFORMER_MAKER=%s go test -count=1 -run TestThisScript ./informertest/script", err, s, file, seed, maker)
}

func TestFailureSaysHowToPlayTheScriptAgain(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	s := parse(t, "fill 1\nstart\n")
	text := failure(errors.New("something was lost"), s, 7, "cached-late")
	file := filepath.Join(dir, "informer-script-cached-late.txt")
	require.Contains(t, text, "something was lost\n\nThe script:\n\nfill 1\nstart\n")
	require.Contains(t, text, "INFORMER_SCRIPT="+file+" INFORMER_SEED=7 INFORMER_MAKER=cached-late go test -count=1 -run TestThisScript ")
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, s.String(), string(kept))
	require.Contains(t, makers, "cached-late")
}

// TestThisScript plays the script in the file INFORMER_SCRIPT, with the seed INFORMER_SEED and the
// kind of informer INFORMER_MAKER.
func TestThisScript(t *testing.T) {
	file := os.Getenv("INFORMER_SCRIPT")
	if file == "" {
		t.Skip("INFORMER_SCRIPT names no file")
	}
	harness.SurvivePanics(t)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	s, err := script.Parse(file, text)
	require.NoError(t, err)
	name := cmp.Or(os.Getenv("INFORMER_MAKER"), "ours")
	require.Contains(t, makers, name, "INFORMER_MAKER")
	result, err := play(t, s, makers[name])
	require.NoError(t, err)
	show(result)
	require.NoError(t, result.Err())
}

// numbered is the random day of that number.
func numbered(n uint64) *script.Script {
	dice := rand.New(rand.NewPCG(n, 0))
	// Without TLS, which takes minutes for each day under WebAssembly.
	return script.Random(dice.IntN, script.RandomOptions{Duration: 24 * time.Hour, Writes: 12_000})
}

// TestThisDay plays the random day INFORMER_DAY.
func TestThisDay(t *testing.T) {
	day := harness.EnvInt("INFORMER_DAY", 0)
	if day == 0 {
		t.Skip("INFORMER_DAY is no number")
	}
	harness.SurvivePanics(t)
	result, err := playSeed(t, numbered(uint64(day)), script.Ours, uint64(day))
	require.NoError(t, err)
	show(result)
	require.NoError(t, result.Err(), "INFORMER_DAY=%d go run -C e2e ./replay has other turns of goroutines, and the same each time", day)
}

// show prints the history if INFORMER_HISTORY is set.
func show(result *script.Result) {
	if os.Getenv("INFORMER_HISTORY") != "" {
		fmt.Print(result.History)
	}
}

// TestDaysPlayedTwice counts how many of INFORMER_TWICE days have the same history when they are
// played again, and shows where others differ first. The Go runtime decides about the turns of
// goroutines, so they are not all: e2e/replay has a runtime that can be repeated.
func TestDaysPlayedTwice(t *testing.T) {
	days := harness.EnvInt("INFORMER_TWICE", 0)
	if days == 0 {
		t.Skip("INFORMER_TWICE is not set")
	}
	harness.SurvivePanics(t)
	equal := 0
	for n := range uint64(days) {
		var histories [2]string
		for i := range histories {
			result, err := playSeed(t, numbered(n+1), script.Ours, n+1)
			require.NoError(t, err)
			histories[i] = result.History.String()
		}
		if line, a, b := firstDifference(histories[0], histories[1]); line > 0 {
			t.Logf("day %d, line %d:\n\t%s\n\t%s", n+1, line, a, b)
		} else {
			equal++
		}
	}
	t.Logf("%d of %d days are equal", equal, days)
}

// firstDifference is the first line in which two texts differ, from 1 on, and what each has there;
// 0 if they are equal.
func firstDifference(one, other string) (line int, a, b string) {
	for one != "" || other != "" {
		line++
		a, one, _ = strings.Cut(one, "\n")
		b, other, _ = strings.Cut(other, "\n")
		if a != b {
			return line, a, b
		}
	}
	return 0, "", ""
}

// What the server does depends on the seed alone, its UIDs too.
func TestSameSeedMakesTheServerWriteTheSame(t *testing.T) {
	s := parse(t, "fill 20\ninformer list=paged\nstart\nchurn 20 every=1s seed=1\n")
	of := func(seed uint64) (writes []string) {
		result, err := playSeed(t, s, script.Ours, seed)
		require.NoError(t, err)
		require.NoError(t, result.Err())
		for line := range strings.Lines(result.History.String()) {
			if strings.Contains(line, "server: ") {
				writes = append(writes, line)
			}
		}
		return writes
	}
	require.Equal(t, of(1), of(1))
	require.NotEqual(t, of(1), of(2))
}
