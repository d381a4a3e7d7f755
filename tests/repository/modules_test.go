package repository_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Client-go, and all that it is built from, have the same versions in each module that is not of the
// library, and in .ci/go.work, which has the library. Only then does one build of client-go, which
// takes minutes, serve all of them. In .ci/oldest.work, only the k8s.io modules differ.
func TestModulesShareTheBuildOfClientGo(t *testing.T) {
	builtFrom := func(packages ...string) []string {
		modules := lines(goList(t, ".", ".ci/go.work", append([]string{"-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}"}, packages...)...))
		slices.Sort(modules)
		return slices.Compact(modules)
	}
	versions := func(dir, workspace string, modules []string) map[string]string {
		format := `{{with or .Replace .}}{{if .Version}}{{.Path}} {{.Version}}{{end}}{{end}}`
		found := map[string]string{}
		for _, line := range lines(goList(t, dir, workspace, append([]string{"-e", "-m", "-f", format}, modules...)...)) {
			module, version, _ := strings.Cut(line, " ")
			found[module] = version
		}
		require.Contains(t, found, "k8s.io/apimachinery", dir)
		return found
	}
	clientGo := builtFrom("k8s.io/client-go/kubernetes", "k8s.io/client-go/dynamic")
	wanted := versions(".", ".ci/go.work", clientGo)
	require.Contains(t, wanted, "golang.org/x/net")
	check := func(name string, found map[string]string) {
		for module, version := range found {
			if version != wanted[module] {
				t.Errorf("%s has %s %s, and .ci/go.work has %s", name, module, version, wanted[module])
			}
		}
	}
	library := []string{".", "factory/typed", "controllerruntime", "sqlsink"}
	walkFiles(t, func(file string) {
		switch dir := path.Dir(file); {
		case strings.HasPrefix(dir, ".ci/next"): // it has other versions on purpose
		case path.Base(file) != "go.mod" || slices.Contains(library, dir):
		case dir == "e2e/crdtypes": // it does without client-go
			check(dir, versions(dir, "", builtFrom("k8s.io/api/core/v1")))
		case dir == "e2e/servers/kine": // it needs newer modules
		default:
			check(dir, versions(dir, "", clientGo))
		}
	})
	oldest := versions(".", ".ci/oldest.work", clientGo)
	for module := range oldest {
		if strings.HasPrefix(module, "k8s.io/") {
			delete(oldest, module)
		}
	}
	check(".ci/oldest.work", oldest)
}

// goList returns what go list prints in a directory, with a workspace or without one.
func goList(t *testing.T, dir, workspace string, args ...string) string {
	work := "off"
	if workspace != "" {
		var err error
		work, err = filepath.Abs(workspace)
		require.NoError(t, err)
	}
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), "GOWORK="+work, "GOFLAGS="), os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err, "go list in %s", dir)
	return string(out)
}

// lines returns the lines of a text that are not empty.
func lines(text string) []string {
	return slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return line == "" })
}
