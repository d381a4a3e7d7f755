package controllerruntime

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/objectcache"
)

// defaultSyncPeriod is controller-runtime's.
const defaultSyncPeriod = 10 * time.Hour

// kindKey names one form of a kind.
type kindKey struct {
	gvk  schema.GroupVersionKind
	form form
}

// kind is one form of a kind: where it is on the server, and which informers have it.
type kind struct {
	kindKey
	example    runtime.Object
	resource   schema.GroupVersionResource
	namespaced bool
	selection  namespaces
	// members are the informers that were asked for, by namespace. The cache's lock guards them.
	members map[string]*member
}

// newKind asks the mapper where a kind is on the server.
func (c *objectCache) newKind(key kindKey) (*kind, error) {
	example, err := key.form.example(key.gvk, c.scheme)
	if err != nil {
		return nil, err
	}
	mapping, err := c.mapper.RESTMapping(key.gvk.GroupKind(), key.gvk.Version)
	if err != nil {
		return nil, err
	}
	if err := key.form.checkList(key.gvk, c.scheme); err != nil {
		return nil, err
	}
	scope := mapping.Scope.Name()
	return &kind{
		kindKey:    key,
		example:    example,
		resource:   mapping.Resource,
		namespaced: scope == meta.RESTScopeNameNamespace,
		selection:  c.selections.of(key.gvk, scope),
		members:    map[string]*member{},
	}, nil
}

// holds returns the name in the selection that a namespace belongs to.
func (k *kind) holds(namespace string) (name string, ok bool) {
	if !k.namespaced {
		return metav1.NamespaceAll, true
	}
	if _, named := k.selection[namespace]; named {
		return namespace, true
	}
	_, ok = k.selection[metav1.NamespaceAll]
	return metav1.NamespaceAll, ok
}

// newMember makes the informer of a namespace in k's selection.
func (c *objectCache) newMember(k *kind, name string) (*member, error) {
	config := k.selection[name]
	namespace := name
	if namespace == metav1.NamespaceAll && k.namespaced {
		namespace = exactly(config.FieldSelector)
	}
	lw := c.listerWatchers.ForResourceWithOptions(namespace, k.resource, func(opts *metav1.ListOptions) {
		if config.LabelSelector != nil {
			opts.LabelSelector = config.LabelSelector.String()
		}
		if config.FieldSelector != nil {
			opts.FieldSelector = config.FieldSelector.String()
		}
		if !enabled(config.EnableWatchBookmarks) {
			opts.AllowWatchBookmarks = false
		}
	})
	options := c.settings.of(k.gvk)
	options.Name = strings.TrimSpace(options.Name + " " + k.describe(name))
	options.ResyncPeriod = jittered(ptr.Deref(config.SyncPeriod, defaultSyncPeriod))
	options.Transform = config.Transform
	options.Keep = k.form.fields(options.Keep)
	if options.Decoded {
		options.Indexers = decodedIndexers()
	}
	if !enabled(config.EnableWatchBookmarks) && options.ListMode == informer.ListModeAuto {
		options.ListMode = informer.ListModePaged
	}
	if err := options.Check(k.example); err != nil {
		return nil, err
	}
	i := objectcache.NewSharedIndexInformerWithOptions(lw, k.example, options)
	if c.watchErrorHandler != nil {
		if err := i.SetWatchErrorHandlerWithContext(c.watchErrorHandler); err != nil {
			return nil, err
		}
	}
	return newMember(k, i, ptr.Deref(config.UnsafeDisableDeepCopy, false)), nil
}

// describe names the informer of a namespace in k's selection, for logs.
func (k *kind) describe(name string) string {
	text := fmt.Sprintf("%s %s", k.form, k.gvk.Kind)
	if k.gvk.Group != "" {
		text += "." + k.gvk.Group
	}
	if name != metav1.NamespaceAll {
		text += " in " + name
	}
	return text
}

// jittered returns a period that is up to a tenth longer or shorter, so that informers do not
// resync together.
func jittered(period time.Duration) time.Duration {
	return time.Duration(float64(period) * (0.9 + rand.Float64()/5))
}

// member is one informer of a cache.
type member struct {
	kind     *kind
	informer *objectcache.Informer
	// shared tells that readers get the store's own objects.
	shared bool

	// removal ends when remove is called.
	removal context.Context
	remove  context.CancelFunc
	// ended is closed when the informer has returned.
	ended chan struct{}
	// ready tells that the informer was seen synced.
	ready atomic.Bool
}

func newMember(k *kind, i *objectcache.Informer, shared bool) *member {
	m := &member{kind: k, informer: i, shared: shared, ended: make(chan struct{})}
	m.removal, m.remove = context.WithCancel(context.Background())
	return m
}

// run runs the informer until ctx ends or the member is removed.
func (m *member) run(ctx context.Context) {
	defer close(m.ended)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.removal, cancel)()
	m.informer.RunWithContext(ctx)
}

// waitSynced returns when the informer has synced. With a context that has ended it fails, unless
// the informer is known to have synced: whether the first list was quick does not matter.
func (m *member) waitSynced(ctx context.Context) error {
	if m.ready.Load() {
		return nil
	}
	if ctx.Err() != nil {
		return m.notSynced()
	}
	if m.informer.HasSynced() { // it may have ended since, and a select picks at random
		m.ready.Store(true)
		return nil
	}
	select {
	case <-m.informer.HasSyncedChecker().Done():
		m.ready.Store(true)
		return nil
	case <-ctx.Done():
		return m.notSynced()
	case <-m.ended:
		return fmt.Errorf("the informer of %v ended before it had synced", m.kind.gvk)
	case <-m.removal.Done():
		return fmt.Errorf("the informer of %v was removed before it had synced", m.kind.gvk)
	}
}

// notSynced is the error of a wait that its context ended. It says what has failed last, such as that
// the server does not list the kind.
func (m *member) notSynced() error {
	text := fmt.Sprintf("failed waiting for %T Informer to sync", m.kind.example)
	if err := m.informer.Status().LastError; err != nil {
		text += ": " + err.Error()
	}
	return apierrors.NewTimeoutError(text, 0)
}
