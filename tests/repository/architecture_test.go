package repository_test

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/rvinformer/informer"

// layers are the packages of the library, the lowest first. A package imports packages of lower
// layers only.
var layers = [][]string{
	{"internal/histogram", "internal/moment"},
	{"api", "internal/backoff", "internal/fieldpath", "internal/gotype", "internal/intern", "internal/rapidseed", "internal/redact", "internal/rv", "internal/samplepod", "internal/samples", "internal/selfsigned", "internal/typedjson"},
	{"internal/report", "internal/typedjson/trial", "internal/waiting"},
	{
		"internal/blame", "internal/budget", "internal/claims", "internal/fanout", "internal/keytable", "internal/listwatch",
		"internal/objectsize", "informertest",
	},
	{"internal/audit", "internal/checkpoint", "internal/recency", "internal/wire"},
	{"internal/deltaqueue", "internal/field", "internal/jsonmap", "internal/pack", "internal/protoobject", "internal/prune", "internal/savedstate"},
	{"internal/journal", "internal/object"},
	{"internal/known", "internal/server", "internal/sink"},
	{"internal/intake", "internal/keeper", "internal/source", "internal/userqueue"},
	{"internal/follower", "internal/redelivery"},
	{"internal/auditor", "internal/flow"},
	{"."},
	{"registry"},
	{"factory", "controller", "objectcache", "informertest/oracle"},
	{"factory/typed", "informertest/script", "metrics", "statuspage"},
	{"fleet"},
	{"fleet/shards"},
}

// outside are directories whose packages are programs, tests, or modules of their own.
var outside = []string{"bench", "controllerruntime", "e2e", "examples", "internal/heartbeat", "internal/mutants", "mirror", "sqlsink", "tests"}

func TestImportsPointDown(t *testing.T) {
	height := map[string]int{}
	for i, layer := range layers {
		for _, p := range layer {
			height[p] = i
		}
	}
	found := map[string]bool{}
	for _, dir := range packages(t) {
		found[dir] = true
		here, listed := height[dir]
		if !listed {
			t.Errorf("package %s has no layer", dir)
			continue
		}
		p, err := build.ImportDir(dir, 0)
		require.NoError(t, err)
		for _, imported := range p.Imports {
			of, ours := strings.CutPrefix(imported, module)
			if !ours {
				continue
			}
			of = path.Clean("." + of)
			if height[of] >= here {
				t.Errorf("%s imports %s, which is not below it", dir, of)
			}
		}
	}
	for p := range height {
		require.True(t, found[p], "package %s is listed and does not exist", p)
	}
}

// An exported type of a public package is no alias of one that is internal: go doc and editors
// would show a name without fields.
func TestExportedTypesShowTheirFields(t *testing.T) {
	seen := 0
	for _, dir := range packages(t) {
		if strings.Contains("/"+dir+"/", "/internal/") {
			continue
		}
		for name, file := range parse(t, dir) {
			internal := map[string]bool{}
			for _, i := range file.Imports {
				if of, _ := strconv.Unquote(i.Path.Value); strings.Contains(of, "/internal/") {
					internal[path.Base(of)] = true
				}
			}
			ast.Inspect(file, func(n ast.Node) bool {
				spec, ok := n.(*ast.TypeSpec)
				if !ok || !spec.Assign.IsValid() || !spec.Name.IsExported() {
					return true
				}
				seen++
				of, ok := spec.Type.(*ast.SelectorExpr)
				if ok && internal[of.X.(*ast.Ident).Name] {
					t.Errorf("%s: %s is an alias of the internal type %s.%s", name, spec.Name, of.X, of.Sel)
				}
				return true
			})
		}
	}
	require.Greater(t, seen, 30)
}

// goroutines are the functions of the library that start a goroutine, and why. Each reason ends
// with the function that waits for it.
var goroutines = map[string]string{
	"controller/background.go Controller.background":      "a Backgrounder runs beside the workers: background.wait",
	"controller/controller.go Controller.Run":             "a context of a channel must not cost each derived context a goroutine: Run",
	"controller/runs.go runs.startLocked":                 "an informer may outlive the first controller that uses it: release",
	"controller/shared.go shared.hire":                    "workers call the Resource: shared.run",
	"controller/storeless.go storeless.run":               "the informer runs while run waits until it has synced: run",
	"controller/testrun.go TestControllerRun":             "a test goes on while the controller runs: the returned function",
	"factory/shutdown.go Factory.goLocked":                "informers run until the last lease is gone: Factory.Shutdown",
	"factory/typed/ask.go Factory.join":                   "an informer may take long to end at a server that is dead: Factory.Shutdown",
	"factory/typed/start.go Factory.startLocked":          "a share ends with its context, its lease or its factory: Factory.Shutdown",
	"fleet/subscription.go run.part":                      "the end of an informer that ends its work must not be waited for beside other work: run.end",
	"fleet/subscription.go run.release":                   "the end of an informer must not be waited for beside other work: run.end",
	"fleet/run.go Fleet.Run":                              "each unit is followed on its own: Run",
	"fleet/session.go newSession":                         "a cluster is discovered while its units follow it: session.end",
	"fleet/triggers.go triggers.follow":                   "the signs of changes are watched while discovery waits: triggers.end",
	"fleet/shards/decide.go decider.chore":                "a request must not hold up decisions: Replica.decide",
	"fleet/shards/decide.go decider.start":                "units are owned side by side: Replica.decide",
	"fleet/shards/replica.go Replica.Run":                 "the member Lease is renewed, and Leases are watched, beside decisions: Run",
	"internal/flow/run.go run.hire":                       "a worker calls the handler while something waits: run.wait",
	"internal/flow/run.go run.deliverHere":                "the reflector runs beside an ordinary handler, which has Run's goroutine: run.wait",
	"internal/flow/run.go run.help":                       "checkpoints are saved, and audits and redeliveries run, beside the reflector: run.wait",
	"internal/fanout/hub.go Hub.startLocked":              "a shared watch is read once for all its taps: Hub.Wait",
	"internal/userqueue/controller.go Controller.retry":   "what failed is tried again beside the queue: Run",
	"internal/userqueue/controller.go Controller.Run":     "retries, the reflector and the end of the queue run side by side: Run",
	"objectcache/audit.go Informer.auditBeside":           "audits run beside the reading: the returned function",
	"objectcache/changelog.go changelog.run":              "handlers are called beside the reading, each at its own pace: Informer.RunWithContext",
	"objectcache/saved.go Informer.saveBeside":            "snapshots are saved beside the reading: Informer.resume",
	"shared.go SharedResourceVersionInformer.begin":       "the informer is synced when its first handlers are: RunWithContext",
	"shared.go SharedResourceVersionInformer.startLocked": "each handler has an informer: RunWithContext",
	"internal/source/foreign.go foreignCall.do":           "a call may ignore its context, and is left behind then: do",
	"internal/source/stream.go Source.open":               "a request takes a deep stack, which a watch would keep for hours: open",
	"internal/follower/resync.go resync.start":            "a resync must not wait for the next event: resync.close",
}

// inlined are the functions that the compiler must not inline, and why.
var inlined = map[string]string{
	"internal/follower/watching.go watching.receive":   "its variables would stay on the stack of an idle watch",
	"internal/keytable/load.go Loader.touch":           "its loop brings memory that is used later; inlined, its result is unused and it goes",
	"internal/keytable/visit.go Table.touch":           "its loop brings memory that is used later; inlined, its result is unused and it goes",
	"internal/keytable/visit.go Table.touchStemOf":     "it brings memory that is used later; inlined, its result is unused and it goes",
	"internal/server/unzip.go Zipped.GoOn":             "its variables would stay on the stack of an idle watch",
	"internal/server/unzip.go Zipped.BeginWait":        "its variables would stay on the stack of an idle watch",
	"internal/source/stream.go stream.reading":         "its variables would stay on the stack of an idle watch",
	"internal/source/stream.go stream.returned":        "its variables would stay on the stack of an idle watch",
	"internal/source/stream.go stream.beginWait":       "its variables would stay on the stack of an idle watch",
	"internal/follower/follower.go Follower.goOnAfter": "its variables would stay on the stack of an idle watch",
	"internal/wire/window.go window.took":              "its variables would stay on the stack of an idle watch",
}

func TestGoroutinesAndInliningHaveReasons(t *testing.T) {
	starts, pragmas := map[string]bool{}, map[string]bool{}
	for _, dir := range packages(t) {
		if strings.HasPrefix(dir, "informertest") {
			continue // for tests
		}
		for name, file := range parse(t, dir) {
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				place := name + " " + functionName(f)
				if startsGoroutine(f) {
					starts[place] = true
				}
				if f.Doc != nil && slices.ContainsFunc(f.Doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:noinline") }) {
					pragmas[place] = true
				}
			}
		}
	}
	requireReasons(t, "starts a goroutine", goroutines, starts)
	requireReasons(t, "is not to be inlined", inlined, pragmas)
}

// requireReasons compares the places that were found with those that have a reason.
func requireReasons(t *testing.T, what string, reasons map[string]string, found map[string]bool) {
	for place := range found {
		if reasons[place] == "" {
			t.Errorf("%s %s: say why in this test", place, what)
		}
	}
	for place := range reasons {
		if !found[place] {
			t.Errorf("%s has a reason and no longer %s", place, what)
		}
	}
}

// startsGoroutine reports whether f has a go statement or calls the Go method of a group.
func startsGoroutine(f *ast.FuncDecl) (starts bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			starts = true
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Go" && len(n.Args) == 1 {
				starts = true
			}
		}
		return !starts
	})
	return starts
}

// functionName is "Type.method", or the name of a function.
func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	if s, ok := t.(*ast.StarExpr); ok {
		t = s.X
	}
	if i, ok := t.(*ast.IndexExpr); ok {
		t = i.X
	}
	return t.(*ast.Ident).Name + "." + f.Name.Name
}

// packages are the directories of the library's packages.
func packages(t *testing.T) (dirs []string) {
	err := filepath.WalkDir(".", func(dir string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir():
			return err
		case slices.Contains(outside, filepath.ToSlash(dir)) || d.Name() == "testdata" || dir != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		}
		if files, _ := filepath.Glob(filepath.Join(dir, "*.go")); len(files) > 0 {
			dirs = append(dirs, filepath.ToSlash(dir))
		}
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, dirs)
	return dirs
}

// parse returns the files of a package without its tests, by path.
func parse(t *testing.T, dir string) map[string]*ast.File {
	files := map[string]*ast.File{}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		files[filepath.ToSlash(name)] = file
	}
	return files
}
