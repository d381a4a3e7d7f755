package controllerruntime

import (
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/objectcache"
)

// Options are what a cache can do beyond controller-runtime's. The zero value is good.
type Options struct {
	// Objects are the options of all informers: what to keep of each object, how much to keep
	// decoded, how lists are read.
	//
	// Name is put before the name of each informer. Fields for which cache.Options has a place are
	// refused here: ResyncPeriod (SyncPeriod), Transform (DefaultTransform), Indexers (IndexField).
	// ErrorHandler is refused beside DefaultWatchErrorHandler. Where only the metadata of objects
	// is read, paths of Keep outside it are left out.
	Objects objectcache.Options

	// ByObject has the options of single kinds, which take the place of Objects. The keys are as
	// those of cache.Options.
	ByObject map[client.Object]objectcache.Options
}

// NewCache returns a cache that keeps its objects encoded. It is a cache.NewCacheFunc. The error
// names the field of opts that does not work.
func NewCache(config *rest.Config, opts cache.Options) (cache.Cache, error) {
	return newCache(config, opts, Options{})
}

// NewCacheWithOptions returns NewCache with options. The returned function says what is wrong with
// them.
func NewCacheWithOptions(options Options) cache.NewCacheFunc {
	return func(config *rest.Config, opts cache.Options) (cache.Cache, error) {
		return newCache(config, opts, options)
	}
}

func newCache(config *rest.Config, opts cache.Options, own Options) (cache.Cache, error) {
	if config == nil {
		return nil, errors.New("controllerruntime: the rest.Config is nil")
	}
	if opts.NewInformer != nil {
		if !reflect.ValueOf(own).IsZero() {
			return nil, errors.New("controllerruntime: cache.Options.NewInformer brings informers of its own, for which Options have no meaning")
		}
		return cache.New(config, opts)
	}
	if opts.Scheme == nil {
		opts.Scheme = scheme.Scheme
	}
	if err := checkClient(opts.HTTPClient); err != nil {
		return nil, err
	}
	if config.UserAgent == "" {
		config = rest.CopyConfig(config)
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	if opts.Mapper == nil {
		mapper, err := mapperFor(config, opts.HTTPClient)
		if err != nil {
			return nil, fmt.Errorf("controllerruntime: RESTMapper: %w", err)
		}
		opts.Mapper = mapper
	}
	selections, err := newSelections(opts)
	if err != nil {
		return nil, err
	}
	settings, err := newSettings(opts, own, selections.bookmarks())
	if err != nil {
		return nil, err
	}
	listerWatchers, err := listerWatchersFor(config, opts.HTTPClient)
	if err != nil {
		return nil, fmt.Errorf("controllerruntime: %w", err)
	}
	return &objectCache{
		scheme:            opts.Scheme,
		mapper:            opts.Mapper,
		selections:        selections,
		settings:          settings,
		watchErrorHandler: opts.DefaultWatchErrorHandler,
		listerWatchers:    listerWatchers,
		failOnMissing:     opts.ReaderFailOnMissingInformer,
		started:           make(chan struct{}),
		kinds:             map[kindKey]*kind{},
	}, nil
}

// settings are the options of informers.
type settings struct {
	all    objectcache.Options
	byKind map[schema.GroupVersionKind]objectcache.Options
}

// newSettings checks the options of the informers. Bookmarks tells whether all watches may have
// them.
func newSettings(opts cache.Options, own Options, bookmarks bool) (settings, error) {
	s := settings{all: own.Objects, byKind: map[schema.GroupVersionKind]objectcache.Options{}}
	if err := checkObjects("Options.Objects", own.Objects, opts, bookmarks); err != nil {
		return settings{}, err
	}
	for obj, options := range own.ByObject {
		gvk, err := apiutil.GVKForObject(obj, opts.Scheme)
		if err != nil {
			return settings{}, fmt.Errorf("controllerruntime: GroupVersionKind of %T in Options.ByObject: %w", obj, err)
		}
		if _, twice := s.byKind[gvk]; twice {
			return settings{}, fmt.Errorf("controllerruntime: Options.ByObject has two entries of %v", gvk)
		}
		if err := checkObjects(fmt.Sprintf("Options.ByObject[%v]", gvk), options, opts, bookmarks); err != nil {
			return settings{}, err
		}
		s.byKind[gvk] = options
	}
	return s, nil
}

// checkObjects says which field of options has its place elsewhere.
func checkObjects(where string, options objectcache.Options, opts cache.Options, bookmarks bool) error {
	switch {
	case options.ResyncPeriod != 0:
		return fmt.Errorf("controllerruntime: %s.ResyncPeriod: set SyncPeriod of cache.Options", where)
	case options.Transform != nil:
		return fmt.Errorf("controllerruntime: %s.Transform: set DefaultTransform or ByObject of cache.Options", where)
	case options.Snapshot != nil:
		return fmt.Errorf("controllerruntime: %s.Snapshot: one store cannot keep the objects of several informers, which a cache may have of a kind", where)
	case options.Indexers != nil:
		return fmt.Errorf("controllerruntime: %s.Indexers: call IndexField of the cache", where)
	case options.ErrorHandler != nil && opts.DefaultWatchErrorHandler != nil:
		return fmt.Errorf("controllerruntime: %s.ErrorHandler and DefaultWatchErrorHandler of cache.Options are both set", where)
	case options.ListMode == informer.ListModeWatchList && !bookmarks:
		return fmt.Errorf("controllerruntime: %s.ListMode is a watch-list, which needs the bookmarks that EnableWatchBookmarks of cache.Options turns off", where)
	}
	if err := options.Check(nil); err != nil { // what a type does not have is known when it is asked for
		return fmt.Errorf("controllerruntime: %s: %w", where, err)
	}
	return nil
}

// of returns the options of the informers of a kind, but for what its selection decides.
func (s settings) of(gvk schema.GroupVersionKind) objectcache.Options {
	if options, ok := s.byKind[gvk]; ok {
		return options
	}
	return s.all
}

// enabled is a flag that is on where nothing is said.
func enabled(flag *bool) bool { return ptr.Deref(flag, true) }
