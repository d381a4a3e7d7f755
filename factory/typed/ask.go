package typed

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/objectcache"
)

// ask is what a factory asks its registry for.
type ask struct {
	kind     kind
	resource schema.GroupVersionResource
	opts     factory.InformerOptions
	newFunc  factory.NewInformerFunc
}

// accessed is the ask of an accessor, or of ForResource.
func (f *Factory) accessed(example runtime.Object, generated internalinterfaces.NewInformerFunc) ask {
	a := f.ask(example, f.known.opaque)
	if !f.known.opaque {
		a.opts.LabelSelector, a.opts.FieldSelector = f.known.labels, f.known.fields
	}
	if !clusterScoped[a.resource.GroupResource()] {
		a.opts.Namespace = f.namespace
	}
	if opts := f.objectsFor(a.kind.goType); opts != nil {
		a.opts.Variant = strings.TrimPrefix(a.opts.Variant+", "+variantOf(opts), ", ")
		a.newFunc = func() cache.SharedIndexInformer { return f.cached(a, example, false, *opts) }
	} else if f.lists != nil || f.clientLists {
		a.newFunc = func() cache.SharedIndexInformer {
			return f.cached(a, example, !f.protobuf, objectcache.Options{Decoded: true, Identifier: f.informerName.WithResource(a.resource)})
		}
	} else {
		a.newFunc = func() cache.SharedIndexInformer {
			if f.client == nil {
				panic(f.refusal(a, errNoClient))
			}
			return f.prepared(a, generated(f.client, f.resync(a.kind.goType)))
		}
	}
	return a
}

// custom is the ask with a newFunc of the caller's.
func (f *Factory) custom(obj runtime.Object, newFunc internalinterfaces.NewInformerFunc) ask {
	a := f.ask(obj, true)
	if newFunc != nil {
		a.newFunc = func() cache.SharedIndexInformer {
			return f.prepared(a, newFunc(f.client, f.resync(a.kind.goType)))
		}
	}
	return a
}

// ask is the part that both have.
func (f *Factory) ask(obj runtime.Object, private bool) ask {
	a := ask{kind: kindOf(obj), resource: resourceOf(obj)}
	a.opts = factory.InformerOptions{Cluster: f.cluster, InformerType: typeOf(obj)}
	var variants []string
	// Client-go's informers cannot resync for one handler if they were not made to.
	if resync := f.resync(a.kind.goType); resync != 0 {
		variants = append(variants, "resync "+resync.String())
	}
	if f.shardSelector != nil {
		variants = append(variants, f.shardSelector.String())
	}
	if f.transform != nil && f.transformName != "" {
		a.opts.ObjectTransform, a.opts.TransformName = f.transform, f.transformName
	}
	if private || f.transform != nil && f.transformName == "" {
		variants = append(variants, f.private)
	}
	a.opts.Variant = strings.Join(variants, ", ")
	return a
}

// refusal says why there is no informer.
func (f *Factory) refusal(a ask, why error) error {
	return &factory.RequestError{
		Key: factory.Key{Resource: a.resource, LabelSelector: a.opts.LabelSelector, FieldSelector: a.opts.FieldSelector,
			Namespace: a.opts.Namespace, Cluster: a.opts.Cluster, Variant: a.opts.Variant, InformerType: a.opts.InformerType},
		Err: why,
	}
}

// prepared sets the factory's transform and shard.
func (f *Factory) prepared(a ask, made cache.SharedIndexInformer) cache.SharedIndexInformer {
	return f.sharded(a, f.transforming(a, made))
}

// transforming sets the factory's transform.
func (f *Factory) transforming(a ask, made cache.SharedIndexInformer) cache.SharedIndexInformer {
	if made == nil || f.transform == nil {
		return made
	}
	if err := made.SetTransform(f.transform); err != nil {
		report.Unhandled(klog.Background(), fmt.Errorf("transform of the informer of %v: %w", a.resource, err), "Transform was not set")
	}
	return made
}

// acquire returns a lease of the informer that was asked for. Where the registry has it with
// another transform, it is another variant, and so is the member from then on: join.
func (f *Factory) acquire(a ask) (*factory.Lease[cache.SharedIndexInformer], error) {
	lease, err := f.registry.Acquire(a.resource, a.opts, a.newFunc)
	var conflict *factory.TransformConflictError
	if !errors.As(err, &conflict) {
		return lease, err
	}
	a.opts.Variant = strings.TrimPrefix(a.opts.Variant+", "+conflict.Asked.String(), ", ")
	return f.registry.Acquire(a.resource, a.opts, a.newFunc)
}

// informerOf answers an ask: with the share that there is, unless that has ended.
func (f *Factory) informerOf(a ask) *share {
	m := f.takeTurn(a)
	defer f.endTurn(m) // also when newFunc panics
	if former := m.share; former != nil {
		if former.over() {
			former.leave() // its context has ended: nothing else may have noticed yet
		} else if !former.lease.Stopped() {
			return former
		}
	}
	lease, err := f.acquire(m.ask)
	if err != nil {
		panic(err)
	}
	return f.join(m, lease)
}

// takeTurn returns the member of a kind, and waits for other requests for it. The first ask
// for a kind counts.
func (f *Factory) takeTurn(a ask) *member {
	for {
		m := f.member(a)
		m.turn <- struct{}{}
		if f.has(m) {
			return m
		}
		<-m.turn // the request before had no informer, and its ask is forgotten
	}
}

func (f *Factory) member(a ask) *member {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.members[a.kind]
	if m == nil {
		m = &member{ask: a, turn: make(chan struct{}, 1)}
		f.members[a.kind] = m
	}
	return m
}

func (f *Factory) has(m *member) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.members[m.kind] == m
}

// endTurn lets the next request go on, which decides if there is no informer.
func (f *Factory) endTurn(m *member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.share == nil {
		delete(f.members, m.kind)
	}
	<-m.turn
}

// firstFor returns the ask that was the first for its kind.
func (f *Factory) firstFor(a ask) ask {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.members[a.kind]; m != nil {
		return m.ask
	}
	return a
}

// join makes the share of a lease.
func (f *Factory) join(m *member, lease *factory.Lease[cache.SharedIndexInformer]) *share {
	f.mu.Lock()
	defer f.mu.Unlock()
	former := m.share
	m.opts.Variant = lease.Key().Variant // it stays that, whoever else comes and goes
	m.share = &share{SharedIndexInformer: lease.Informer, factory: f, kind: m.kind, lease: lease, ended: make(chan struct{})}
	if former != nil {
		m.share.successor = succeed(former, lease.Informer)
	}
	switch {
	case f.shut: // it never runs for this factory
		m.share.leave()
		m.share.finish.Do(func() { close(m.share.ended) })
	case former != nil && !former.started:
		f.ending.Go(former.end) // others may have started it, at a server that is dead
	}
	return m.share
}
