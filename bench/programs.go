package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/rvinformer/informer/bench/podserver/extra"
	"github.com/rvinformer/informer/bench/race"
)

// runTimeout is for a run that hangs.
const runTimeout = 15 * time.Minute

// entry is a contestant and the program that it is in.
type entry struct {
	race.Entry
	program string
}

// binaries is the directory in bench where the contestants' programs are built. The go command does
// not link a program again that is up to date there.
const binaries = "bin"

// programs are the contestants' programs.
type programs struct {
	dir     string
	entries []entry // in the order of the tables
}

// buildPrograms builds the programs from the sources in this directory.
func buildPrograms(ctx context.Context) (*programs, error) {
	return buildContestants(ctx, []string{"./contestants/..."}, "floor", "floorcopies", "ours", "ourstyped", "clientgo", "stores")
}

// buildContestants builds packages, and asks the programs with these names which contestants they
// have.
func buildContestants(ctx context.Context, packages []string, names ...string) (*programs, error) {
	dir, err := filepath.Abs(binaries)
	if err != nil {
		return nil, err
	}
	p := &programs{dir: dir}
	build := exec.CommandContext(ctx, "go", append([]string{"build", "-o", dir + string(filepath.Separator)}, packages...)...)
	if output, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the contestants (in the directory bench): %w\n%s", err, output)
	}
	for _, name := range names {
		program := filepath.Join(dir, name)
		var entries []race.Entry
		if err := tell(ctx, program, race.Order{}, &entries); err != nil {
			return nil, err
		}
		for _, e := range entries {
			p.entries = append(p.entries, entry{e, program})
		}
	}
	return p, nil
}

// entry is the contestant with a name.
func (p *programs) entry(name string) (entry, error) {
	i := slices.IndexFunc(p.entries, func(e entry) bool { return e.Name == name })
	if i < 0 {
		return entry{}, fmt.Errorf("there is no contestant %q", name)
	}
	return p.entries[i], nil
}

// run has a contestant obey an order in a process of its own.
func (e entry) run(ctx context.Context, o race.Order) (r race.Result, err error) {
	before, err := usage(ctx, o.Target)
	if err != nil {
		return r, err
	}
	o.Contestant = e.Name
	if err := tell(ctx, e.program, o, &r); err != nil {
		return r, fmt.Errorf("%s %s: %w", o.Contestant, o.Scenario, err)
	}
	after, err := usage(ctx, o.Target)
	r.ServerCPU, r.Requests, r.ServerBytes = after.CPU-before.CPU, after.Requests-before.Requests, after.Bytes-before.Bytes
	return r, err
}

func usage(ctx context.Context, target race.Target) (extra.Usage, error) {
	if !target.Simulated {
		return extra.Usage{CPU: race.CPUTimeOf(target.PIDs)}, nil
	}
	return extra.UsageOf(ctx, target.Config())
}

// tell gives an order to a program, and reads the answer. The program has env beside the
// environment of this one.
func tell(ctx context.Context, program string, o, answer any, env ...string) error {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	input, err := json.Marshal(o)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Stdin, cmd.Stderr, cmd.Env = bytes.NewReader(input), os.Stderr, append(os.Environ(), env...)
	output, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(program), err)
	}
	return json.Unmarshal(output, answer)
}
