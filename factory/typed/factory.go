package typed

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/objectcache"
)

// SharedInformerFactory is client-go's interface. *Factory implements it.
type SharedInformerFactory = informers.SharedInformerFactory

// GenericInformer is what ForResource returns.
type GenericInformer = informers.GenericInformer

// NewSharedInformerFactory returns a factory for all namespaces. Its informers resync in
// the period defaultResync, with zero never. It is New, as a
// SharedInformerFactory.
func NewSharedInformerFactory(client kubernetes.Interface, defaultResync time.Duration) SharedInformerFactory {
	return New(client, defaultResync)
}

// NewFilteredSharedInformerFactory is NewSharedInformerFactoryWithOptions with
// WithNamespace and WithTweakListOptions.
func NewFilteredSharedInformerFactory(client kubernetes.Interface, defaultResync time.Duration, namespace string, tweakListOptions internalinterfaces.TweakListOptionsFunc) SharedInformerFactory {
	return New(client, defaultResync, WithNamespace(namespace), WithTweakListOptions(tweakListOptions))
}

// NewSharedInformerFactoryWithOptions is New, as a
// SharedInformerFactory.
func NewSharedInformerFactoryWithOptions(client kubernetes.Interface, defaultResync time.Duration, options ...SharedInformerOption) SharedInformerFactory {
	return New(client, defaultResync, options...)
}

// Factory is a SharedInformerFactory. It is safe for concurrent use, and calls nothing
// with a lock held.
type Factory struct {
	settings
	laterGroups
	// lists is nil without a rest.Config.
	lists    informer.DynamicListerWatcherFactory
	protobuf bool
	// known are the selectors of tweak, and requests is what is called for each
	// request: tweak itself, unless others rely on the selectors. Nil: nothing.
	known    selectors
	requests internalinterfaces.TweakListOptionsFunc
	// shares tells that others use the registry.
	shares bool
	// releaseServer ends the use of the server in the registry.
	releaseServer func()
	// private is the variant of informers that others cannot have.
	private string
	// quit is closed by Shutdown.
	quit chan struct{}
	// ending counts the shares that were started and have not ended. It grows only
	// with mu, and not after Shutdown.
	ending sync.WaitGroup

	mu sync.Mutex
	// members are what was asked for. The first to ask for a kind decides how its
	// informers are made.
	members map[kind]*member
	shut    bool
}

var _ SharedInformerFactory = &Factory{}

// member is one kind of objects that was asked for. All of it is guarded by the factory's
// lock.
type member struct {
	ask
	// share is the newest, nil until the first is made. Only the request whose turn it is
	// replaces it.
	share *share
	// turn holds one: requests for a kind take turns, so that none has a lease that it does
	// not need, nor fails with another one's newFunc.
	turn chan struct{}
}

// factories counts the factories of the process, for the names of private variants.
var factories atomic.Int64

// New returns a factory. The client may be nil if it is never needed: see
// WithRESTConfig. An informer that needs it panics then, and names its resource.
//
// It panics if WithRESTConfig was given nil or what no connection can be made of, or
// beside a client that has no connection, as fake ones have not, or if WithClientLists was given
// beside it or without a client. It panics too if the
// registry of WithFactory is in use, without WithCluster, for another server: informers of
// the two would be taken for the same. It panics if options of WithObjectCache cannot work.
func New(client kubernetes.Interface, defaultResync time.Duration, options ...SharedInformerOption) *Factory {
	f := &Factory{
		settings: settings{client: client, defaultResync: defaultResync, customResync: map[reflect.Type]time.Duration{},
			objectsOf: map[reflect.Type]*objectcache.Options{}},
		private: fmt.Sprintf("of typed factory %d", factories.Add(1)),
		quit:    make(chan struct{}),
		members: map[kind]*member{},
	}
	for _, option := range options {
		if option != nil {
			option(&f.settings)
		}
	}
	if isNil(f.client) {
		f.client = nil
	}
	f.checkClientLists()
	f.checkShard()
	f.checkObjects()
	f.laterGroups = newLaterGroups(f.settings)
	server := serverOf(f.client, f.config)
	if f.asksConfig {
		f.useConfig()
	}
	f.shares = f.registry != nil
	if !f.shares {
		f.registry = factory.New()
	}
	f.useServer(server)
	f.known, f.requests = selectorsOf(f.tweak), f.tweak
	if f.tweak != nil && f.shares && !f.known.opaque {
		f.requests = f.known.tweakTo
	}
	return f
}

func isNil(client kubernetes.Interface) bool {
	v := reflect.ValueOf(client)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

func (f *Factory) useConfig() {
	if f.config == nil {
		panic("typed: WithRESTConfig: the rest.Config is nil")
	}
	if f.client != nil && !hasConnection(f.client) {
		panic(fmt.Sprintf("typed: WithRESTConfig beside a client without connections (%T): its objects are not those of the server", f.client))
	}
	lists, err := informer.NewDynamicListerWatcherFactory(f.config)
	if err != nil {
		panic(fmt.Sprintf("typed: WithRESTConfig: %v", err))
	}
	f.lists, f.protobuf = lists, wantsProtobuf(f.config)
	f.config = nil // it has secrets, and is of no more use
}

// hasConnection tells a real client from a fake one.
func hasConnection(client kubernetes.Interface) bool {
	connection, ok := client.CoreV1().RESTClient().(*rest.RESTClient)
	return !ok || connection != nil
}

var errNoClient = errors.New("the client is nil")

// InformerFor returns the informer of objects of obj's type, or, where that is an
// *unstructured.Unstructured or a *metav1.PartialObjectMetadata, of its kind. The first
// newFunc counts, that of a typed accessor included: for as long as the factory lives,
// for the next informer too when one was stopped. It is called with no lock held, and
// may ask the factory for others.
//
// What newFunc makes is not shared with other factories, because it is not known what it lists.
// The transform of the factory is set.
//
// It panics with a *factory.RequestError, which names the resource, if newFunc is nil
// or returns nil, and if obj is nil.
func (f *Factory) InformerFor(obj runtime.Object, newFunc internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	v := reflect.ValueOf(obj)
	switch {
	case !v.IsValid():
		panic("typed: InformerFor: the object is nil: its type says what the informer is of")
	case v.Kind() == reflect.Pointer && v.IsNil(): // it says that as well
		obj = reflect.New(v.Type().Elem()).Interface().(runtime.Object)
	}
	return f.informerOf(f.custom(obj, newFunc))
}

// InformerName is that of WithInformerName, nil without.
func (f *Factory) InformerName() *cache.InformerName { return f.informerName }

// accessors is the factory as the typed accessors see it: the newFunc that they give
// says no more than the factory knows.
type accessors struct{ *Factory }

func (a accessors) InformerFor(obj runtime.Object, newFunc internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	return a.informerOf(a.accessed(obj, newFunc))
}

// resync is the period of a type.
func (f *Factory) resync(of reflect.Type) time.Duration {
	if period, ok := f.customResync[of]; ok {
		return period
	}
	return f.defaultResync
}

func wantsProtobuf(config *rest.Config) bool {
	asked := config.ContentType + "," + config.AcceptContentTypes
	return asked == "," || strings.Contains(asked, runtime.ContentTypeProtobuf)
}
