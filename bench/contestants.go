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

// binaries is the directory in bench where the contestants' programs are built. The go command does
// not link a program again that is up to date there.
const binaries = "bin"

// contestant is one, and the program that it is in.
type contestant struct {
	race.Entry
	program string
}

// contestants are some, in the order of the tables.
type contestants []contestant

// buildContestants builds programs, and asks them which contestants they have.
func buildContestants(ctx context.Context, programs ...string) (all contestants, err error) {
	dir, err := filepath.Abs(binaries)
	if err != nil {
		return nil, err
	}
	args := []string{"build", "-o", dir + string(filepath.Separator)}
	for _, name := range programs {
		args = append(args, "./contestants/"+name)
	}
	if output, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the contestants (in the directory bench): %w\n%s", err, output)
	}
	for _, name := range programs {
		program := filepath.Join(dir, name)
		var entries []race.Entry
		if err := tell(ctx, program, race.Order{}, &entries); err != nil {
			return nil, err
		}
		for _, e := range entries {
			all = append(all, contestant{e, program})
		}
	}
	return all, nil
}

// named is the contestant with a name that one of the programs has.
func (c contestants) named(name string) contestant {
	i := slices.IndexFunc(c, func(e contestant) bool { return e.Name == name })
	if i < 0 {
		panic(fmt.Sprintf("there is no contestant %q", name))
	}
	return c[i]
}

// run has a contestant obey an order in a process of its own.
func (c contestant) run(ctx context.Context, o race.Order) (r race.Result, err error) {
	before, err := usage(ctx, o.Target)
	if err != nil {
		return r, err
	}
	o.Contestant = c.Name
	if err := tell(ctx, c.program, o, &r); err != nil {
		return r, fmt.Errorf("%s %s: %w", o.Contestant, o.Scenario, err)
	}
	after, err := usage(ctx, o.Target)
	r.ServerCPU, r.Requests, r.ServerBytes = after.CPU-before.CPU, after.Requests-before.Requests, after.Bytes-before.Bytes
	return r, err
}

func usage(ctx context.Context, target race.Target) (extra.Usage, error) {
	if target.Control == "" {
		return extra.Usage{CPU: race.CPUTimeOf(target.PIDs)}, nil
	}
	return extra.Control(ctx, target.Control, extra.UsagePath)
}

// tell gives an order to a program, and reads the answer.
func tell(ctx context.Context, program string, o, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	input, err := json.Marshal(o)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(program), err)
	}
	return json.Unmarshal(output, answer)
}
