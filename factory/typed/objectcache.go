package typed

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/engine/server"
	"github.com/rvinformer/informer/objectcache"
)

// WithObjectCache sets the options of the informers, all objectcache.Informers, and has them keep
// their objects encoded, in far less memory, unless the options say Decoded. It needs
// WithRESTConfig, or WithClientLists. Objects are asked for in protobuf where their type has it,
// whatever the rest.Config names. Listers decode what they return, so that callers may change it. ObjectCache
// returns the informer with its own methods.
//
// With examples, which may be empty, the options count for informers of their types only, before
// those without examples. So Keep can name the fields of one type. With options for all types, an
// informer of a type without these fields panics when it is asked for.
//
// The factory sets some options itself, and New panics if they are set here, as for what cannot
// work: ResyncPeriod, which is an argument of New or WithCustomResyncConfig, and Transform, which
// is WithTransform. To the Indexers it adds an index by namespace. The Name is put before that of
// the resource.
//
// A Snapshot is one informer's. So it has to be given with exactly one example.
//
// Informers with different options are not shared. Two ErrorHandlers, or two indexers of one name,
// count as the same: those of the first factory are used. InformerFor gives out what its newFunc
// makes. WithInformerName cannot be used, because its metrics are those of client-go's own
// informers.
func WithObjectCache(opts objectcache.Options, examples ...metav1.Object) SharedInformerOption {
	return func(s *settings) {
		if len(examples) == 0 {
			s.objects = &opts
		}
		for _, example := range examples {
			s.objectsOf[reflect.TypeOf(example)] = &opts
		}
	}
}

// ObjectCache returns the informer that an informer of a Factory is with WithRESTConfig or
// WithClientLists, nil without. It has more methods: Status, and Store, whose objects can be selected without being
// decoded, and which is nil without WithObjectCache. Other factories may share it. Add handlers to
// the informer of the Factory, which removes them at its end.
func ObjectCache(of cache.SharedIndexInformer) *objectcache.Informer {
	own, _ := of.GetController().(*objectcache.Informer) // whatever is around it
	return own
}

// checkObjects panics if the options of WithObjectCache cannot work.
func (s *settings) checkObjects() {
	if s.objects != nil {
		s.checkObjectsOf(nil, s.objects)
	}
	for t, opts := range s.objectsOf {
		if t == nil {
			panic("typed: WithObjectCache: an example is nil")
		}
		example, _ := reflect.Zero(t).Interface().(runtime.Object)
		if t.Kind() == reflect.Pointer {
			example, _ = reflect.New(t.Elem()).Interface().(runtime.Object)
		}
		s.checkObjectsOf(example, opts)
	}
	for _, opts := range s.objectsOf {
		of := 0
		for _, other := range s.objectsOf {
			if other == opts {
				of++
			}
		}
		if opts.Snapshot != nil && of > 1 {
			panic(oneSnapshot)
		}
	}
}

const oneSnapshot = "typed: WithObjectCache: a Snapshot is one informer's: give it with exactly one example"

// checkObjectsOf is checkObjects for the options of objects like example, or, if that is nil, of
// any.
func (s *settings) checkObjectsOf(example runtime.Object, opts *objectcache.Options) {
	err := opts.Check(example)
	switch {
	case !s.asksConfig && !s.clientLists:
		panic("typed: WithObjectCache without WithRESTConfig or WithClientLists: nothing says how its objects are read")
	case s.informerName != nil:
		panic("typed: WithObjectCache beside WithInformerName, whose metrics are those of client-go's own informers")
	case err != nil:
		panic(fmt.Sprintf("typed: WithObjectCache: %v", err))
	case opts.Snapshot != nil && example == nil:
		panic(oneSnapshot)
	case opts.ResyncPeriod != 0:
		panic("typed: WithObjectCache: ResyncPeriod is an argument of New, or WithCustomResyncConfig")
	case s.shardSelector != nil && !opts.Shard.IsAll():
		panic("typed: WithObjectCache: a Shard beside WithShardSelector")
	case opts.Transform != nil:
		panic("typed: WithObjectCache: Transform is set with WithTransform")
	}
}

// objectsFor returns the options of the informer of a type, nil without an object cache.
func (s *settings) objectsFor(t reflect.Type) *objectcache.Options {
	if opts := s.objectsOf[t]; opts != nil {
		return opts
	}
	return s.objects
}

// cached makes an objectcache.Informer that lists and watches over the connections of the factory's
// rest.Config, or with its client.
func (f *Factory) cached(a ask, example runtime.Object, inJSON bool, opts objectcache.Options) cache.SharedIndexInformer {
	lw := f.lister(a, example, inJSON)
	opts.Name = strings.TrimPrefix(fmt.Sprintf("%s %v", opts.Name, a.resource.GroupResource()), " ")
	opts.ResyncPeriod, opts.Transform = f.resync(a.kind.goType), f.transform
	opts = f.inShard(opts)
	opts.Indexers = maps.Clone(opts.Indexers)
	if opts.Indexers == nil {
		opts.Indexers = cache.Indexers{}
	}
	opts.Indexers[cache.NamespaceIndex] = cache.MetaNamespaceIndexFunc
	if f.requests != nil {
		lw = informer.NewFilteredListerWatcher(lw, informer.TweakListOptionsFunc(f.requests))
	}
	return objectcache.NewSharedIndexInformerWithOptions(lw, example, opts)
}

// lister returns what the informer of an ask lists and watches with.
func (f *Factory) lister(a ask, example runtime.Object, inJSON bool) cache.ListerWatcher {
	if f.clientLists {
		lw, err := listsOf(f.client, example, a.opts.Namespace)
		if err != nil {
			panic(f.refusal(a, err))
		}
		return lw
	}
	lw := f.lists.ForResource(a.opts.Namespace, a.resource)
	if inJSON {
		lw = server.Of(lw).InJSON()
	}
	return lw
}

// variantOf tells object caches apart that keep something else, or read it otherwise.
func variantOf(opts *objectcache.Options) string {
	said := []string{"object cache"}
	say := func(set bool, format string, value any) {
		if set {
			said = append(said, fmt.Sprintf(format, value))
		}
	}
	sorted := func(paths []string) []string { return slices.Compact(slices.Sorted(slices.Values(paths))) }
	say(len(opts.Keep) > 0, "keep %q", sorted(opts.Keep))
	say(len(opts.Prune) > 0, "prune %q", sorted(opts.Prune))
	say(len(opts.Indexers) > 0, "indexers %q", slices.Sorted(maps.Keys(opts.Indexers)))
	say(opts.Snapshot != nil, "snapshot in %s", storeName(opts.Snapshot))
	say(!opts.Shard.IsAll(), "%v", opts.Shard)
	say(opts.BeginAnew, "begun anew %v", opts.BeginAnew)
	say(opts.SnapshotInterval != 0, "saved each %v", opts.SnapshotInterval)
	say(opts.SnapshotSecrets, "secrets %v", opts.SnapshotSecrets)
	say(opts.Decoded, "decoded %v", opts.Decoded)
	say(opts.HotBytes != 0, "hot %d", opts.HotBytes)
	say(opts.ListMode != 0, "list mode %v", opts.ListMode)
	say(opts.WatchListPageSize != 0, "pages of %d", opts.WatchListPageSize)
	say(opts.StallTimeout != 0, "stall timeout %v", opts.StallTimeout)
	say(opts.Budget != nil, "budget %p", opts.Budget)
	say(opts.AuditEvery != 0, "audited each %v", opts.AuditEvery)
	say(opts.AuditOptions != informer.AuditOptions{}, "audits %+v", opts.AuditOptions)
	say(opts.Backoff != nil, "backoff %+v", opts.Backoff)
	return strings.Join(said, " ")
}

// storeName tells stores of snapshots apart.
func storeName(store informer.CheckpointStore) string {
	if named, ok := store.(fmt.Stringer); ok {
		return named.String()
	}
	return fmt.Sprintf("%T %p", store, store)
}
