// Mutants changes the library in one small place at a time and runs the tests: a change
// that no test notices has survived. It fails if a survivor is not in survivors.txt.
//
//	go run ./internal/testkit/mutants -n 60                       # a sample of all core packages
//	go run ./internal/testkit/mutants -n 0 internal/engine/deltaqueue    # every mutant of a package
//	go run ./internal/testkit/mutants -only 'resume.go Drained'   # those whose names contain a text
//	go run ./internal/testkit/mutants -with ./tests/delivery internal/edge/redelivery # and the tests that know it
//
// The changed file takes the place of its original in an overlay, so that the tree stays as it is.
// A mutant is first tried with the tests of its own package, then with those of tests, with the
// scenarios, and with those of objectcache; with -with, only with these. One that does not compile
// does not count.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// core are the packages that are mutated by default.
var core = []string{
	".", "fleet/shards", "internal/leaf/backoff", "internal/engine/blame", "internal/leaf/budget", "internal/leaf/checkpoint", "internal/engine/deltaqueue", "internal/edge/fanout", "internal/engine/flow", "internal/engine/follower", "internal/engine/intake",
	"internal/engine/journal", "internal/engine/keeper", "internal/leaf/keytable", "internal/engine/known", "internal/engine/listwatch", "internal/engine/object", "internal/leaf/prune", "internal/engine/recency",
	"internal/edge/redelivery", "internal/edge/report", "internal/leaf/rv", "internal/engine/server", "internal/engine/sink", "internal/engine/source", "internal/edge/userqueue", "internal/leaf/wire", "objectcache",
}

// spared is not mutated: it checks the key table, under a build tag that is not set here.
const spared = "internal/leaf/keytable/check.go"

// later are the tests for what the tests of its own package leave alive.
var later = [][]string{{"./tests/..."}, {"./informertest/script", "-run", "Scenarios"}, {"./objectcache"}}

type config struct {
	n       int
	seed    uint64
	only    string
	known   string
	timeout time.Duration
	list    bool
	near    bool
	with    string
	dirs    []string
}

func main() {
	c := config{dirs: core}
	flag.IntVar(&c.n, "n", 60, "number of mutants; 0: all")
	flag.Uint64Var(&c.seed, "seed", uint64(time.Now().Unix()), "of the sample")
	flag.StringVar(&c.only, "only", "", "part of the names of the mutants to try")
	flag.StringVar(&c.known, "known", "internal/testkit/mutants/survivors.txt", "file of the survivors that are explained")
	flag.DurationVar(&c.timeout, "timeout", 5*time.Minute, "for the tests of a package")
	flag.BoolVar(&c.list, "list", false, "only print the names of the mutants")
	flag.BoolVar(&c.near, "near", false, "run only the tests of the mutated package")
	flag.StringVar(&c.with, "with", "", "run only the tests of the mutated package and of this one")
	flag.Parse()
	if flag.NArg() > 0 {
		c.dirs = flag.Args()
	}
	survivors, err := run(c)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if survivors > 0 {
		fmt.Fprintf(os.Stderr, "mutants: %d survived that %s does not explain\n", survivors, c.known)
		os.Exit(1)
	}
}

// run tries a sample and returns the number of survivors without an explanation.
func run(c config) (survivors int, err error) {
	known, err := readSurvivors(c.known)
	if err != nil {
		return 0, err
	}
	sample, err := c.mutants()
	if err != nil {
		return 0, err
	}
	c.reportGone(known, sample)
	if c.list {
		for _, m := range sample {
			fmt.Println(m.id)
		}
		return 0, nil
	}
	rand.New(rand.NewPCG(c.seed, 0)).Shuffle(len(sample), func(i, j int) { sample[i], sample[j] = sample[j], sample[i] })
	work, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(work)
	if err := c.checkUnchanged(sample); err != nil {
		return 0, err
	}
	fmt.Printf("seed %d, %d mutants\n", c.seed, len(sample))
	tried := 0
	for _, m := range sample {
		if c.n > 0 && tried == c.n {
			break
		}
		if known[m.id] {
			continue
		}
		began := time.Now()
		v, err := c.try(work, m)
		if err != nil {
			return survivors, err
		}
		if v == uncompiled {
			continue
		}
		tried++
		if v == survived {
			survivors++
		}
		fmt.Printf("%-9s%5.0fs  %s\n", v, time.Since(began).Seconds(), m.id)
	}
	return survivors, nil
}

// reportGone names the survivors that are not mutants any more: their lines can go.
func (c config) reportGone(known map[string]bool, all []mutant) {
	if c.only != "" {
		return
	}
	gone := maps.Clone(known)
	for _, m := range all {
		delete(gone, m.id)
	}
	for _, id := range slices.Sorted(maps.Keys(gone)) {
		file, _, _ := strings.Cut(id, " ")
		if slices.Contains(c.dirs, filepath.Dir(file)) {
			fmt.Printf("%-16s %s\n", "no longer there", id)
		}
	}
}

// mutants are all mutants of the packages, of the files without build constraints.
func (c config) mutants() (all []mutant, err error) {
	for _, dir := range c.dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			if file == spared || strings.HasSuffix(file, "_test.go") || strings.Contains(string(text), "//go:build") {
				continue
			}
			of, err := mutate(file, text)
			if err != nil {
				return nil, err
			}
			for _, m := range of {
				if strings.Contains(m.id, c.only) {
					all = append(all, m)
				}
			}
		}
	}
	return all, nil
}

// stages are the arguments of the calls of go test for a mutant of a file.
func (c config) stages(file string) [][]string {
	own := "./" + filepath.ToSlash(filepath.Dir(file))
	if own == "./." {
		own = "."
	}
	stages := [][]string{{own}}
	if c.with != "" {
		return append(stages, []string{c.with})
	}
	for _, tests := range later {
		if !c.near && tests[0] != own {
			stages = append(stages, tests)
		}
	}
	return stages
}

// checkUnchanged runs the tests without a mutant: only where they pass, a failure says
// something.
func (c config) checkUnchanged(sample []mutant) error {
	ran := map[string]bool{}
	for _, m := range sample {
		for _, tests := range c.stages(m.file) {
			if ran[tests[0]] {
				continue
			}
			ran[tests[0]] = true
			if output, err := c.test(tests); err != nil {
				return fmt.Errorf("without a mutant: %w\n%s", err, output)
			}
		}
	}
	return nil
}

type verdict string

const (
	killed     verdict = "killed"
	survived   verdict = "SURVIVED"
	uncompiled verdict = "uncompiled"
)

// try runs the tests with a mutant in place.
func (c config) try(work string, m mutant) (verdict, error) {
	original, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(work, "mutant.go"), filepath.Join(work, "overlay.json")
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(changed, m.changed, 0o600); err != nil {
		return "", err
	}
	if err := os.WriteFile(overlay, replaced, 0o600); err != nil {
		return "", err
	}
	for _, tests := range c.stages(m.file) {
		output, err := c.test(tests, "-overlay", overlay)
		switch {
		case err != nil && strings.Contains(output, "[build failed]"):
			return uncompiled, nil
		case err != nil:
			return killed, nil
		}
	}
	return survived, nil
}

// test runs go test.
func (c config) test(tests []string, flags ...string) (output string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout+time.Minute)
	defer cancel()
	args := append([]string{"test", "-tags", "wirepoison", "-vet=off", "-failfast", "-timeout", c.timeout.String()}, flags...)
	command := exec.CommandContext(ctx, "go", append(args, tests...)...)
	text, err := command.CombinedOutput()
	return string(text), err
}
