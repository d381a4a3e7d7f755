package tests_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"
)

// process is the test binary, run again to play a role.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

const (
	roleVariable   = "INFORMER_TEST_ROLE"
	pathVariable   = "INFORMER_TEST_PATH"
	serverVariable = "INFORMER_TEST_SERVER"
	caVariable     = "INFORMER_TEST_CA"
)

var roles = map[string]func(t require.TestingT, path string){}

// role has processes of that name call does. It is for package variables.
func role(name string, does func(t require.TestingT, path string)) bool {
	roles[name] = does
	return true
}

// TestMain runs the tests of a package, which leave no goroutine. In a process with a role, it
// plays that.
func TestMain(m *testing.M) {
	if name := os.Getenv(roleVariable); name != "" {
		roles[name](processT{}, os.Getenv(pathVariable))
		return
	}
	goleak.VerifyTestMain(m)
}

// processT is what a test is to a process.
type processT struct{}

func (processT) Errorf(format string, args ...interface{}) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}
func (processT) FailNow() { os.Exit(1) }

// newProcess is a process that waits to be started.
func newProcess(t *testing.T, role, path string) *process {
	t.Helper()
	binary, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(binary)
	// The race detector sleeps for a second at the end of a process.
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", roleVariable+"="+role, pathVariable+"="+path)
	cmd.Stderr = os.Stderr
	return &process{t: t, cmd: cmd}
}

func startProcess(t *testing.T, role, path string) *process {
	t.Helper()
	p := newProcess(t, role, path)
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.lines = bufio.NewScanner(stdout)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() { // if the test has failed
		p.kill()
		_ = p.cmd.Wait()
	})
	return p
}

// line is the next line that it prints, or empty after the last.
func (p *process) line() string {
	p.lines.Scan()
	return p.lines.Text()
}

func (p *process) kill() { _ = p.cmd.Process.Kill() }

// wait waits until it was killed.
func (p *process) wait() {
	p.t.Helper()
	var exit *exec.ExitError
	require.ErrorAs(p.t, p.cmd.Wait(), &exit)
	require.Equal(p.t, -1, exit.ExitCode(), "it failed before it was killed")
}

// passServer tells the processes that the test starts from now on how to reach a server.
func passServer(t *testing.T, config *rest.Config) {
	t.Helper()
	t.Setenv(serverVariable, config.Host)
	t.Setenv(caVariable, string(config.CAData))
}

// passedServer is the server that passServer told this process of.
func passedServer() *rest.Config {
	return &rest.Config{Host: os.Getenv(serverVariable), QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(os.Getenv(caVariable))}}
}
