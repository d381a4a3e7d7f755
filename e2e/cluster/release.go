package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Variable is the environment variable with the minor version of Kubernetes that is asked for, such
// as 1.35. Without it, the servers are those of the newest version.
const Variable = "KUBERNETES"

// release is a version of Kubernetes, such as v1.35.4 and 1.35, and the go.mod file that requires it.
type release struct{ version, minor, file string }

// newest is the name of the go.mod file with the newest version.
const newest = "go.mod"

var required = regexp.MustCompile(`(?m)^\tk8s\.io/kubernetes (v(\d+\.\d+)\.\d+)$`)

// asked returns the version that the environment asks for, of those in the directory of sources.
func asked(sources string) (release, error) {
	minor := os.Getenv(Variable)
	all, err := available(sources)
	if err != nil {
		return release{}, err
	}
	for _, r := range all {
		if r.minor == minor || minor == "" && filepath.Base(r.file) == newest {
			return r, nil
		}
	}
	minors := make([]string, len(all))
	for i, r := range all {
		minors[i] = r.minor
	}
	return release{}, fmt.Errorf("%s is %q, and there are only %s", Variable, minor, strings.Join(minors, ", "))
}

// available returns the versions in the directory of sources, the oldest first.
func available(sources string) (all []release, err error) {
	files, err := filepath.Glob(filepath.Join(sources, "*.mod"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("versions of Kubernetes: %w", err)
		}
		m := required.FindSubmatch(text)
		if m == nil {
			return nil, fmt.Errorf("%s requires no version of k8s.io/kubernetes", file)
		}
		all = append(all, release{string(m[1]), string(m[2]), file})
	}
	slices.SortFunc(all, func(a, b release) int { return strings.Compare(a.minor, b.minor) })
	return all, nil
}
