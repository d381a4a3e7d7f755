package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

// machine runs the tests of informertest/script as WebAssembly. Nothing there depends on the real
// machine: there is one thread, which nothing interrupts; its clock counts how often it was read;
// all randomness, that of the Go runtime too, begins with a seed.
type machine struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
}

// variables are the environment variables that tests see.
type variables map[string]string

// newMachine builds the tests of the informer whose module is in dir, and a machine for them.
func newMachine(ctx context.Context, dir string) (*machine, error) {
	code, err := build(ctx, dir)
	if err != nil {
		return nil, err
	}
	m := &machine{runtime: wazero.NewRuntime(ctx)}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, m.runtime); err != nil {
		return nil, errors.Join(err, m.close(ctx))
	}
	m.module, err = m.runtime.CompileModule(experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0)), code)
	if err != nil {
		return nil, errors.Join(err, m.close(ctx))
	}
	return m, nil
}

func (m *machine) close(ctx context.Context) error { return m.runtime.Close(ctx) }

// build returns the test binary.
func build(ctx context.Context, dir string) ([]byte, error) {
	temp, err := os.MkdirTemp("", "replay")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	file := filepath.Join(temp, "script.wasm")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-tags=wirepoison", "-ldflags=-s", "-o", file, "./informertest/script")
	cmd.Dir = dir
	// GOFLAGS may ask for the race detector, which WebAssembly has not.
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	if output, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the scripts for WebAssembly: %w\n%s", err, output)
	}
	return os.ReadFile(file)
}

// play runs one test. It depends on its arguments alone, and on the script that INFORMER_SCRIPT
// names. The error is that of a test that fails.
func (m *machine) play(ctx context.Context, test string, vars variables, out io.Writer) error {
	config := wazero.NewModuleConfig().WithName("").
		WithArgs("script.test", "-test.v", "-test.run", "^"+test+"$").
		WithStdout(out).WithStderr(out).
		WithRandSource(randomness(vars)).
		WithEnv("PWD", "/")
	files := wazero.NewFSConfig()
	for name, value := range vars {
		if name == "INFORMER_SCRIPT" {
			files = files.WithReadOnlyDirMount(filepath.Dir(value), "/script")
			value = "/script/" + filepath.Base(value)
		}
		config = config.WithEnv(name, value)
	}
	instance, err := m.runtime.InstantiateModule(ctx, m.module, config.WithFSConfig(files))
	if exit, ok := errors.AsType[*sys.ExitError](err); ok {
		if exit.ExitCode() == 0 {
			return nil
		}
		return fmt.Errorf("%s fails", test)
	}
	if err != nil {
		return err
	}
	return instance.Close(ctx)
}

// randomness is that of a seed or day: others try other turns of the goroutines.
func randomness(vars variables) io.Reader {
	return rand.NewChaCha8(sha256.Sum256([]byte(vars["INFORMER_SEED"] + " " + vars["INFORMER_DAY"])))
}

// firstDifference is the first line in which two outputs differ, with what each has there; empty if
// they are equal.
func firstDifference(one, other []byte) string {
	a, b := bytes.Split(one, []byte("\n")), bytes.Split(other, []byte("\n"))
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a) || i >= len(b):
			return fmt.Sprintf("one ends in line %d", i)
		case !bytes.Equal(a[i], b[i]):
			return fmt.Sprintf("line %d:\n%s\n%s", i+1, a[i], b[i])
		}
	}
	return ""
}

// ofEnvironment are the variables of this library in an environment.
func ofEnvironment(environment []string) variables {
	vars := variables{}
	for _, v := range environment {
		if name, value, _ := strings.Cut(v, "="); strings.HasPrefix(name, "INFORMER_") {
			vars[name] = value
		}
	}
	return vars
}

func (v variables) String() string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(v)) {
		texts = append(texts, name+"="+v[name])
	}
	return strings.Join(texts, " ")
}
