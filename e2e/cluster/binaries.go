package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// modulePath finds the sources of the servers wherever the caller's module is,
// as long as it requires (or is) this one.
const modulePath = "github.com/rvinformer/informer/e2e"

// Binaries are the paths of the servers, and the minor version of Kubernetes that etcd and the API
// server are of.
type Binaries struct {
	Etcd       string
	APIServer  string
	Kubernetes string

	Kine            string // empty without BuildKine
	SampleAPIServer string // empty without BuildSampleServer
	MetricsServer   string // empty without BuildMetricsServer
}

// Build compiles both servers from the module in e2e/servers into dir and
// returns where they are. They are those of the newest version of Kubernetes, or of
// the one in the environment: KUBERNETES=1.35. An empty dir is one in the user's cache
// directory, which later runs find again: with nothing changed, Build then only asks the
// go command whether that is so. The first build of a version takes minutes.
func Build(ctx context.Context, dir string) (Binaries, error) {
	module, err := goCommand(ctx, "", "list", "-m", "-f", "{{.Dir}}", modulePath)
	if err != nil {
		return Binaries{}, err
	}
	sources := filepath.Join(module, "servers")
	release, err := asked(sources)
	if err != nil {
		return Binaries{}, err
	}
	dir, err = outputDir(dir, release.minor)
	if err != nil {
		return Binaries{}, err
	}
	// Two test binaries of one `go test ./...` start at the same moment. The
	// second waits, and then finds all that it needs.
	unlock, err := lockFile(filepath.Join(dir, "lock"))
	if err != nil {
		return Binaries{}, fmt.Errorf("locking the server binaries in %s: %w", dir, err)
	}
	defer unlock()

	said := "-ldflags=-X k8s.io/component-base/version.gitVersion=" + release.version // what the API server says of itself
	if _, err := goCommand(ctx, sources, "build", "-modfile="+release.file, said, "-o", dir+string(filepath.Separator), "./etcd", "./kube-apiserver"); err != nil {
		return Binaries{}, err
	}
	return Binaries{
		Etcd:       filepath.Join(dir, "etcd"),
		APIServer:  filepath.Join(dir, "kube-apiserver"),
		Kubernetes: release.minor,
	}, nil
}

func outputDir(dir, minor string) (string, error) {
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("finding a directory for the server binaries: %w", err)
		}
		dir = filepath.Join(cache, "rvinformer-e2e")
	}
	dir, err := filepath.Abs(filepath.Join(dir, minor))
	if err != nil {
		return "", fmt.Errorf("directory for the server binaries: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("directory for the server binaries: %w", err)
	}
	return dir, nil
}

// goCommand runs the go command in dir and returns what it printed, trimmed. The servers are other
// modules than the tests: a workspace, or flags such as -mod and -race that are right for the tests,
// would not be for them.
func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	if dir != "" {
		cmd.Env = append(cmd.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false")
	}
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, exit.Stderr)
		}
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
