package script_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"

	"github.com/rvinformer/informer/informertest/script"
	"github.com/rvinformer/informer/tests/harness"
)

// hostile are answers that no server should give, each as a fault that lasts for ten minutes.
var hostile = []string{
	"refuse", "refuse odds=2",
	"reset", "list reset", "watch reset", "watch-list reset", "reset odds=2",
	"hang", "list hang", "watch hang", "watch-list hang", "get hang", "hang odds=3",
	"list cut=0", "list cut=1", "list cut=100", "list cut=2000,clean", "list page=later cut=700",
	"watch cut=0,clean", "watch cut=1", "watch cut=400", "watch-list cut=0", "watch-list cut=900,clean",
	"slow=200", "list slow=2000", "watch slow=50",
	"list garbage=2", "watch garbage=1", "watch-list garbage=3", "mistyped=2", "watch unversioned=1", "watch-list unversioned=2", "oversize=1,70000",
	"400", "401", "403", "404", "408", "409", "410", "413", "422", "429", "429 retry-after=120", "500", "502", "503", "503 retry-after=60", "504",
	"list 410 odds=2", "list page=later 410", "list page=later 500", "watch 410", "watch 429 retry-after=240", "watch-list 404", "watch-list 409", "watch-list 500",
	"watch-list 429 retry-after=240",
	"error-event=410", "error-event=500", "error-event=429,late", "error-event=410,late odds=2",
	"no-bookmarks", "drop-bookmarks=1", "ignore-watch-list", "refuse-watch-list", "endless-watch-list",
	"close", "close odds=2", "lag", "list lag skip=1", "repeat=2", "list foreign", "list repeat-token", "list corrupt=57", "list wrong-checksum", "watch corrupt=57", "watch wrong-checksum",
}

// unreadable matches the answers with objects that cannot be read.
var unreadable = regexp.MustCompile(`garbage=|mistyped=|unversioned=|oversize=`)

// Whatever a server answers, from the start or later, an informer has in the end what the server
// has, and the oracle finds nothing wrong on the way. Each answer is played in one of eight ways.
// INFORMER_ATTACK, which make attack sets, plays all of them for so many seconds, each round with
// other changes.
func TestHostileAnswers(t *testing.T) {
	harness.SurvivePanics(t)
	attack := harness.EnvInt("INFORMER_ATTACK", 0)
	if attack > 0 { // millions of lines
		klog.SetLogger(klog.New(nil))
		t.Cleanup(klog.ClearLogger)
	}
	until := time.Now().Add(time.Duration(attack) * time.Second)
	rounds, plays := 0, 0
	for rounds == 0 || time.Now().Before(until) {
		rounds++
		for i, answer := range hostile {
			for way := range 8 {
				if attack > 0 || way == i%8 {
					playHostile(t, answer, way, rounds)
					plays++
				}
			}
		}
	}
	t.Logf("%d answers, %d rounds, %d plays, 0 wrong", len(hostile), rounds, plays)
}

// playHostile plays an answer that lasts for ten minutes while objects change.
func playHostile(t *testing.T, answer string, way, seed int) {
	t.Helper()
	mode := []string{"auto", "paged", "full", "watch-list"}[way/2]
	fault := "fault " + answer
	begin := []string{"start", "settle", fault}
	if way%2 == 1 {
		begin = []string{fault, "start", "wait 1m"}
	}
	lines := slices.Concat(
		[]string{"server gzip=1 gzip-watches=" + []string{"on", "off"}[seed%2], "informer list=" + mode + " page=7 checkpoint=on", "fill 30"}, begin,
		[]string{fmt.Sprintf("churn 120 keys=40 every=5s seed=%d", seed), "wait 5m", "heal", "settle", "relist", "settle", "churn 5", "settle 5m"},
	)
	if unreadable.MatchString(answer) { // a list is what brings such an object again
		heal := slices.Index(lines, "heal")
		lines = slices.Insert(lines, heal+1, "relist")
	}
	text := strings.Join(lines, "\n") + "\n"
	s, err := script.Parse("hostile", []byte(text))
	require.NoError(t, err, text)
	result, err := play(t, s, script.Ours)
	require.NoError(t, err, text)
	require.NoError(t, result.Err(), text)
}
