package repository_test

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
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
	{"internal/edge", "internal/engine", "internal/leaf", "internal/testkit", "internal/leaf/histogram", "internal/leaf/moment"},
	{"api", "internal/leaf/backoff", "internal/leaf/fieldpath", "internal/leaf/gotype", "internal/leaf/intern", "internal/testkit/rapidseed", "internal/leaf/redact", "internal/leaf/rv", "internal/testkit/samplepod", "internal/testkit/samples", "internal/testkit/selfsigned", "internal/leaf/typedjson"},
	{"internal/leaf/failure", "internal/leaf/typedjson/trial", "internal/leaf/waiting"},
	{"internal/edge/report"},
	{
		"internal/engine/blame", "internal/leaf/budget", "internal/leaf/claims", "internal/edge/fanout", "internal/leaf/keytable", "internal/engine/listwatch",
		"internal/leaf/objectsize", "informertest",
	},
	{"internal/edge/audit", "internal/leaf/checkpoint", "internal/engine/recency", "internal/leaf/wire"},
	{"internal/engine/deltaqueue", "internal/leaf/field", "internal/leaf/jsonmap", "internal/leaf/pack", "internal/leaf/protoobject", "internal/leaf/prune", "internal/testkit/savedstate"},
	{"internal/engine/journal", "internal/engine/object"},
	{"internal/engine/known", "internal/engine/server", "internal/engine/sink"},
	{"internal/engine/intake", "internal/engine/keeper", "internal/engine/source", "internal/edge/userqueue"},
	{"internal/engine/follower", "internal/edge/redelivery"},
	{"internal/edge/auditor", "internal/engine/flow"},
	{"."},
	{"registry"},
	{"factory", "controller", "objectcache", "informertest/oracle"},
	{"factory/typed", "informertest/script", "metrics", "statuspage"},
	{"fleet"},
	{"fleet/shards"},
}

// outside are directories whose packages are programs, tests, or modules of their own.
var outside = []string{"bench", "controllerruntime", "e2e", "examples", "internal/testkit/heartbeat", "internal/testkit/mutants", "mirror", "sqlsink", "tests"}

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
		for _, of := range imports(t, dir) {
			if height[of] >= here {
				t.Errorf("%s imports %s, which is not below it", dir, of)
			}
		}
	}
	for p := range height {
		require.True(t, found[p], "package %s is listed and does not exist", p)
	}
}

// wings are the parts of internal, and the parts that the packages of each may import. The doc.go of
// each is its map.
var wings = map[string][]string{
	"leaf":    {"leaf"},
	"engine":  {"leaf", "engine"},
	"edge":    {"leaf", "engine", "edge"},
	"testkit": {"leaf", "engine", "testkit"},
}

// breaches are the imports that the walls between the wings forbid, and that are still there. An
// import that goes leaves this list; none comes.
var breaches = []string{
	"internal/engine/flow imports internal/edge/redelivery",
	"internal/engine/flow imports internal/edge/report",
	"internal/engine/follower imports internal/edge/report",
	"internal/engine/intake imports internal/edge/report",
	"internal/engine/keeper imports internal/edge/report",
	"internal/engine/server imports internal/edge/report",
	"internal/engine/source imports internal/edge/fanout",
	"internal/engine/source imports internal/edge/report",
}

func TestWings(t *testing.T) {
	var found []string
	for _, dir := range packages(t) {
		below, isInternal := strings.CutPrefix(dir, "internal/")
		if !isInternal {
			continue
		}
		wing, _, _ := strings.Cut(below, "/")
		may, known := wings[wing]
		require.True(t, known, "package %s is in no wing", dir)
		for _, imported := range imports(t, dir) {
			of, isInternal := strings.CutPrefix(imported, "internal/")
			if to, _, _ := strings.Cut(of, "/"); isInternal && !slices.Contains(may, to) {
				found = append(found, dir+" imports "+imported)
			}
		}
	}
	for _, breach := range found {
		if !slices.Contains(breaches, breach) {
			t.Errorf("%s, which is behind a wall: see doc.go of the wing", breach)
		}
	}
	for _, breach := range breaches {
		if !slices.Contains(found, breach) {
			t.Errorf("it is no longer true that %s: take it out of the list", breach)
		}
	}
}

// carried are the packages of ours that a program has from the root. What comes here is something
// that each user carries, and that a reader of an informer meets.
var carried = []string{
	"api",
	"internal/edge/audit", "internal/edge/auditor", "internal/edge/fanout", "internal/edge/redelivery",
	"internal/edge/report", "internal/edge/userqueue",
	"internal/engine/blame", "internal/engine/deltaqueue", "internal/engine/flow", "internal/engine/follower",
	"internal/engine/intake", "internal/engine/journal", "internal/engine/keeper", "internal/engine/known",
	"internal/engine/listwatch", "internal/engine/object", "internal/engine/recency", "internal/engine/server",
	"internal/engine/sink", "internal/engine/source",
	"internal/leaf/backoff", "internal/leaf/budget", "internal/leaf/checkpoint", "internal/leaf/claims",
	"internal/leaf/failure", "internal/leaf/field", "internal/leaf/fieldpath", "internal/leaf/gotype",
	"internal/leaf/histogram", "internal/leaf/intern", "internal/leaf/jsonmap", "internal/leaf/keytable",
	"internal/leaf/moment", "internal/leaf/objectsize", "internal/leaf/protoobject", "internal/leaf/prune",
	"internal/leaf/redact", "internal/leaf/rv", "internal/leaf/typedjson", "internal/leaf/waiting",
	"internal/leaf/wire",
}

func TestWhatAnInformerImports(t *testing.T) {
	seen := map[string]bool{}
	var follow func(dir string)
	follow = func(dir string) {
		for _, imported := range imports(t, dir) {
			if !seen[imported] {
				seen[imported] = true
				follow(imported)
			}
		}
	}
	follow(".")
	require.Equal(t, carried, slices.Sorted(maps.Keys(seen)))
}

// named says how often the engine names what hangs at its edge: lines of code and comments, and
// packages. They are limits, which only become lower.
var named = []struct {
	feature         string
	words           *regexp.Regexp
	lines, packages int
}{
	{"audits", regexp.MustCompile(`(?i)audit`), 24, 3},
	{"redelivery", regexp.MustCompile(`(?i)redeliver`), 116, 7},
	{"dead letters", regexp.MustCompile(`(?i)dead ?letter|\bletters?\b`), 161, 5},
	{"the status", regexp.MustCompile(`\breport\.|(?i)\bstatus`), 95, 7},
	{"several handlers", regexp.MustCompile(`(?i)fan-?out|shared (list|watch|informer)|joint`), 100, 2},
	{"WaitUntil", regexp.MustCompile(`(?i)waituntil|\bwaiting\.`), 16, 2},
}

func TestTheEngineNamesItsEdgesSeldom(t *testing.T) {
	for _, n := range named {
		lines, in := 0, map[string]bool{}
		for _, dir := range packages(t) {
			if !strings.HasPrefix(dir, "internal/engine/") {
				continue
			}
			for name := range parse(t, dir) {
				text, err := os.ReadFile(name)
				require.NoError(t, err)
				for line := range strings.Lines(string(text)) {
					if n.words.MatchString(line) {
						lines++
						in[dir] = true
					}
				}
			}
		}
		t.Logf("%s: %d lines in %d packages", n.feature, lines, len(in))
		require.LessOrEqual(t, lines, n.lines, "lines that name %s", n.feature)
		require.LessOrEqual(t, len(in), n.packages, "packages that name %s", n.feature)
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
	"controller/background.go Controller.background":         "a Backgrounder runs beside the workers: background.wait",
	"controller/controller.go Controller.Run":                "a context of a channel must not cost each derived context a goroutine: Run",
	"controller/runs.go runs.startLocked":                    "an informer may outlive the first controller that uses it: release",
	"controller/shared.go shared.hire":                       "workers call the Resource: shared.run",
	"controller/storeless.go storeless.run":                  "the informer runs while run waits until it has synced: run",
	"controller/testrun.go TestControllerRun":                "a test goes on while the controller runs: the returned function",
	"factory/shutdown.go Factory.goLocked":                   "informers run until the last lease is gone: Factory.Shutdown",
	"factory/typed/ask.go Factory.join":                      "an informer may take long to end at a server that is dead: Factory.Shutdown",
	"factory/typed/start.go Factory.startLocked":             "a share ends with its context, its lease or its factory: Factory.Shutdown",
	"fleet/subscription.go run.part":                         "the end of an informer that ends its work must not be waited for beside other work: run.end",
	"fleet/subscription.go run.release":                      "the end of an informer must not be waited for beside other work: run.end",
	"fleet/run.go Fleet.Run":                                 "each unit is followed on its own: Run",
	"fleet/session.go newSession":                            "a cluster is discovered while its units follow it: session.end",
	"fleet/triggers.go triggers.follow":                      "the signs of changes are watched while discovery waits: triggers.end",
	"fleet/shards/decide.go decider.chore":                   "a request must not hold up decisions: Replica.decide",
	"fleet/shards/decide.go decider.start":                   "units are owned side by side: Replica.decide",
	"fleet/shards/replica.go Replica.Run":                    "the member Lease is renewed, and Leases are watched, beside decisions: Run",
	"internal/engine/flow/run.go run.hire":                   "a worker calls the handler while something waits: run.wait",
	"internal/engine/flow/run.go run.deliverHere":            "the reflector runs beside an ordinary handler, which has Run's goroutine: run.wait",
	"internal/engine/flow/run.go run.help":                   "checkpoints are saved, and audits and redeliveries run, beside the reflector: run.wait",
	"internal/edge/fanout/hub.go Hub.startLocked":            "a shared watch is read once for all its taps: Hub.Wait",
	"internal/edge/userqueue/controller.go Controller.retry": "what failed is tried again beside the queue: Run",
	"internal/edge/userqueue/controller.go Controller.Run":   "retries, the reflector and the end of the queue run side by side: Run",
	"objectcache/audit.go Informer.auditBeside":              "audits run beside the reading: the returned function",
	"objectcache/changelog.go changelog.run":                 "handlers are called beside the reading, each at its own pace: Informer.RunWithContext",
	"objectcache/saved.go Informer.saveBeside":               "snapshots are saved beside the reading: Informer.resume",
	"shared.go SharedResourceVersionInformer.begin":          "the informer is synced when its first handlers are: RunWithContext",
	"shared.go SharedResourceVersionInformer.startLocked":    "each handler has an informer: RunWithContext",
	"internal/engine/source/foreign.go foreignCall.do":       "a call may ignore its context, and is left behind then: do",
	"internal/engine/source/stream.go Source.open":           "a request takes a deep stack, which a watch would keep for hours: open",
	"internal/engine/follower/resync.go resync.start":        "a resync must not wait for the next event: resync.close",
}

// inlined are the functions that the compiler must not inline, and why.
var inlined = map[string]string{
	"internal/engine/follower/watching.go watching.receive":   "its variables would stay on the stack of an idle watch",
	"internal/leaf/keytable/load.go Loader.touch":             "its loop brings memory that is used later; inlined, its result is unused and it goes",
	"internal/leaf/keytable/visit.go Table.touch":             "its loop brings memory that is used later; inlined, its result is unused and it goes",
	"internal/leaf/keytable/visit.go Table.touchStemOf":       "it brings memory that is used later; inlined, its result is unused and it goes",
	"internal/engine/server/unzip.go Zipped.GoOn":             "its variables would stay on the stack of an idle watch",
	"internal/engine/server/unzip.go Zipped.BeginWait":        "its variables would stay on the stack of an idle watch",
	"internal/engine/source/stream.go stream.reading":         "its variables would stay on the stack of an idle watch",
	"internal/engine/source/stream.go stream.returned":        "its variables would stay on the stack of an idle watch",
	"internal/engine/source/stream.go stream.beginWait":       "its variables would stay on the stack of an idle watch",
	"internal/engine/follower/follower.go Follower.goOnAfter": "its variables would stay on the stack of an idle watch",
	"internal/leaf/wire/window.go window.took":                "its variables would stay on the stack of an idle watch",
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

// imports are the directories of our packages that a package imports, without those of its tests.
func imports(t *testing.T, dir string) (dirs []string) {
	p, err := build.ImportDir(dir, 0)
	require.NoError(t, err)
	for _, imported := range p.Imports {
		if of, ours := strings.CutPrefix(imported, module); ours {
			dirs = append(dirs, path.Clean("."+of))
		}
	}
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
