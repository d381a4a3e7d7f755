package script_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/informertest/script"
)

var update = flag.Bool("update", false, "write the table of docs/guarantees.md anew")

const (
	guarantees = "../../docs/guarantees.md"
	tableBegin = "<!-- scenarios: go test -C informertest/script -run TestScenarioTable . -args -update -->\n"
	tableEnd   = "<!-- end of scenarios -->\n"
)

// TestScenarioTable plays each scenario with an informer of ours and with one of
// client-go, and compares what the oracle says of them with docs/guarantees.md.
func TestScenarioTable(t *testing.T) {
	survivePanics(t)
	text, err := os.ReadFile(guarantees)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), tableBegin)
	require.True(t, ok, "%s has no table", guarantees)
	is, after, ok := strings.Cut(rest, tableEnd)
	require.True(t, ok, "the table of %s has no end", guarantees)
	if *update {
		require.NoError(t, os.WriteFile(guarantees, []byte(before+tableBegin+scenarioTable(t)+tableEnd+after), 0o644))
		return
	}
	// Goroutines take their turns anew each time, and not all informers mind.
	for range 3 {
		if scenarioTable(t) == is {
			return
		}
	}
	require.Equal(t, is, scenarioTable(t), "go test -C informertest/script -run TestScenarioTable . -args -update")
}

func scenarioTable(t *testing.T) string {
	var table strings.Builder
	table.WriteString("| scenario | | ours | client-go v0.37.2 |\n|---|---|---|---|\n")
	for _, s := range readScenarios(t) {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", scenarioName(s), s.Title, verdict(t, s, script.Ours), verdict(t, s, script.ClientGo))
	}
	return table.String()
}

// verdict is what a scenario comes to, in a few words.
func verdict(t *testing.T, s *script.Script, make script.Maker) string {
	result, err := play(t, s, make)
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
