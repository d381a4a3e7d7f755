package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rvinformer/informer"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func newTestRow(cluster, resource string) row {
	return row{place: place{cluster: cluster, resource: schema.GroupVersionResource{Version: "v1", Resource: resource}}, phase: "listing", condition: informer.ReasonListing}
}

// liveScreen is a terminal of that size.
func liveScreen(out *bytes.Buffer, width, height int) *screen {
	return &screen{out: out, errs: out, size: func() (int, int) { return width, height }}
}

func TestProgressBlock(t *testing.T) {
	slow, fast, done := newTestRow("here", "nodes"), newTestRow("there", "pods"), newTestRow("here", "pods")
	done.synced, done.counts.handled, done.rows, done.condition = true, 10, 10, informer.ReasonCurrent
	began := time.Unix(0, 0)
	d := newDisplay(liveScreen(&bytes.Buffer{}, 100, 10), nil, began)
	slow.counts.handled, slow.problem, slow.phase = 3, "connection refused", "backoff"
	fast.counts.handled, fast.queued = 12000, 3<<20

	require.Equal(t, strings.Split(strings.Trim(`
syncing: 1 of 3 resources done, 12,013 objects, 6,007/s, 3.0 MiB waiting to be written, 2s
  here: 1 Listing, 1 Current; 10 objects, 0 B waiting to be written
  there: 1 Listing; 0 objects, 3.0 MiB waiting to be written
  CLUSTER  RESOURCE     OBJECTS  PER SECOND     WAITING  STATE
  there    pods          12,000       6,000     3.0 MiB  listing
  here     nodes              3           2         0 B  backoff: connection refused`, "\n"), "\n"),
		d.progressBlock([]row{slow, fast, done}, 2, began.Add(2*time.Second)))
}

// Only what fits is listed.
func TestProgressBlockOfManyResources(t *testing.T) {
	var rows []row
	for range 20 {
		rows = append(rows, newTestRow("here", strings.Repeat("x", len(rows)+1)))
	}
	d := newDisplay(liveScreen(&bytes.Buffer{}, 100, 12), nil, time.Unix(0, 0))
	block := d.progressBlock(rows, 1, time.Unix(1, 0))
	require.Len(t, block, d.screen.Height())
	require.Equal(t, "  and 14 more", block[len(block)-1])
}

func TestEventBlock(t *testing.T) {
	a, b := newTestRow("here", "pods"), newTestRow("here", "nodes")
	a.rows, a.counts = 1000, counts{added: 1200, updated: 40, deleted: 200, unchanged: 7}
	b.problem = "connection refused"
	a.condition, b.condition = informer.ReasonCurrent, informer.ReasonServerUnreachable
	d := newDisplay(liveScreen(&bytes.Buffer{}, 100, 10), nil, time.Unix(0, 0))
	d.last[a.place] = row{counts: counts{added: 1190, updated: 20, deleted: 198}}

	require.Equal(t, []string{
		"1,000 objects of 2 resources; per second +5 ~10 -1; in all 1,200 added, 40 updated, 200 deleted, 7 unchanged; 0 B waiting to be written",
		"  here: 1 ServerUnreachable, 1 Current; 1,000 objects, 0 B waiting to be written",
		"  here nodes: connection refused",
	}, d.eventBlock([]row{a, b}, 2))
}

// Without a terminal there are lines: progress, what is synced, and from then on events now and
// then.
func TestLines(t *testing.T) {
	to := newOutput()
	a := newTestRow("here", "pods")
	now := time.Unix(0, 0)
	d := newDisplay(to.screen, func() []row { return []row{a} }, now)
	step := func(after time.Duration) {
		now = now.Add(after)
		d.Step(now)
	}

	step(time.Second) // nothing has happened yet
	a.counts.handled, a.counts.added, a.queued = 500, 400, 1<<20
	step(time.Second)
	step(time.Second) // nothing new
	a.counts.handled, a.counts.added, a.queued, a.rows = 600, 600, 0, 600
	a.synced, a.took, a.condition = true, 3*time.Second, informer.ReasonCurrent
	step(time.Second)
	a.counts.updated = 50
	step(5 * time.Second) // too early for a line of events
	step(5 * time.Second)
	step(10 * time.Second) // no events

	require.Equal(t, `here: 1 Listing; 0 objects, 0 B waiting to be written
syncing: 0 of 1 resources done, 500 objects, 500/s, 1.0 MiB waiting to be written
here pods: synced in 3s: 600 objects, 600 added, 0 updated, 0 deleted, 0 unchanged
600 objects of 1 resources; per second +0 ~5 -0; in all 600 added, 50 updated, 0 deleted, 0 unchanged; 0 B waiting to be written
here: 1 Current; 600 objects, 0 B waiting to be written
`, to.String())
}

// Without a terminal, a line now and then says what the first sync waits for.
func TestLinesWhileNothingComes(t *testing.T) {
	to := newOutput()
	a := row{place: place{cluster: "far"}, phase: "discovering", problem: "connection refused", retry: "asked again in 15s"}
	began := time.Unix(0, 0)
	d := newDisplay(to.screen, func() []row { return []row{a} }, began)
	for seconds := range 150 {
		d.Step(began.Add(time.Duration(seconds) * time.Second))
	}
	reminder := "syncing: 0 of 1 resources done\nmirror: still far: connection refused; asked again in 15s\n"
	require.Equal(t, "mirror: far: connection refused; asked again in 15s\nfar: discovering\n"+reminder+reminder, to.String())
}

func TestTroubles(t *testing.T) {
	var rows []row
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		rows = append(rows, newTestRow("here", name))
	}
	rows = append(rows, newTestRow("there", "a"))
	set := func(problem string, these ...int) {
		for _, i := range these {
			rows[i].problem = problem
		}
	}
	var told troubles
	require.Empty(t, told.News(rows))
	set("connection refused", 0, 1, 2, 3, 4, 5)
	set("forbidden", 6)
	require.Equal(t, []string{"here a, b, c, d and 2 more: connection refused", "there a: forbidden"}, told.News(rows))
	require.Empty(t, told.News(rows))
	set("EOF", 0)
	require.Equal(t, []string{"here a: EOF"}, told.News(rows))
	set("connection refused", 0)
	require.Empty(t, told.News(rows), "a reason is told once per trouble")
	set("", 0, 1, 6)
	require.Equal(t, []string{"here a, b: well again", "there a: well again"}, told.News(rows))
	set("connection refused", 1)
	require.Equal(t, []string{"here b: connection refused"}, told.News(rows), "a new trouble is told again")

	discovery := row{place: place{cluster: "far"}, problem: "down"}
	require.Equal(t, []string{"far: down"}, told.News(append(rows, discovery)))
	require.Equal(t, []string{"far: discovered"}, told.News(rows))
}

func TestSummary(t *testing.T) {
	good, bad, cut := newTestRow("here", "pods"), newTestRow("here", "secrets"), newTestRow("there", "pods")
	good.synced, good.rows, good.took = true, 30000, 1234*time.Millisecond
	good.counts = counts{added: 29000, updated: 12, deleted: 3, unchanged: 988}
	bad.failed, bad.problem, bad.took = true, "403 Forbidden", 2*time.Second
	var out bytes.Buffer
	synced, err := writeSummary(&out, []row{good, bad, cut}, 5*time.Second)
	require.NoError(t, err)
	require.False(t, synced)
	require.Equal(t, strings.TrimPrefix(`
CLUSTER  RESOURCE       OBJECTS      ADDED    UPDATED    DELETED  UNCHANGED     TIME  RESULT
here     pods            30,000     29,000         12          3        988    1.23s  synced
here     secrets              0          0          0          0          0       2s  FAILED: 403 Forbidden
there    pods                 0          0          0          0          0       0s  FAILED: interrupted
total    3 resources     30,000     29,000         12          3        988       5s  1 synced, 2 failed
`, "\n"), out.String())
}

// The live block is drawn over itself, and lasting lines appear above it.
func TestScreen(t *testing.T) {
	var out bytes.Buffer
	s := liveScreen(&out, 10, 24)
	s.Draw([]string{"one", "two is cut here"})
	s.Print("lasting")
	s.Draw([]string{"three"})
	s.Draw(nil)
	s.Draw(nil)
	const up1, up2 = "\x1b[1A\r\x1b[J", "\x1b[2A\r\x1b[J"
	require.Equal(t, "one\ntwo is cu\n"+up2+"lasting\none\ntwo is cu\n"+up2+"three\n"+up1, out.String())
}
