package mirror

import (
	"bufio"
	"context"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
	"github.com/stretchr/testify/require"
)

const dockerfile = "mirror/Dockerfile"

// The command of the Dockerfile builds mirror from the files that its .dockerignore lets through,
// as a static program. No image is built: there is no Docker here. From an empty cache, the build
// takes as long as the machine needs: it has no limit of its own.
func TestDockerfileBuildsStaticProgram(t *testing.T) {
	ctx := t.Context()
	context := buildContext(ctx, t)
	out := t.TempDir()
	build := buildLine(t)
	require.Contains(t, build, " -o /out/mirror ")
	shell := exec.CommandContext(ctx, "sh", "-c", strings.ReplaceAll(build, "/out/", out+"/"))
	shell.Dir = context
	shell.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOFLAGS=") }) // perhaps -race
	output, err := shell.CombinedOutput()
	require.NoError(t, err, "%s", output)

	program := filepath.Join(out, "mirror")
	file, err := elf.Open(program)
	require.NoError(t, err)
	defer file.Close()
	libraries, err := file.ImportedLibraries()
	require.NoError(t, err)
	require.Empty(t, libraries)
	require.False(t, slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }), "it asks for a dynamic linker")

	usage, err := exec.CommandContext(ctx, program, "--help").CombinedOutput()
	require.NoError(t, err)
	require.Contains(t, string(usage), "--resources")
}

// buildLine is the instruction of the Dockerfile that compiles.
func buildLine(t *testing.T) string {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "..", dockerfile))
	require.NoError(t, err)
	defer file.Close()
	var found []string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		command, is := strings.CutPrefix(lines.Text(), "RUN ")
		if is && strings.Contains(command, "go build") {
			require.False(t, strings.HasSuffix(command, `\`), "the instruction goes on in the next line")
			found = append(found, command)
		}
	}
	require.NoError(t, lines.Err())
	require.Len(t, found, 1)
	return found[0]
}

// buildContext is a folder with the files of the repository that a builder would get.
func buildContext(ctx context.Context, t *testing.T) string {
	t.Helper()
	root := filepath.Join("..", "..")
	patterns, err := os.Open(filepath.Join(root, dockerfile+".dockerignore"))
	require.NoError(t, err)
	defer patterns.Close()
	ignored, err := ignorefile.ReadAll(patterns)
	require.NoError(t, err)
	matcher, err := patternmatcher.New(ignored)
	require.NoError(t, err)

	list := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	names, err := list.Output()
	require.NoError(t, err)
	to := t.TempDir()
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		left, err := matcher.MatchesOrParentMatches(name)
		require.NoError(t, err)
		if left {
			continue
		}
		content, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(to, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(to, name), content, 0o644))
	}
	return to
}
