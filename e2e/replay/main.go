// Replay plays a script, or a random day, of informertest/script. The same script and seed, and the
// same day, have the same history each time, to the last line: what has failed fails again.
//
//	INFORMER_DAY=7 go run -C e2e ./replay
//	INFORMER_SCRIPT=/tmp/script.txt INFORMER_SEED=3 go run -C e2e ./replay
//
// INFORMER_HISTORY=1 prints the history too, and INFORMER_MAKER names the kind of informer that
// plays a script.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

func main() {
	if err := replay(context.Background(), ofEnvironment(os.Environ())); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func replay(ctx context.Context, vars variables) (err error) {
	test := "TestThisDay"
	switch {
	case vars["INFORMER_SCRIPT"] != "":
		test = "TestThisScript"
	case vars["INFORMER_DAY"] == "":
		return errors.New("neither INFORMER_SCRIPT nor INFORMER_DAY says what to play")
	}
	dir, err := informerDir(ctx)
	if err != nil {
		return err
	}
	m, err := newMachine(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close(ctx)) }()
	return m.play(ctx, test, vars, os.Stdout)
}

// informerDir is where the informer's module is.
func informerDir(ctx context.Context) (string, error) {
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/rvinformer/informer").Output()
	if err != nil {
		return "", fmt.Errorf("looking for the informer: %w", err)
	}
	return strings.TrimSpace(string(dir)), nil
}
