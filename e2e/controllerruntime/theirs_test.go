package controllerruntime

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
)

// oldest is the workspace of the oldest controller-runtime that works. The newest one is that of
// e2e's go.mod.
const oldest = "../../.ci/oldest.work"

// theirs are tests of controller-runtime.
type theirs struct {
	// work is the workspace that says which version they are of, empty for the newest.
	work string
	// suite is the directory here whose suite they join.
	suite string
	// files are what they are in, in controller-runtime's module.
	files []string
	// leastSpecs is how many specs there are at least.
	leastSpecs string
}

func TestTheirCacheTestsPass(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]string{"newest": "", "oldest": oldest} {
		t.Run(name, func(t *testing.T) {
			theirs{
				work:       work,
				suite:      "cachesuite",
				files:      []string{"pkg/cache/cache_test.go", "pkg/cache/informer_cache_test.go"},
				leastSpecs: `[2-9]\d\d`,
			}.pass(t)
		})
	}
}

// The oldest workspace has what controllerruntime requires, but for golang.org/x, which it has as all
// other modules do.
func TestOldestVersionsAreThoseOfControllerruntime(t *testing.T) {
	mod, err := os.ReadFile("../../controllerruntime/go.mod")
	require.NoError(t, err)
	text, err := os.ReadFile(oldest)
	require.NoError(t, err)
	work, err := modfile.ParseWork(oldest, text, nil)
	require.NoError(t, err)
	require.NotEmpty(t, work.Replace)
	for _, replace := range work.Replace {
		if strings.HasPrefix(replace.New.Path, "golang.org/x/") {
			continue
		}
		require.Contains(t, string(mod), replace.New.Path+" "+replace.New.Version)
	}
}

// The oldest controller-runtime cannot do that.
func TestTheirTestsOfReadYourOwnWritesPass(t *testing.T) {
	theirs{
		suite:      "clientsuite",
		files:      []string{"pkg/client/consistency_envtest_test.go"},
		leastSpecs: `1\d`,
	}.pass(t)
}

// constructor is what each suite has a newCache for.
var constructor = regexp.MustCompile(`\bcache\.New\b`)

// patience finds the time that these tests wait for something that comes. It is made a minute,
// because a slow machine with the race detector takes longer. The tests also wait to see that
// something does not come: the expression does not match that.
var patience = regexp.MustCompile(`(Eventually\(.*, |time\.After\(|\)\.WithTimeout\()[15] ?\* ?time\.Second\)`)

// pass runs the tests with our constructor. They are laid over the directory of their suite, which
// stays as it is.
func (their theirs) pass(t *testing.T) {
	t.Parallel()
	workspace := "off"
	if their.work != "" {
		var err error
		workspace, err = filepath.Abs(their.work)
		require.NoError(t, err)
	}
	overlay := map[string]map[string]string{"Replace": {}}
	suite, err := filepath.Abs(their.suite)
	require.NoError(t, err)
	from := strings.TrimSpace(run(t, workspace, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/controller-runtime"))
	for _, file := range their.files {
		text, err := os.ReadFile(filepath.Join(from, filepath.FromSlash(file)))
		require.NoError(t, err)
		require.Regexp(t, constructor, string(text), "%s makes no cache", file)
		name := filepath.Base(file)
		text = constructor.ReplaceAll(text, []byte("newCache"))
		text = patience.ReplaceAll(text, []byte("${1}time.Minute)"))
		changed := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(changed, text, 0o600))
		overlay["Replace"][filepath.Join(suite, name)] = changed
	}
	text, err := json.Marshal(overlay)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "overlay.json")
	require.NoError(t, os.WriteFile(path, text, 0o600))

	out := run(t, workspace, "go", "test", "-tags=theirs", "-overlay="+path, "-vet=off", "-count=1", "-timeout=25m", "-v", "./"+their.suite, "-args", "--ginkgo.no-color")
	require.Regexp(t, `Ran (`+their.leastSpecs+`) of \d+ Specs`, out, "fewer tests than expected ran:\n%s", out)
	require.Regexp(t, `\b0 Failed\b.*\b0 Pending\b.*\b0 Skipped\b`, out)
}

// failed finds the lines that name what has failed, in what the tests print.
var failed = regexp.MustCompile(`(?m)^.*(\[FAIL\]|--- FAIL:).*$`)

// run returns what a command prints in a workspace. It fails the test if the command does, and says
// first what has failed.
func run(t *testing.T, workspace, command string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command, args...)
	cmd.Env = append(os.Environ(), "GOWORK="+workspace)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s\n%s %s\n%s%s", bytes.Join(failed.FindAll(out, -1), []byte("\n")), command, strings.Join(args, " "), out, stderr.String())
	return string(out)
}
