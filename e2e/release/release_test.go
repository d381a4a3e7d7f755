package release

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const root = "github.com/rvinformer/informer"

// released are the modules of a release, in the order of their tags.
var released = []string{"", "factory/typed", "sqlsink", "controllerruntime"}

// outsider is a program of an outsider: it has no replace lines, and a module proxy.
type outsider struct {
	// gets are what it gets, and required the versions that it then has.
	gets, required []string
	// main is its code. It prints "works".
	main string
}

// asHere are what client-go is built from here in newer versions than it asks for: with others, it
// would be built once more.
var asHere = []string{"golang.org/x/sys@v0.49.0", "golang.org/x/text@v0.41.0"}

var outsiders = map[string]outsider{
	"informer with k8s.io 0.36": {
		gets:     []string{root},
		required: []string{"k8s.io/client-go v0.36.0"},
		main:     rawProgram,
	},
	"informer with k8s.io 0.37": {
		gets:     append([]string{root, "k8s.io/client-go@v0.37.2", "k8s.io/api@v0.37.2"}, asHere...),
		required: []string{"k8s.io/client-go v0.37.2"},
		main:     rawProgram,
	},
	"controllerruntime with controller-runtime 0.24": {
		gets:     []string{root + "/controllerruntime"},
		required: []string{"sigs.k8s.io/controller-runtime v0.24.1", "k8s.io/client-go v0.36.0"},
		main:     fmt.Sprintf(managerProgram, ""),
	},
	"controllerruntime with controller-runtime 0.25": {
		gets:     append([]string{root + "/controllerruntime", "sigs.k8s.io/controller-runtime@v0.25.2", "k8s.io/client-go@v0.37.2"}, asHere...),
		required: []string{"sigs.k8s.io/controller-runtime v0.25.2", "k8s.io/client-go v0.37.2"},
		main:     fmt.Sprintf(managerProgram, "EnableReadYourWritesConsistency: new(true)"),
	},
	"factory/typed with client-go 0.36": {
		gets:     []string{root + "/factory/typed"},
		required: []string{"k8s.io/client-go v0.36.0"},
		main:     fmt.Sprintf(factoryProgram, `informers "github.com/rvinformer/informer/factory/typed"`),
	},
	"factory/typed with client-go 0.37": {
		gets:     append([]string{root + "/factory/typed", "k8s.io/client-go@v0.37.2", "k8s.io/api@v0.37.2"}, asHere...),
		required: []string{"k8s.io/client-go v0.37.2"},
		main:     typedProgram,
	},
	"sqlsink with client-go 0.36": {
		gets:     []string{root + "/sqlsink"},
		required: []string{"k8s.io/client-go v0.36.0"},
		main:     sinkProgram,
	},
}

const sinkProgram = `package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer/sqlsink"
)

func main() {
	sink, err := sqlsink.Open(context.Background(), sqlsink.Config{Address: "sqlite:test.db"})
	if err != nil {
		panic(err)
	}
	storage, err := sink.Place("here", schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Storage(context.Background())
	if err != nil || storage.Len() != 0 || sink.Close() != nil {
		panic(err)
	}
	fmt.Println("works")
}
`

const rawProgram = `package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
)

func main() {
	lists, err := informer.NewDynamicListerWatcherFactory(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		panic(err)
	}
	i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
		ListerWatcher: lists.ForResource("", schema.GroupVersionResource{Version: "v1", Resource: "pods"}),
		ExampleObject: &corev1.Pod{},
		BatchHandler:  informer.BatchHandlerFunc(func(context.Context, []informer.Event) error { return nil }),
	})
	ended, end := context.WithCancel(context.Background())
	end()
	i.RunWithContext(ended)
	fmt.Println("works")
}
`

// managerProgram is for options of the client's cache.
const managerProgram = `package main

import (
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/rvinformer/informer/controllerruntime"
)

func main() {
	m, err := manager.New(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Options{
		NewCache: controllerruntime.NewCache,
		Client:   client.Options{Cache: &client.CacheOptions{%s}},
	})
	if m == nil || err != nil {
		panic(err)
	}
	fmt.Println("works")
}
`

// factoryProgram is for the import of a factory.
const factoryProgram = `package main

import (
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	%s
)

func main() {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		panic(err)
	}
	f := informers.NewSharedInformerFactory(client, 0)
	if f.Core().V1().Pods().Informer() != nil {
		fmt.Println("works")
	}
}
`

// typedProgram uses what client-go has from 0.37 on.
const typedProgram = `package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/factory/typed"
)

func main() {
	named := metav1.ObjectMeta{Namespace: "default", Name: "one", Labels: map[string]string{"app": "web"}}
	client := fake.NewClientset(&corev1.Pod{ObjectMeta: named}, &lifecyclev1alpha1.Eviction{ObjectMeta: named})
	var f informers.SharedInformerFactory = typed.New(client, 0)
	pods, evictions := f.Core().V1().Pods().TypedInformer(), f.Lifecycle().V1alpha1().Evictions()
	evictions.Informer()
	must(pods.AddTypedIndexers(cache.TypedIndexers[*corev1.Pod]{"app": func(p *corev1.Pod) ([]string, error) { return []string{p.Labels["app"]}, nil }}))
	added := make(chan string, 1)
	handle, err := pods.AddTypedEventHandler(cache.TypedResourceEventHandlerFuncs[*corev1.Pod]{AddFunc: func(p *corev1.Pod) { added <- p.Name }})
	must(err)
	ctx, cancel := context.WithCancel(context.Background())
	f.StartWithContext(ctx)
	must(f.WaitForCacheSyncWithContext(ctx).AsError())
	found, err := pods.GetTypedIndexer().ByTypedIndex("app", "web")
	must(err)
	eviction, err := evictions.Lister().Evictions("default").Get("one")
	must(err)
	if name := <-added; name != "one" || len(found) != 1 || eviction.Name != "one" {
		panic(name)
	}
	must(cache.ShutDownEventHandler(pods, handle))
	cancel()
	f.Shutdown()
	fmt.Println("works")
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
`

// compared are programs without this library, beside which docs/which-informer.md has ours.
var compared = map[string]outsider{
	"client-go 0.36": {
		gets:     []string{"k8s.io/client-go@v0.36.0"},
		required: []string{"k8s.io/client-go v0.36.0"},
		main:     fmt.Sprintf(factoryProgram, `"k8s.io/client-go/informers"`),
	},
	"controller-runtime 0.24": {
		gets:     []string{"sigs.k8s.io/controller-runtime@v0.24.1"},
		required: []string{"sigs.k8s.io/controller-runtime v0.24.1"},
		main: strings.NewReplacer("\n\t\"github.com/rvinformer/informer/controllerruntime\"\n", "", "\t\tNewCache: controllerruntime.NewCache,\n", "").
			Replace(fmt.Sprintf(managerProgram, "")),
	},
}

// forTests are modules that only tests of the library need.
var forTests = []string{"github.com/stretchr/testify", "go.uber.org/goleak", "pgregory.net/rapid"}

// The modules of a release are published to a proxy of files as the release recipe in
// CONTRIBUTING.md has it. Programs of outsiders are built with the oldest and the newest versions
// that each module works with, and none has what only tests need. The log says what each brings
// along, and with RELEASE_COMPARED what the programs of compared do.
func TestOutsidersBuildWithReleasedModules(t *testing.T) {
	version := fmt.Sprintf("v0.0.1-test.%d", time.Now().UnixNano())
	tree, proxy := t.TempDir(), t.TempDir()
	copyTree(t, tree)
	for _, dir := range released {
		if dir != "" {
			run(t, filepath.Join(tree, dir), nil, "go", "mod", "edit", "-require="+root+"@"+version, "-dropreplace="+root)
		}
		publish(t, proxy, module.Version{Path: strings.TrimSuffix(root+"/"+dir, "/"), Version: version}, filepath.Join(tree, dir))
	}
	t.Cleanup(func() { forget(t, version) })
	flags := strings.ReplaceAll(run(t, tree, nil, "go", "env", "GOFLAGS"), "-race", "") // which would have all built once more
	env := []string{
		"GOPROXY=file://" + proxy + "," + strings.TrimSpace(run(t, tree, nil, "go", "env", "GOPROXY")),
		"GOFLAGS=" + strings.TrimSpace(flags) + " -modcacherw",
		"GONOSUMDB=" + root, "GOWORK=off",
	}
	all := maps.Clone(outsiders)
	if os.Getenv("RELEASE_COMPARED") != "" {
		maps.Copy(all, compared)
	}
	for name, o := range all {
		t.Run(name, func(t *testing.T) {
			o.build(t, env, version)
		})
	}
}

func (o outsider) build(t *testing.T, env []string, version string) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(o.main), 0o600))
	run(t, dir, env, "go", "mod", "init", "example.com/outsider")
	for _, get := range o.gets {
		if strings.HasPrefix(get, root) {
			get += "@" + version
		}
		run(t, dir, env, "go", "get", get)
	}
	run(t, dir, env, "go", "mod", "tidy")
	for _, required := range o.required {
		path, _, _ := strings.Cut(required, " ")
		require.Equal(t, required+"\n", run(t, dir, env, "go", "list", "-m", path))
	}
	run(t, dir, env, "go", "build", "-o", "program", ".")
	require.Equal(t, "works\n", run(t, dir, env, "./program"))

	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	require.NotContains(t, string(mod), "replace")
	modules := strings.Fields(run(t, dir, env, "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "."))
	slices.Sort(modules)
	modules = slices.Compact(modules)
	for _, path := range forTests {
		require.NotContains(t, modules, path)
		require.NotContains(t, string(mod), path)
	}
	program, err := os.Stat(filepath.Join(dir, "program"))
	require.NoError(t, err)
	t.Logf("%d modules besides its own, %.1f MiB", len(modules)-1, float64(program.Size())/(1<<20))
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
