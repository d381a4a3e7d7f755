package script_test

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/informertest/script"
	"github.com/rvinformer/informer/tests/harness"
)

var update = flag.Bool("update", false, "write the table of docs/proof.md anew")

const (
	proof      = "../../docs/proof.md"
	tableBegin = "<!-- scenarios: go test -C informertest/script -run TestScenarioTable . -args -update -->\n"
	tableEnd   = "<!-- end of scenarios -->\n"
)

// varies is what the table says of an informer that a scenario breaks in one play and not in the
// next: goroutines take their turns anew each time. Once it is there, -update leaves it there.
const varies = "varies"

// TestScenarioTable plays each scenario with an informer of client-go, and compares what the oracle
// says of it with docs/proof.md. With ours each scenario holds: TestScenarios fails otherwise.
func TestScenarioTable(t *testing.T) {
	harness.SurvivePanics(t)
	text, err := os.ReadFile(proof)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), tableBegin)
	require.True(t, ok, "%s has no table", proof)
	is, after, ok := strings.Cut(rest, tableEnd)
	require.True(t, ok, "the table of %s has no end", proof)
	said := rowsOf(is)
	if *update {
		table := scenarioTable(t, func(s *script.Script) string { return wonted(t, s, said[scenarioName(s)]) })
		require.NoError(t, os.WriteFile(proof, []byte(before+tableBegin+table+tableEnd+after), 0o644))
		return
	}
	table := scenarioTable(t, func(s *script.Script) string {
		if verdict := said[scenarioName(s)]; verdict != "" && !isClientGoOfTable() {
			return verdict
		}
		return confirmed(t, s, said[scenarioName(s)])
	})
	require.Equal(t, is, table, "go test -C informertest/script -run TestScenarioTable . -args -update")
}

// scenarioTable is the table, with what clientGo says in its last column.
func scenarioTable(t *testing.T, clientGo func(s *script.Script) string) string {
	var table strings.Builder
	fmt.Fprintf(&table, "| scenario | | ours | client-go %s |\n|---|---|---|---|\n", clientGoOfTable)
	for _, s := range readScenarios(t) {
		fmt.Fprintf(&table, "| `%s` | %s | holds | %s |\n", scenarioName(s), s.Title, clientGo(s))
	}
	return table.String()
}

// clientGoOfTable is the version of client-go that the table is about. With another one, what the
// table says of client-go is neither checked nor written anew.
const clientGoOfTable = "v0.37.2"

func isClientGoOfTable() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.ContainsFunc(info.Deps, func(m *debug.Module) bool {
		return m.Path == "k8s.io/client-go" && m.Version == clientGoOfTable
	})
}

// rowsOf is the last column of a table, by scenario.
func rowsOf(table string) map[string]string {
	rows := map[string]string{}
	for line := range strings.Lines(table) {
		if cells := strings.Split(strings.TrimSuffix(line, " |\n"), " | "); len(cells) == 4 {
			rows[strings.Trim(cells[0], "| `")] = cells[3]
		}
	}
	return rows
}

// confirmed is what was said of client-go, if one of some plays comes to that.
func confirmed(t *testing.T, s *script.Script, said string) string {
	if said == varies {
		return varies
	}
	got := ""
	for range 4 {
		if got = clientGoVerdict(t, s); got == said {
			break
		}
	}
	return got
}

// wonted is what ten plays with client-go come to.
func wonted(t *testing.T, s *script.Script, said string) string {
	if said == varies || said != "" && !isClientGoOfTable() {
		return said
	}
	first := clientGoVerdict(t, s)
	for range 9 {
		if clientGoVerdict(t, s) != first {
			return varies
		}
	}
	return first
}

// clientGoVerdict is what a scenario comes to with client-go, in a few words. Its informers have no
// shards.
func clientGoVerdict(t *testing.T, s *script.Script) string {
	if s.HasShards() {
		return "has no shards"
	}
	result, err := play(t, s, script.ClientGo)
	if err != nil {
		return err.Error()
	}
	var broken []string
	for _, v := range result.Violations {
		broken = append(broken, v.Guarantee)
	}
	for _, m := range result.Missed {
		broken = append(broken, "`"+m.Text+"`")
	}
	slices.Sort(broken)
	broken = slices.Compact(broken)
	if len(broken) == 0 {
		return "holds"
	}
	return "breaks " + strings.Join(broken, ", ")
}
