package harness

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	_ "github.com/rvinformer/informer/internal/testkit/rapidseed"
)

// Process is the test binary, run again to play a role.
type Process struct {
	t     *testing.T
	Cmd   *exec.Cmd
	lines *bufio.Scanner
}

const (
	roleVariable   = "INFORMER_TEST_ROLE"
	pathVariable   = "INFORMER_TEST_PATH"
	serverVariable = "INFORMER_TEST_SERVER"
	caVariable     = "INFORMER_TEST_CA"
)

// roles are what processes do, by the name of the role.
var roles = map[string]func(t require.TestingT, path string){}

// Role has processes of that name call does. It is for package variables.
func Role(name string, does func(t require.TestingT, path string)) bool {
	roles[name] = does
	return true
}

// Main runs the tests of a package, which leave no goroutine. In a process with a role, it
// plays that.
func Main(m *testing.M) {
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

// NewProcess is a process that waits to be started.
func NewProcess(t *testing.T, role, path string) *Process {
	t.Helper()
	binary, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(binary)
	// The race detector sleeps for a second at the end of a process.
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", roleVariable+"="+role, pathVariable+"="+path)
	cmd.Stderr = os.Stderr
	return &Process{t: t, Cmd: cmd}
}

// StartProcess starts a process, which is killed at the end of the test.
func StartProcess(t *testing.T, role, path string) *Process {
	t.Helper()
	p := NewProcess(t, role, path)
	stdout, err := p.Cmd.StdoutPipe()
	require.NoError(t, err)
	p.lines = bufio.NewScanner(stdout)
	require.NoError(t, p.Cmd.Start())
	t.Cleanup(func() { // if the test has failed
		p.Kill()
		_ = p.Cmd.Wait()
	})
	return p
}

// Line is the next line that it prints, or empty after the last.
func (p *Process) Line() string {
	p.lines.Scan()
	return p.lines.Text()
}

// Kill kills it. It does not wait.
func (p *Process) Kill() { _ = p.Cmd.Process.Kill() }

// Wait waits until it has ended, and requires that it was killed.
func (p *Process) Wait() {
	p.t.Helper()
	var exit *exec.ExitError
	require.ErrorAs(p.t, p.Cmd.Wait(), &exit)
	require.Equal(p.t, -1, exit.ExitCode(), "it failed before it was killed")
}

// PassServer tells the processes that the test starts from now on how to reach a server.
func PassServer(t *testing.T, config *rest.Config) {
	t.Helper()
	t.Setenv(serverVariable, config.Host)
	t.Setenv(caVariable, string(config.CAData))
}

// PassedServer is the server that PassServer told this process of.
func PassedServer() *rest.Config {
	return &rest.Config{Host: os.Getenv(serverVariable), QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(os.Getenv(caVariable))}}
}
