package script_test

import (
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/informertest/script"
)

var spoken = regexp.MustCompile(`^server .*dialect=(\S+)`)

// Random scripts draw the dialects by which an informer can be judged, where that is asked for.
func TestRandomScriptsDrawDialects(t *testing.T) {
	drawn := map[string]bool{}
	for seed := range uint64(300) {
		require.NotContains(t, script.Random(rand.New(rand.NewPCG(seed, 0)).IntN, script.RandomOptions{}).String(), "dialect=")
		require.NotContains(t, script.Random(rand.New(rand.NewPCG(seed, 0)).IntN, script.RandomOptions{Dialects: true, Restores: true}).String(), "dialect=")
		text := script.Random(rand.New(rand.NewPCG(seed, 0)).IntN, script.RandomOptions{Dialects: true}).String()
		if found := spoken.FindStringSubmatch(text); found != nil {
			drawn[found[1]] = true
		}
	}
	require.Equal(t, []string{"computed", "kine", "openshift", "openshift-ignoring", "polled", "porch", "replaying", "unmarked"}, slices.Sorted(maps.Keys(drawn)))
}

// What an informer says of itself beside a server without versions is not held against it.
func TestScriptsPlayDialects(t *testing.T) {
	for _, name := range []string{"kine", "porch", "unmarked"} {
		t.Run(name, func(t *testing.T) {
			result, err := play(t, parse(t, "server dialect="+name+"\nfill 3\ninformer\nstart\nwait 2m\nmark\nupdate ns0/pod-0\ncreate a/b\ndelete ns1/pod-1\n"+
				"wait 1h\nexpect told updated ns0/pod-0\nexpect told added a/b\nexpect told deleted ns1/pod-1\nsettle\n"), script.Ours)
			require.NoError(t, err)
			require.NoError(t, result.Err())
		})
	}
}
