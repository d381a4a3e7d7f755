package typed

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/factory"
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
		a.newFunc = func() cache.SharedIndexInformer { return f.encoded(a, example, *opts) }
	} else if f.lists != nil {
		a.newFunc = func() cache.SharedIndexInformer { return f.decoded(a, example) }
	} else {
		a.newFunc = func() cache.SharedIndexInformer {
			if f.client == nil {
				panic(f.refusal(a, errNoClient))
			}
			return f.transforming(a, generated(f.client, f.resync(a.kind.goType)))
		}
	}
	return a
}

// custom is the ask with a newFunc of the caller's.
func (f *Factory) custom(obj runtime.Object, newFunc internalinterfaces.NewInformerFunc) ask {
	a := f.ask(obj, true)
	if newFunc != nil {
		a.newFunc = func() cache.SharedIndexInformer {
			return f.transforming(a, newFunc(f.client, f.resync(a.kind.goType)))
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

// transforming sets the factory's transform.
func (f *Factory) transforming(a ask, made cache.SharedIndexInformer) cache.SharedIndexInformer {
	if made == nil || f.transform == nil {
		return made
	}
	if err := made.SetTransform(f.transform); err != nil {
		utilruntime.HandleError(fmt.Errorf("transform of the informer of %v: %w", a.resource, err))
	}
	return made
}

// acquire returns a lease of the informer that was asked for. Where the registry has it with another
// transform, it is another variant, and so is the member from then on: join.
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
	m, settled := f.member(a)
	defer f.forgetUnmade(m) // also when newFunc panics
	lease, err := f.acquire(settled)
	if err != nil {
		panic(err)
	}
	given, spare := f.join(m, lease)
	spare()
	return given
}

// member returns the member of a kind, and its ask: the first for it counts.
func (f *Factory) member(a ask) (m *member, settled ask) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m = f.members[a.kind]
	if m == nil {
		m = &member{ask: a}
		f.members[a.kind] = m
	}
	return m, m.ask
}

// settled returns the ask that was the first for its kind.
func (f *Factory) settled(a ask) ask {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.members[a.kind]; m != nil {
		return m.ask
	}
	return a
}

// forgetUnmade lets the next request decide, if there is no informer of a member.
func (f *Factory) forgetUnmade(m *member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.share == nil && f.members[m.kind] == m {
		delete(f.members, m.kind)
	}
}

// join returns the share of a lease, and what is to be called without the lock: to give
// back what is not needed.
func (f *Factory) join(m *member, lease *factory.Lease[cache.SharedIndexInformer]) (given *share, spare func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if others := f.members[m.kind]; others != nil {
		m = others
	} else { // forgotten by a request at the same time that failed
		f.members[m.kind] = m
	}
	former := m.share
	if former != nil && former.lease.Done() == lease.Done() && !former.over() {
		return former, func() { lease.Release() }
	}
	m.opts.Variant = lease.Key().Variant // it stays that, whoever else comes and goes
	given = &share{SharedIndexInformer: lease.Informer, factory: f, kind: m.kind, lease: lease, ended: make(chan struct{})}
	if former != nil {
		given.successor = succeed(former, lease.Informer)
	}
	m.share = given
	switch {
	case f.shut: // it never runs for this factory
		given.closing = true
		close(given.ended)
		return given, func() { lease.Release() }
	case former != nil && !former.started:
		f.ending.Go(former.end) // others may have started it, at a server that is dead
	}
	return given, func() {}
}
