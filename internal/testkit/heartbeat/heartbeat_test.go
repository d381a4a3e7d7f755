package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// helper makes this test binary the command that heartbeat runs.
const helper = "HEARTBEAT_HELPER"

func TestMain(m *testing.M) {
	switch os.Getenv(helper) {
	case "":
		os.Exit(m.Run())
	case "fails":
		os.Exit(3)
	case "killed":
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		panic(err)
	}
}

func TestExitCodeIsThatOfTheCommand(t *testing.T) {
	for behaviour, code := range map[string]int{"succeeds": 0, "fails": 3, "killed": 1} {
		t.Run(behaviour, func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), helper+"="+behaviour)
			require.Equal(t, code, run(time.Minute, "", "x", cmd))
		})
	}
	t.Run("missing", func(t *testing.T) {
		require.Equal(t, 1, run(time.Minute, "", "x", exec.Command(os.Args[0]+"-missing")))
	})
}

// reported feeds lines to a report and returns what it printed.
func reported(t *testing.T, lines ...string) (*report, *strings.Builder) {
	t.Helper()
	var out strings.Builder
	r := newReport(&out, "unit", time.Now())
	for _, line := range lines {
		r.line(line + "\n")
	}
	return r, &out
}

func TestOtherOutputPassesThrough(t *testing.T) { synctest.Test(t, testOtherOutputPassesThrough) }

func testOtherOutputPassesThrough(t *testing.T) {
	r, out := reported(t, "go: downloading x", "{ not an event", `{"Key":"value"}`)
	r.beat(r.started.Add(75 * time.Second))
	r.end(r.started.Add(80*time.Second), 90*time.Second, nil)
	require.Equal(t, "unit 0:00 begins\ngo: downloading x\n{ not an event\n{\"Key\":\"value\"}\nunit 1:15 still runs\nunit 1:20 done, 90 s of CPU\n", out.String())
}

func TestPassingTestsPrintOneLineForEachPackage(t *testing.T) {
	synctest.Test(t, testPassingTestsPrintOneLineForEachPackage)
}

func testPassingTestsPrintOneLineForEachPackage(t *testing.T) {
	r, out := reported(t,
		`{"Action":"start","Package":"example.com/a"}`,
		`{"Action":"run","Package":"example.com/a","Test":"TestSlow"}`,
		`{"Action":"output","Package":"example.com/a","Test":"TestSlow","Output":"a line\n"}`,
		`{"Action":"pass","Package":"example.com/a","Test":"TestSlow","Elapsed":2}`,
		`{"Action":"run","Package":"example.com/a","Test":"TestQuick"}`,
		`{"Action":"pass","Package":"example.com/a","Test":"TestQuick","Elapsed":0.5}`,
		`{"Action":"output","Package":"example.com/a","Output":"ok  \texample.com/a\t(cached)\n"}`,
		`{"Action":"pass","Package":"example.com/a","Elapsed":3}`)
	r.end(r.started.Add(5*time.Second), 0, nil)
	require.Equal(t, "unit 0:00 begins\nunit 0:00 ok example.com/a 3.0s (cached)\n"+
		"unit 0:05 2 tests passed, 0 skipped; the slowest: a.TestSlow 2.0s, a.TestQuick 0.5s\nunit 0:05 done, 0 s of CPU\n", out.String())
}

func TestBeatNamesInnermostTestsThatRun(t *testing.T) {
	synctest.Test(t, testBeatNamesInnermostTestsThatRun)
}

func testBeatNamesInnermostTestsThatRun(t *testing.T) {
	r, out := reported(t,
		`{"Action":"start","Package":"example.com/a"}`,
		`{"Action":"run","Package":"example.com/a","Test":"TestOuter"}`,
		`{"Action":"run","Package":"example.com/a","Test":"TestOuter/paused"}`,
		`{"Action":"pause","Package":"example.com/a","Test":"TestOuter/paused"}`,
		`{"Action":"run","Package":"example.com/a","Test":"TestOuter/inner"}`,
		`{"Action":"start","Package":"example.com/b"}`)
	r.beat(time.Now().Add(20 * time.Second))
	require.Contains(t, out.String(), " 0 tests passed; now a.TestOuter/inner (20s), b (20s)\n")
}

func TestFailurePrintsItsOutput(t *testing.T) { synctest.Test(t, testFailurePrintsItsOutput) }

func testFailurePrintsItsOutput(t *testing.T) {
	r, out := reported(t,
		`{"Action":"start","Package":"example.com/a"}`,
		`{"Action":"run","Package":"example.com/a","Test":"TestFails"}`,
		`{"Action":"output","Package":"example.com/a","Test":"TestFails","Output":"wrong\n"}`,
		`{"Action":"fail","Package":"example.com/a","Test":"TestFails","Elapsed":1}`,
		`{"Action":"fail","Package":"example.com/a","Elapsed":1}`)
	r.end(r.started.Add(time.Second), 0, errors.New("exit status 1"))
	require.Contains(t, out.String(), "wrong\n")
	require.Contains(t, out.String(), "unit 0:01 FAILED a.TestFails\nunit 0:01 FAILED a\nunit 0:01 FAILED: exit status 1\n")
}

func TestTableHasOneRowForEachCommand(t *testing.T) {
	table := filepath.Join(t.TempDir(), "table.md")
	for _, name := range []string{"first", "second"} {
		require.Equal(t, 1, run(time.Minute, table, name, exec.Command("sh", "-c", `echo '{"Action":"skip","Package":"a","Test":"TestS"}'; exit 1`)))
	}
	text, err := os.ReadFile(table)
	require.NoError(t, err)
	require.Regexp(t, `^\| first \| 0 \| exit status 1 \| 1 \| 0:\d\d \|\n\| second \| .*\|\n$`, string(text))
}

func TestRowCountsTests(t *testing.T) { synctest.Test(t, testRowCountsTests) }

func testRowCountsTests(t *testing.T) {
	r, _ := reported(t,
		`{"Action":"pass","Package":"example.com/a","Test":"TestPasses/inner"}`,
		`{"Action":"pass","Package":"example.com/a","Test":"TestPasses"}`,
		`{"Action":"skip","Package":"example.com/a","Test":"TestSkips"}`,
		`{"Action":"fail","Package":"example.com/a","Test":"TestFails"}`,
		`{"Action":"fail","Package":"example.com/a"}`)
	require.Equal(t, "| unit | 2 | 1 | 1 | 1:05 |\n", r.row(r.started.Add(65*time.Second), errors.New("exit status 1")))
	r, _ = reported(t, `{"Action":"pass","Package":"example.com/a","Test":"TestPasses"}`)
	require.Equal(t, "| unit | 1 | 0 | 0 | 0:02 |\n", r.row(r.started.Add(2*time.Second), nil))
}

// The reason of a failure is printed a second time, after all output: a test may print a server's
// logs after it.
func TestFailureEndsWithItsReason(t *testing.T) {
	synctest.Test(t, testFailureEndsWithItsReason)
}

func testFailureEndsWithItsReason(t *testing.T) {
	for printed, again := range map[string]string{
		`    a_test.go:1: begins\n    a_test.go:2: \n        \tError Trace:\ta_test.go:2\n        \tError:      \tNot equal\nlogs\n`: "        \tError Trace:\ta_test.go:2\n        \tError:      \tNot equal\nlogs\n",
		`x\n    a_test.go:3: want 1\n`:                    "    a_test.go:3: want 1\n",
		`x\nWARNING: DATA RACE\n1\n2\n3\n4\n5\n6\n7\n8\n`: "WARNING: DATA RACE\n1\n2\n3\n4\n5\n6\n7\n",
		`x\npanic: boom`:                                  "panic: boom\n",
		`x\n`:                                             "",
	} {
		r, out := reported(t,
			`{"Action":"start","Package":"example.com/a"}`,
			`{"Action":"run","Package":"example.com/a","Test":"TestFails"}`,
			`{"Action":"output","Package":"example.com/a","Test":"TestFails","Output":"`+printed+`"}`,
			`{"Action":"fail","Package":"example.com/a","Test":"TestFails","Elapsed":1}`)
		r.end(r.started.Add(time.Second), 0, errors.New("exit status 1"))
		_, end, _ := strings.Cut(out.String(), "a.TestFails 1.0s\n")
		require.Equal(t, "unit 0:01 FAILED a.TestFails\n"+again+"unit 0:01 FAILED: exit status 1\n", end)
	}
}

func TestCrashPrintsOutputOfUnendedTests(t *testing.T) {
	_, out := reported(t,
		`{"Action":"start","Package":"example.com/a"}`,
		`{"Action":"run","Package":"example.com/a","Test":"TestCrashes"}`,
		`{"Action":"output","Package":"example.com/a","Test":"TestCrashes","Output":"panic: boom\n"}`,
		`{"Action":"output","Package":"example.com/a","Output":"FAIL\texample.com/a\n"}`,
		`{"Action":"fail","Package":"example.com/a","Elapsed":1}`)
	require.Contains(t, out.String(), "panic: boom\nFAIL\texample.com/a\n")
}

func TestBuildFailureIsPrinted(t *testing.T) {
	_, out := reported(t,
		`{"ImportPath":"example.com/a","Action":"build-output","Output":"a.go:1: undefined: x\n"}`,
		`{"ImportPath":"example.com/a","Action":"build-fail"}`)
	require.Contains(t, out.String(), "a.go:1: undefined: x\n")
}
