package informer

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/engine/server"
)

// ErrClusterReplaced says that a server is of another cluster than before: the UID of its
// namespace kube-system has changed. An informer lists the new cluster, and delivers all that
// differs.
var ErrClusterReplaced = server.ErrClusterReplaced

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
	// changed, for lists and watches alike. It may be nil. Its changes to Limit and
	// Continue are undone, because pages belong to the reader.
	ForResourceWithOptions(namespace string, gvr schema.GroupVersionResource, optionsFunc TweakListOptionsFunc) cache.ListerWatcher
}

// NewDynamicListerWatcherFactory returns a factory for the server of config,
// which is copied. Its ListerWatchers share their connections, and each has the
// QPS of config for itself, unless config brings a RateLimiter. With HTTP/2 there are two:
// lists come through one, and watches through another, which holds little for a watch whose
// handler is blocked. A Transport of config is used as it is.
//
// Informers read its lists and watches off the wire, object by object, in the form
// that their ExampleObject asks for, and wait for their handlers meanwhile: a
// Timeout of config ends a page that takes longer, which is then asked for again.
// Authentication, TLS, proxies and compression are those of client-go, as config has
// them; so are the health checks of HTTP/2, by which a connection is given up whose
// other end has vanished. A redirect to another server is refused, because the
// credentials would go with it. Informers ask again after 429 at their own pace, which
// client-go's retries do not add to. Which resources cannot be
// read with a watch-list is remembered by the factory. The error says what is wrong
// with config.
func NewDynamicListerWatcherFactory(config *rest.Config) (DynamicListerWatcherFactory, error) {
	s, err := server.New(config)
	if err != nil {
		return nil, fmt.Errorf("client for dynamic listing and watching: %w", err)
	}
	return listerWatcherFactory{s}, nil
}

type listerWatcherFactory struct{ server *server.Server }

func (f listerWatcherFactory) ForResource(namespace string, gvr schema.GroupVersionResource) cache.ListerWatcher {
	return f.ForResourceWithOptions(namespace, gvr, nil)
}

func (f listerWatcherFactory) ForResourceWithOptions(namespace string, gvr schema.GroupVersionResource, optionsFunc TweakListOptionsFunc) cache.ListerWatcher {
	return resourceListerWatcher{f.server.Resource(namespace, gvr).Tweaked(server.Tweak(optionsFunc))}
}

// resourceListerWatcher is a ListerWatcher of a DynamicListerWatcherFactory.
type resourceListerWatcher struct{ *server.Resource }

// NewFilteredListerWatcher returns lw with options that optionsFunc has changed,
// for lists and watches alike. It may be nil. Its changes to Limit and Continue are
// undone, because pages belong to the reader.
func NewFilteredListerWatcher(lw cache.ListerWatcher, optionsFunc TweakListOptionsFunc) cache.ListerWatcher {
	if resource := server.Of(lw); resource != nil {
		return resourceListerWatcher{resource.Tweaked(server.Tweak(optionsFunc))}
	}
	return server.Filter(lw, server.Tweak(optionsFunc))
}
