package main

import "strings"

// maxReason is how many lines of a failure are told again.
const maxReason = 8

// The beginnings of lines that tell why a test failed, the best first: an assertion of testify, the
// race detector, a panic, an error of the testing package. The logs of a server may stand before
// it, and after it.
var reasons = []string{"Error Trace:", "WARNING: DATA RACE", "panic: ", "_test.go:"}

// reason returns the first lines of a test's output that tell why it failed, so that they stand at
// the end as well, where people look. It is empty if there are none.
func reason(output string) string {
	lines := strings.SplitAfter(output, "\n")
	for _, mark := range reasons {
		for i, line := range lines {
			if strings.Contains(line, mark) {
				return strings.TrimSuffix(strings.Join(lines[i:min(i+maxReason, len(lines))], ""), "\n") + "\n"
			}
		}
	}
	return ""
}
