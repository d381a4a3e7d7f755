package repository_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/rvinformer/informer"
)

// Each block of Go in the pages for users is, but for its spaces, in a Go file that the tests
// build.
func TestSnippetsOfPagesCompile(t *testing.T) {
	var compiled strings.Builder
	for _, pattern := range []string{
		"*_test.go", "tests/*/*_test.go", "factory/*_test.go", "factory/typed/*_test.go", "controller/*_test.go", "objectcache/*_test.go", "informertest/*_test.go", "fleet/*_test.go", "metrics/*_test.go", "registry/*_test.go", "controllerruntime/*_test.go", "statuspage/*_test.go", "fleet/shards/*_test.go", "examples/getting-started/*.go", "examples/fleet/*.go", "sqlsink/example/*.go", "sqlsink/*_test.go", "examples/stream/*.go", "examples/stream/demo/*.go",
	} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			compiled.WriteString(withoutSpaces(string(text)))
		}
	}
	blocks := 0
	for _, p := range documents(t) {
		if strings.Contains(p.path, "/") && !strings.HasPrefix(p.path, "docs/") {
			continue
		}
		for _, block := range p.blocks {
			if block.language != "go" {
				continue
			}
			blocks++
			if !strings.Contains(compiled.String(), withoutSpaces(block.text)) {
				t.Errorf("%s: no test has this block:\n%s", p.path, block.text)
			}
		}
	}
	require.Greater(t, blocks, 5)
}

// withoutSpaces returns the lines of a text without indentation, alignment and empty lines.
func withoutSpaces(text string) string {
	lines := []string{""}
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 0 {
			lines = append(lines, strings.Join(fields, " "))
		}
	}
	return strings.Join(append(lines, ""), "\n")
}

// The following are the blocks of the pages, with what they take for granted.

// database is one that a program mirrors objects into.
type database interface {
	InTransaction(ctx context.Context, events []informer.Event) error
}

func snippetOfTheREADME(ctx context.Context, restConfig *rest.Config, db database) error {
	factory, err := informer.NewDynamicListerWatcherFactory(restConfig)
	if err != nil {
		return err
	}
	i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
		ListerWatcher: factory.ForResource("", schema.GroupVersionResource{Version: "v1", Resource: "pods"}),
		ExampleObject: &corev1.Pod{}, // or raw bytes, metadata only, unstructured
		BatchHandler: informer.BatchHandlerFunc(func(ctx context.Context, events []informer.Event) error {
			return db.InTransaction(ctx, events) // an error: the batch comes again
		}),
		Checkpoint: informer.FileCheckpoint("/var/lib/mine/pods.checkpoint"), // where the next process goes on
	})
	i.RunWithContext(ctx) // lists, watches and retries; returns after everything that it started
	return nil
}

func snippetOfAudit(ctx context.Context, i informer.ResourceVersionInformer, config *informer.InformerConfig) {
	report, err := i.Audit(ctx, informer.AuditOptions{})
	if err == nil && report.Differences() > 0 {
		log.Printf("missing %v, stale %v, superfluous %v", report.Missing, report.Stale, report.Superfluous)
	}
	config.AuditEvery = 24 * time.Hour
	config.AuditOptions.Repair = true
}

func snippetOfRedeliver(ctx context.Context, pods informer.ResourceVersionInformer) error {
	err := pods.Redeliver(ctx, informer.RedeliverOptions{PerSecond: 1000})
	return err
}

func snippetOfASharedInformer(ctx context.Context, lw cache.ListerWatcher, index, mirror informer.ResourceEventHandler) error {
	shared := informer.NewSharedResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: lw})
	go shared.RunWithContext(ctx)
	if _, err := shared.AddEventHandler(index); err != nil {
		return err
	}
	late, err := shared.AddEventHandler(mirror) // at any time: it gets every object too
	if err != nil {
		return err
	}
	<-shared.RemoveHandler(late) // its last call has returned
	return nil
}

func snippetOfNewInformer(ctx context.Context, lw cache.ListerWatcher, handler cache.ResourceEventHandler) {
	store := cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, cache.Indexers{})
	i := informer.NewInformer(lw, &corev1.Pod{}, store, 10*time.Minute, handler, nil)
	go i.RunWithContext(ctx)
}

func snippetOfConfig(ctx context.Context, lw cache.ListerWatcher, process func(cache.Deltas) error) {
	c := informer.NewNamedController("pods", &informer.Config{
		ListerWatcher: lw,
		ObjectType:    &corev1.Pod{},
		Process: func(obj interface{}, isInInitialList bool) error {
			return process(obj.(cache.Deltas))
		},
	})
	go c.RunWithContext(ctx)
}

func snippetOfReflector(ctx context.Context, lw cache.ListerWatcher, store cache.Store) {
	r := informer.NewReflector(lw, &corev1.Pod{}, store, 0)
	go r.RunWithContext(ctx)
}

func snippetOfLogs() {
	logger := slog.New(slog.NewJSONHandler(os.Stdout, nil))
	klog.SetSlogLogger(logger)
}

func snippetOfACluster() (*rest.Config, error) {
	config, err := rest.InClusterConfig()
	return config, err
}

func snippetOfProbes(i informer.ResourceVersionInformer) {
	http.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if s := i.Status(); !s.Synced {
			http.Error(w, fmt.Sprintf("%v, not synced: %v", s.Phase, s.LastError), http.StatusServiceUnavailable)
		}
	})
	http.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
}

var (
	_ = snippetOfACluster
	_ = snippetOfLogs
	_ = snippetOfProbes
	_ = snippetOfAudit
	_ = snippetOfRedeliver
	_ = snippetOfTheREADME
	_ = snippetOfASharedInformer
	_ = snippetOfNewInformer
	_ = snippetOfConfig
	_ = snippetOfReflector
)
