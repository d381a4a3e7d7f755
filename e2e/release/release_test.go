package release

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const root = "github.com/rvinformer/informer"

// released are the modules of a release, in the order of their tags.
var released = []string{"", "factory/typed", "controllerruntime"}

// The program of an outsider: it has no replace lines, and a module proxy.
const program = `package main

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/controllerruntime"
	"github.com/rvinformer/informer/factory/typed"
)

func main() {
	pods := typed.NewSharedInformerFactory(nil, 0).Core().V1().Pods()
	options := cluster.Options{NewCache: controllerruntime.NewCache}
	fmt.Println(pods != nil, options.NewCache != nil, informer.NewBudget(1).Limit())
}
`

// The three modules of a release are published to a proxy of files as the release recipe in
// CONTRIBUTING.md has it, and an outsider's program is built with them.
func TestOutsiderBuildsWithReleasedModules(t *testing.T) {
	version := fmt.Sprintf("v0.0.1-test.%d", time.Now().UnixNano())
	tree, proxy, outsider := t.TempDir(), t.TempDir(), t.TempDir()
	copyTree(t, tree)
	for _, dir := range released {
		if dir != "" {
			run(t, filepath.Join(tree, dir), nil, "go", "mod", "edit", "-require="+root+"@"+version, "-dropreplace="+root)
		}
		publish(t, proxy, module.Version{Path: strings.TrimSuffix(root+"/"+dir, "/"), Version: version}, filepath.Join(tree, dir))
	}

	env := []string{
		"GOPROXY=file://" + proxy + "," + strings.TrimSpace(run(t, outsider, nil, "go", "env", "GOPROXY")),
		"GONOSUMDB=" + root, "GOFLAGS=-modcacherw", "GOWORK=off",
	}
	t.Cleanup(func() { forget(t, version) })
	require.NoError(t, os.WriteFile(filepath.Join(outsider, "main.go"), []byte(program), 0o600))
	run(t, outsider, env, "go", "mod", "init", "example.com/outsider")
	for _, dir := range released {
		run(t, outsider, env, "go", "get", strings.TrimSuffix(root+"/"+dir, "/")+"@"+version)
	}
	run(t, outsider, env, "go", "mod", "tidy")
	run(t, outsider, env, "go", "build", "-o", "program", ".")
	require.Equal(t, "true true 1\n", run(t, outsider, env, "./program"))
	mod, err := os.ReadFile(filepath.Join(outsider, "go.mod"))
	require.NoError(t, err)
	require.NotContains(t, string(mod), "replace")
}

// run returns what a command prints.
func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	command := exec.Command(name, args...)
	command.Dir, command.Env = dir, append(os.Environ(), env...)
	var problems strings.Builder
	command.Stderr = &problems
	out, err := command.Output()
	require.NoError(t, err, "%s %s: %s", name, strings.Join(args, " "), problems.String())
	return string(out)
}

// copyTree copies the files of the repository, changed ones as they are.
func copyTree(t *testing.T, to string) {
	top := strings.TrimSpace(run(t, ".", nil, "git", "rev-parse", "--show-toplevel"))
	for file := range strings.SplitSeq(run(t, top, nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00") {
		text, err := os.ReadFile(filepath.Join(top, file))
		if file == "" || os.IsNotExist(err) { // a deletion that is not committed
			continue
		}
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(to, file)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(to, file), text, 0o600))
	}
}

// publish writes what a module proxy serves of a version of a module.
func publish(t *testing.T, proxy string, m module.Version, from string) {
	dir := filepath.Join(proxy, m.Path, "@v")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	mod, err := os.ReadFile(filepath.Join(from, "go.mod"))
	require.NoError(t, err)
	for name, text := range map[string]string{
		"list":              m.Version + "\n",
		m.Version + ".info": fmt.Sprintf(`{"Version":%q,"Time":"2026-01-01T00:00:00Z"}`, m.Version),
		m.Version + ".mod":  string(mod),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	archive, err := os.Create(filepath.Join(dir, m.Version+".zip"))
	require.NoError(t, err)
	require.NoError(t, zip.CreateFromDir(archive, m, from))
	require.NoError(t, archive.Close())
}

// forget takes the version out of the module cache of the machine.
func forget(t *testing.T, version string) {
	modules := strings.TrimSpace(run(t, ".", nil, "go", "env", "GOMODCACHE"))
	for _, dir := range released {
		require.NoError(t, os.RemoveAll(filepath.Join(modules, root, dir)+"@"+version))
		files, err := filepath.Glob(filepath.Join(modules, "cache/download", root, dir, "@v", version+".*"))
		require.NoError(t, err)
		for _, file := range files {
			require.NoError(t, os.Remove(file))
		}
	}
}
