package script

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/informertest/oracle"
	"github.com/rvinformer/informer/internal/leaf/rv"
	"github.com/rvinformer/informer/objectcache"
)

// Cached makes an objectcache.Informer. Beside the handler of the script it has one that is slow,
// one that comes and goes each minute, and a mirror; and a reader looks at its store now and then.
// What the two find wrong is what Idle returns. It has no budget, workers, batches and checkpoints;
// raw objects are unstructured ones.
func Cached(s Setup) (*Subject, error) { return s.cached(0, objectcache.Options{}) }

// CachedLate is Cached with the handler of the script added a minute after the others.
func CachedLate(s Setup) (*Subject, error) { return s.cached(time.Minute, objectcache.Options{}) }

// CachedDecoded is CachedLate with objects that are kept decoded.
func CachedDecoded(s Setup) (*Subject, error) {
	return s.cached(time.Minute, objectcache.Options{Decoded: true})
}

func (s Setup) cached(after time.Duration, opts objectcache.Options) (*Subject, error) {
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	kind := example(s.Decode)
	if s.Decode == "raw" {
		kind = nil
	}
	opts.Name = "script"
	opts.Indexers = cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, byState: indexState}
	opts.ErrorHandler = config.ErrorHandler
	opts.ListMode = config.ListMode
	opts.WatchListPageSize, opts.StallTimeout = config.WatchListPageSize, config.StallTimeout
	i := objectcache.NewSharedIndexInformerWithOptions(config.ListerWatcher, kind, opts)
	c := &cached{setup: s, informer: i, mirrored: map[string]string{}, newest: map[string]string{}}
	for _, h := range []cache.ResourceEventHandler{c, slowlyCached(3 * time.Second)} {
		if _, err := i.AddEventHandler(h); err != nil {
			return nil, err
		}
	}
	if after == 0 {
		if err := c.judge(); err != nil {
			return nil, err
		}
	}
	return &Subject{
		Run:       func(ctx context.Context) { c.run(ctx, after) },
		Once:      true,
		HasSynced: c.hasSynced,
		Origin:    func() (oracle.Run, error) { return oracle.Run{IgnoresSynced: !s.Mistyped}, nil },
		Stored:    c.stored,
		Audit:     i.Audit,
		Idle:      c.idle,
	}, nil
}

const byState = "state"

func indexState(obj interface{}) ([]string, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	return []string{accessor.GetAnnotations()["state"]}, nil
}

// slowlyCached is a handler whose calls take so long. It takes no updates, so that it is not behind
// for ever.
func slowlyCached(each time.Duration) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{DeleteFunc: func(interface{}) { time.Sleep(each) }}
}

// cached is an objectcache.Informer that is put to a script. As a handler, it mirrors what it is
// told.
type cached struct {
	setup    Setup
	informer *objectcache.Informer

	mu       sync.Mutex
	judged   cache.ResourceEventHandlerRegistration
	mirrored map[string]string // versions by key
	newest   map[string]string // that a reader has seen
	wrong    []error
}

// judge adds the handler of the script.
func (c *cached) judge() error {
	judged, err := c.informer.AddEventHandler(c.setup.Handler)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.judged = judged
	return err
}

func (c *cached) hasSynced() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.judged != nil && c.judged.HasSynced()
}

// reading is how often the store is read, at moments that scripts do not act at.
const reading = 53 * time.Second

func (c *cached) run(ctx context.Context, after time.Duration) {
	var beside sync.WaitGroup
	defer beside.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	beside.Go(func() { every(ctx, time.Minute, c.visit) })
	beside.Go(func() { every(ctx, reading, c.read) })
	if after > 0 {
		beside.Go(func() {
			select {
			case <-ctx.Done():
			case <-time.After(after):
				if err := c.judge(); err != nil && !c.informer.IsStopped() {
					c.found(err)
				}
			}
		})
	}
	c.informer.RunWithContext(ctx)
}

// visit adds a handler, and removes it.
func (c *cached) visit() {
	visitor, err := c.informer.AddEventHandler(&cache.ResourceEventHandlerFuncs{AddFunc: func(interface{}) {}})
	if err == nil {
		err = c.informer.RemoveEventHandler(visitor)
	}
	if err != nil && !c.informer.IsStopped() {
		c.found(err)
	}
}

func (c *cached) found(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrong = append(c.wrong, err)
}

// read looks at one state of the store: no key is there twice, none has gone back in time, and the
// indexes agree.
func (c *cached) read() {
	seen := map[string]string{}
	for _, obj := range c.informer.GetIndexer().List() {
		key, version := versionOf(obj)
		if _, twice := seen[key]; twice {
			c.found(fmt.Errorf("a reader sees %s twice", key))
		}
		seen[key] = version
	}
	travelled := c.setup.Travelled()
	c.mu.Lock()
	for key, version := range seen {
		if rv.Compare(version, c.newest[key]) == rv.Older && !travelled {
			c.wrong = append(c.wrong, fmt.Errorf("a reader sees %s at %s after %s", key, version, c.newest[key]))
		}
	}
	c.newest = seen
	c.mu.Unlock()
	for _, name := range []string{cache.NamespaceIndex, byState} {
		for _, value := range c.informer.GetIndexer().ListIndexFuncValues(name) {
			c.readIndex(name, value)
		}
	}
}

func (c *cached) readIndex(name, value string) {
	objects, err := c.informer.GetIndexer().ByIndex(name, value)
	if err != nil {
		c.found(err)
		return
	}
	for _, obj := range objects {
		if values, err := c.informer.GetIndexer().GetIndexers()[name](obj); err != nil || len(values) != 1 || values[0] != value {
			key, _ := versionOf(obj)
			c.found(fmt.Errorf("the index %s has %s under %q, not under %q: %w", name, key, value, values, err))
		}
	}
}

func versionOf(obj interface{}) (key, version string) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	if m, ok := obj.(metav1.Object); ok {
		version = m.GetResourceVersion()
	}
	return keyOf(obj), version
}

// OnAdd and the others keep the mirror, and compare it with what they are told.
func (c *cached) OnAdd(obj interface{}, _ bool) {
	key, version := versionOf(obj)
	c.mirror(key, "", version, obj)
}

func (c *cached) OnUpdate(oldObj, newObj interface{}) {
	key, version := versionOf(newObj)
	_, before := versionOf(oldObj)
	c.mirror(key, before, version, newObj)
}

func (c *cached) OnDelete(obj interface{}) {
	key, _ := versionOf(obj)
	c.mirror(key, "", "", obj)
}

func (c *cached) mirror(key, before, now string, obj interface{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	had, known := c.mirrored[key]
	_, isObject := obj.(runtime.Object)
	switch {
	case now == "" && !known:
		c.wrong = append(c.wrong, fmt.Errorf("%s is deleted and was not there", key))
	case now != "" && had != before:
		c.wrong = append(c.wrong, fmt.Errorf("%s is told from %q to %q, and was at %q", key, before, now, had))
	case now != "" && !isObject:
		c.wrong = append(c.wrong, fmt.Errorf("%s is told as a %T", key, obj))
	}
	if now == "" {
		delete(c.mirrored, key)
	} else {
		c.mirrored[key] = now
	}
}

func (c *cached) stored() map[string]string {
	stored := map[string]string{}
	for _, obj := range c.informer.GetIndexer().List() {
		key, version := versionOf(obj)
		stored[key] = version
	}
	return stored
}

// idle returns what was found wrong, also where nothing is quiet, and what is wrong now.
func (c *cached) idle(complete bool) error {
	c.read()
	stored := c.stored()
	c.mu.Lock()
	defer c.mu.Unlock()
	err := errors.Join(c.wrong...)
	if !maps.Equal(stored, c.mirrored) {
		err = errors.Join(err, fmt.Errorf("the store has %v, the mirror %v", stored, c.mirrored))
	}
	status := c.informer.Status()
	status.Queued, status.QueuedBytes = 0, 0 // of the slow handler
	return errors.Join(err, c.setup.idle(status, len(stored)), c.setup.whole(complete, status, c.informer.LastSyncResourceVersion()))
}

var _ cache.ResourceEventHandler = (*cached)(nil)
