package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// readSurvivors reads the mutants that no test has to kill: a line for each, and after
// it, indented, why. Lines that begin with # are comments.
func readSurvivors(path string) (map[string]bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	known, last, explained := map[string]bool{}, "", true
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.TrimSpace(line) == "", strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "\t"):
			explained = true
		default:
			if !explained {
				return nil, fmt.Errorf("%s: %q has no explanation", path, last)
			}
			last, explained = line, false
			known[line] = true
		}
	}
	if !explained {
		return nil, fmt.Errorf("%s: %q has no explanation", path, last)
	}
	return known, lines.Err()
}
