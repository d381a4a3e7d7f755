package display

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// newLines is a screen that is no terminal, and what was written to it.
func newLines() (*Screen, *bytes.Buffer) {
	var all bytes.Buffer
	return NewScreen(&all, &all), &all
}

func newTestRow(cluster, resource string) Row {
	return Row{Place: Place{Cluster: cluster, Resource: schema.GroupResource{Resource: resource}}}
}

// liveScreen is a terminal of that size.
func liveScreen(out *bytes.Buffer, width, height int) *Screen {
	return &Screen{out: out, errs: out, size: func() (int, int) { return width, height }}
}

func TestBlock(t *testing.T) {
	slow, fast, done := newTestRow("here", "nodes"), newTestRow("there", "pods"), newTestRow("here", "pods")
	done.Synced, done.Counts.Added, done.Objects = true, 10, 10
	began := time.Unix(0, 0)
	d := New(liveScreen(&bytes.Buffer{}, 100, 10), nil, began)
	slow.Counts.Added, slow.Problem, slow.Retry = 3, "connection refused", "tried again"
	fast.Counts.Added, fast.Queued = 12000, 3<<20
	require.Equal(t, []string{
		"syncing: 1 of 3 done, 12,013 objects, 6,007/s, 3.0 MiB waiting to be written, 2s",
		"  here nodes: connection refused; tried again",
		"  there pods: 12,000 objects, 3.0 MiB waiting to be written",
	}, d.block([]Row{slow, done, fast}, began.Add(2*time.Second)))

	slow.Synced, slow.Problem, fast.Synced, fast.Counts.Updated = true, "", true, 4
	d.syncing, d.shown, d.shownAt = false, Counts{Added: 12011}, began
	require.Equal(t, "10 objects; per second +1 ~2 -0; in all 12,013 added, 4 updated, 0 deleted, 0 unchanged; 3.0 MiB waiting to be written",
		d.block([]Row{slow, done, fast}, began.Add(2*time.Second))[0])
}

// Without a terminal there are lines: progress, what is synced, and from then on events now and
// then.
func TestLines(t *testing.T) {
	screen, to := newLines()
	a := newTestRow("here", "pods")
	now := time.Unix(0, 0)
	d := New(screen, func() []Row { return []Row{a} }, now)
	step := func(after time.Duration) {
		now = now.Add(after)
		d.Step(now)
	}

	step(time.Second) // nothing has happened yet
	a.Counts.Added, a.Counts.Unchanged, a.Queued = 400, 100, 1<<20
	step(time.Second)
	step(time.Second) // nothing new
	a.Counts.Added, a.Counts.Unchanged, a.Queued, a.Objects = 600, 0, 0, 600
	a.Synced, a.Took = true, 3*time.Second
	step(time.Second)
	a.Counts.Updated = 50
	step(5 * time.Second) // too early for a line of events
	step(5 * time.Second)
	step(10 * time.Second) // no events

	require.Equal(t, `syncing: 0 of 1 done, 500 objects, 250/s, 1.0 MiB waiting to be written, 2s
here pods: synced in 3s: 600 objects, 600 added, 0 updated, 0 deleted, 0 unchanged
600 objects; per second +0 ~5 -0; in all 600 added, 50 updated, 0 deleted, 0 unchanged; 0 B waiting to be written
`, to.String())
}

// Without a terminal, a line now and then says what the first sync waits for.
func TestLinesWhileNothingComes(t *testing.T) {
	screen, to := newLines()
	a := Row{Place: Place{Cluster: "far"}, Problem: "connection refused", Retry: "tried again within a minute"}
	began := time.Unix(0, 0)
	d := New(screen, func() []Row { return []Row{a} }, began)
	for seconds := range 150 {
		d.Step(began.Add(time.Duration(seconds) * time.Second))
	}
	reminder := "syncing: 0 of 1 done, 0 objects, 0/s, 0 B waiting to be written, %dm0s\nmirror: still far: connection refused; tried again within a minute\n"
	require.Equal(t, "mirror: far: connection refused; tried again within a minute\n"+fmt.Sprintf(reminder, 1)+fmt.Sprintf(reminder, 2), to.String())
}

func TestTroubles(t *testing.T) {
	var rows []Row
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		rows = append(rows, newTestRow("here", name))
	}
	rows = append(rows, newTestRow("there", "a"))
	set := func(problem string, these ...int) {
		for _, i := range these {
			rows[i].Problem = problem
		}
	}
	told := troubles{}
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

	discovery := Row{Place: Place{Cluster: "far"}, Problem: "down"}
	require.Equal(t, []string{"far: down"}, told.News(append(rows, discovery)))
	require.Equal(t, []string{"far: that is over"}, told.News(rows))
}

func TestSummary(t *testing.T) {
	good, bad, cut := newTestRow("here", "pods"), newTestRow("here", "secrets"), newTestRow("there", "pods")
	good.Synced, good.Objects, good.Took = true, 30000, 1234*time.Millisecond
	good.Counts = Counts{Added: 29000, Updated: 12, Deleted: 3, Unchanged: 988}
	bad.Failed, bad.Problem, bad.Took = true, "403 Forbidden", 2*time.Second
	var out bytes.Buffer
	synced, err := WriteSummary(&out, []Row{good, bad, cut}, 5*time.Second)
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

// A block that is higher than the terminal is cut, and so is one that is drawn again after the terminal
// has become lower.
func TestBlockIsCut(t *testing.T) {
	block := make([]string, 40)
	for height, want := range map[int]int{0: 3, 4: 3, 5: 3, 6: 4, 24: 22, 42: 40, 50: 40} {
		var out bytes.Buffer
		s := liveScreen(&out, 10, height)
		s.Draw(block)
		require.Equal(t, strings.Repeat("\n", want), out.String(), "height %d", height)
		s.Draw(nil)
		require.Equal(t, fmt.Sprintf("\x1b[%dA\r\x1b[J", want), strings.TrimLeft(out.String(), "\n"))
	}
	var out bytes.Buffer
	s := liveScreen(&out, 10, 24)
	s.Draw(block)
	s.size = func() (int, int) { return 10, 12 }
	s.Print("lasting")
	require.Equal(t, strings.Repeat("\n", 22)+"\x1b[22A\r\x1b[Jlasting\n"+strings.Repeat("\n", 10), out.String())
}
