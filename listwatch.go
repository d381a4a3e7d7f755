package informer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// TweakListOptionsFunc changes the options of a list or a watch before they are
// sent, to add a selector for instance.
type TweakListOptionsFunc func(*metav1.ListOptions)

// DynamicListerWatcherFactory makes ListerWatchers for any resource of one
// server. Their objects are *unstructured.Unstructured, they implement
// cache.ListerWatcherWithContext, and their watches are asked to last a random
// time from 15 up to 30 minutes.
type DynamicListerWatcherFactory interface {
	// ForResource lists and watches a resource in a namespace, or, if that is
	// empty, in all; a cluster-scoped resource needs an empty one.
	ForResource(namespace string, gvr schema.GroupVersionResource) cache.ListerWatcher
	// ForResourceWithOptions is ForResource with options that optionsFunc has
	// changed, for lists and watches alike. It may be nil. What it does to Limit
	// and Continue is undone: pages belong to who reads them.
	ForResourceWithOptions(namespace string, gvr schema.GroupVersionResource, optionsFunc TweakListOptionsFunc) cache.ListerWatcher
}

// NewDynamicListerWatcherFactory returns a factory for the server of config,
// which is copied. Its ListerWatchers share their connections, and each has the
// rate limit of config for itself. The error says what is wrong with config.
func NewDynamicListerWatcherFactory(config *rest.Config) (DynamicListerWatcherFactory, error) {
	config = rest.CopyConfig(config)
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("client for dynamic listing and watching: %w", err)
	}
	if _, err := dynamic.NewForConfigAndClient(config, httpClient); err != nil {
		return nil, fmt.Errorf("client for dynamic listing and watching: %w", err)
	}
	return dynamicListerWatcherFactory{config, httpClient}, nil
}

type dynamicListerWatcherFactory struct {
	config     *rest.Config
	httpClient *http.Client
}

func (f dynamicListerWatcherFactory) ForResource(namespace string, gvr schema.GroupVersionResource) cache.ListerWatcher {
	return f.ForResourceWithOptions(namespace, gvr, nil)
}

func (f dynamicListerWatcherFactory) ForResourceWithOptions(namespace string, gvr schema.GroupVersionResource, optionsFunc TweakListOptionsFunc) cache.ListerWatcher {
	client, err := dynamic.NewForConfigAndClient(f.config, f.httpClient)
	if err != nil { // not possible: the factory has made one from them
		panic(fmt.Sprintf("client for %v: %v", gvr, err))
	}
	resource := dynamicListerWatcher{client.Resource(gvr).Namespace(namespace)}
	return longWatches{listerWatcher{filtered{resource, optionsFunc}}}
}

// listerWatcher gives a ListerWatcherWithContext the methods without a context.
type listerWatcher struct{ cache.ListerWatcherWithContext }

func (lw listerWatcher) minWatchTimeout() time.Duration {
	if long, ok := lw.ListerWatcherWithContext.(longWatcher); ok {
		return long.minWatchTimeout()
	}
	return 0
}

func (lw listerWatcher) List(opts metav1.ListOptions) (runtime.Object, error) {
	return lw.ListWithContext(context.Background(), opts)
}

func (lw listerWatcher) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	return lw.WatchWithContext(context.Background(), opts)
}

// dynamicListerWatcher is one resource of a dynamic client.
type dynamicListerWatcher struct {
	resource dynamic.ResourceInterface
}

func (lw dynamicListerWatcher) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	list, err := lw.resource.List(ctx, opts)
	if err != nil {
		return nil, err // not a typed nil
	}
	return list, nil
}

func (lw dynamicListerWatcher) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	return lw.resource.Watch(ctx, opts)
}

// longWatcher is a ListerWatcher whose watches last longer than a reflector
// would ask for. A reflector asks it, so as to know what silence to expect.
type longWatcher interface{ minWatchTimeout() time.Duration }

// longWatches asks for longer watches than a reflector does.
type longWatches struct{ listerWatcher }

// minLongWatch is the least time that such a watch lasts. They are meant for
// many resources of many servers, where the default of 5 minutes costs much.
const minLongWatch = 15 * time.Minute

func (longWatches) minWatchTimeout() time.Duration { return minLongWatch }

func (lw longWatches) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	if asked := time.Duration(ptr.Deref(opts.TimeoutSeconds, 0)) * time.Second; asked < minLongWatch {
		opts.TimeoutSeconds = ptr.To(int64((minLongWatch + rand.N(minLongWatch)) / time.Second))
	}
	return lw.listerWatcher.WatchWithContext(ctx, opts)
}

func (lw longWatches) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	return lw.WatchWithContext(context.Background(), opts)
}

// NewFilteredListerWatcher returns lw with options that optionsFunc has changed,
// for lists and watches alike. It may be nil. What it does to Limit and Continue
// is undone: pages belong to who reads them.
func NewFilteredListerWatcher(lw cache.ListerWatcher, optionsFunc TweakListOptionsFunc) cache.ListerWatcher {
	return listerWatcher{filtered{cache.ToListerWatcherWithContext(lw), optionsFunc}}
}

type filtered struct {
	lw    cache.ListerWatcherWithContext
	tweak TweakListOptionsFunc
}

func (f filtered) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	return f.lw.ListWithContext(ctx, f.tweaked(opts))
}

func (f filtered) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	return f.lw.WatchWithContext(ctx, f.tweaked(opts))
}

func (f filtered) minWatchTimeout() time.Duration {
	if lw, ok := f.lw.(longWatcher); ok {
		return lw.minWatchTimeout()
	}
	return 0
}

func (f filtered) tweaked(opts metav1.ListOptions) metav1.ListOptions {
	if f.tweak == nil {
		return opts
	}
	limit, token := opts.Limit, opts.Continue
	f.tweak(&opts)
	opts.Limit, opts.Continue = limit, token
	return opts
}
