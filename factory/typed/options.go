package typed

import (
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/objectcache"
)

// SharedInformerOption changes what a factory is made of. Of two that set the same,
// the later one counts.
type SharedInformerOption func(*settings)

// settings are what a factory is made of.
type settings struct {
	client        kubernetes.Interface
	defaultResync time.Duration
	customResync  map[reflect.Type]time.Duration
	resyncConfigs []informers.SharedInformerOption // the same for client-go
	namespace     string
	tweak         internalinterfaces.TweakListOptionsFunc
	transform     cache.TransformFunc
	transformName string
	// shardSelector is nil for all objects, and shard says the same.
	shardSelector sharding.Selector
	shard         informer.Shard
	informerName  *cache.InformerName
	registry      *factory.Factory
	cluster       string
	config        *rest.Config
	// asksConfig tells that WithRESTConfig was used, with nil perhaps.
	asksConfig bool
	// clientLists tells that WithClientLists was used.
	clientLists bool
	// objects are the options of WithObjectCache, and objectsOf those for some types.
	objects   *objectcache.Options
	objectsOf map[reflect.Type]*objectcache.Options
}

// WithCustomResyncConfig sets resync periods of informers that are not those of the
// factory, by an object of their type, which may be empty.
func WithCustomResyncConfig(resyncConfig map[metav1.Object]time.Duration) SharedInformerOption {
	return func(s *settings) {
		for example, period := range resyncConfig {
			s.customResync[reflect.TypeOf(example)] = period
		}
		s.resyncConfigs = append(s.resyncConfigs, informers.WithCustomResyncConfig(resyncConfig))
	}
}

// WithTweakListOptions has tweak change the options of each list and each watch: to add
// a selector, for instance. See the package documentation for what that means where
// informers are shared.
func WithTweakListOptions(tweak internalinterfaces.TweakListOptionsFunc) SharedInformerOption {
	return func(s *settings) { s.tweak = tweak }
}

// WithNamespace restricts informers of resources with namespaces to one; empty, the
// default: all.
func WithNamespace(namespace string) SharedInformerOption {
	return func(s *settings) { s.namespace = namespace }
}

// WithTransform has transform change each object before it is stored. An informer with
// a transform is shared only with those whose transform has the same name:
// WithTransformName.
func WithTransform(transform cache.TransformFunc) SharedInformerOption {
	return func(s *settings) { s.transform = transform }
}

// WithTransformName names the transform, since functions have no identity: two
// transforms of the same name are the same. Without a transform it has no meaning.
func WithTransformName(name string) SharedInformerOption {
	return func(s *settings) { s.transformName = name }
}

// WithShardSelector has the informers follow a part of the objects, as the option of client-go 0.38
// does. Listers do not find the others. A server that ignores the selector sends all objects, and
// those outside are dropped here. Informers of different shards are not shared.
//
// With WithRESTConfig, it works with each version of client-go, and New panics if the selector has
// more than one range, or if WithObjectCache has a Shard too. Otherwise the informers are
// client-go's, or those of a newFunc of the caller's, and need a method SetShardSelector, which
// those of client-go have from 0.38 on. An informer that cannot follow the shard panics when it is
// asked for, and so does the accessor of a group that client-go has added after 0.36: ForResource
// serves that too.
func WithShardSelector(selector sharding.Selector) SharedInformerOption {
	return func(s *settings) { s.shardSelector = selector }
}

// WithInformerName has client-go publish metrics of the informers under a name.
// Shutdown releases it. An informer that is shared has the name of the factory that was
// first to ask for it. Client-go gives a name to one informer of each resource, once: an
// informer that takes the place of a stopped one has no metrics.
func WithInformerName(informerName *cache.InformerName) SharedInformerOption {
	return func(s *settings) { s.informerName = informerName }
}

// WithFactory keeps the informers in registry, and shares them with all others that use
// it: other typed factories, and users of registry itself. Nil, the default: the factory
// has a registry of its own, and shares nothing.
//
// Whoever follows several clusters in one registry names them: see WithCluster. New panics
// where a factory without a name has another server than one before it that is not shut
// down.
func WithFactory(registry *factory.Factory) SharedInformerOption {
	return func(s *settings) { s.registry = registry }
}

// WithCluster names the cluster of the client, which tells its informers from those of
// other clusters in the same registry. Any text; empty is a cluster as well. Factories with
// the same name share informers also where they reach the cluster by different URLs.
func WithCluster(name string) SharedInformerOption {
	return func(s *settings) { s.cluster = name }
}

// WithRESTConfig has the informers list and watch over connections of their own, made
// by config, which is copied: objects are read off the wire one by one, and one that the
// informer has already is not decoded again. The client is not asked for them then, and
// may be nil. It asks for protobuf where the type has it, unless the ContentType or the
// AcceptContentTypes of config name another and not protobuf.
//
// Each informer has the QPS of config for itself, unless config brings a RateLimiter.
// Informers whose newFunc is the user's own (InformerFor) list as that has them list.
func WithRESTConfig(config *rest.Config) SharedInformerOption {
	return func(s *settings) { s.config, s.asksConfig = config, true }
}

// WithClientLists has the informers list and watch with the client of the factory, in place of the
// connections of WithRESTConfig, and be the same objectcache.Informers otherwise. With a fake
// clientset, tests so have the stores that the program has. The client decodes each list whole
// before the informer sees it, so that with a real server WithRESTConfig takes less memory.
//
// New panics if the client is nil, or beside WithRESTConfig.
func WithClientLists() SharedInformerOption {
	return func(s *settings) { s.clientLists = true }
}
