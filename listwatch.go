package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion/queryparams"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
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
// client-go's retries do not add to. Which resources can not be
// read with a watch-list is remembered by the factory. The error says what is wrong
// with config.
func NewDynamicListerWatcherFactory(config *rest.Config) (DynamicListerWatcherFactory, error) {
	if config == nil {
		return nil, errors.New("client for dynamic listing and watching: the rest.Config is nil")
	}
	asked := config.ContentType + "," + config.AcceptContentTypes
	config = dynamic.ConfigFor(config) // a copy
	httpClient, err := clientFor(config)
	if err != nil {
		return nil, fmt.Errorf("client for dynamic listing and watching: %w", err)
	}
	client, err := restClient(config, httpClient, statusCodecs())
	if err != nil {
		return nil, fmt.Errorf("client for dynamic listing and watching: %w", err)
	}
	return &dynamicListerWatcherFactory{
		config:       config,
		httpClient:   httpClient,
		client:       client,
		asksProtobuf: strings.Contains(asked, runtime.ContentTypeProtobuf),
		watchLists:   newWatchListMemory(),
	}, nil
}

type dynamicListerWatcherFactory struct {
	config     *rest.Config
	httpClient *http.Client
	// client is for what is read off the wire. Its requests are given a rate limiter.
	client       rest.Interface
	asksProtobuf bool
	watchLists   *watchListMemory
}

func (f *dynamicListerWatcherFactory) ForResource(namespace string, gvr schema.GroupVersionResource) cache.ListerWatcher {
	return f.ForResourceWithOptions(namespace, gvr, nil)
}

func (f *dynamicListerWatcherFactory) ForResourceWithOptions(namespace string, gvr schema.GroupVersionResource, optionsFunc TweakListOptionsFunc) cache.ListerWatcher {
	limiter := f.decodingClient(nil).GetRateLimiter() // as client-go makes them
	return resourceListerWatcher{server: f, limiter: limiter, namespace: namespace, resource: gvr}.tweaked(optionsFunc)
}

// decodingClient is a client for who wants lists and watches decoded. Limiter is its rate
// limiter, nil for the one that config asks for.
func (f *dynamicListerWatcherFactory) decodingClient(limiter flowcontrol.RateLimiter) rest.Interface {
	config := f.config
	if limiter != nil {
		config = rest.CopyConfig(config)
		config.RateLimiter = limiter
	}
	client, err := restClient(config, f.httpClient, config.NegotiatedSerializer)
	if err != nil { // not possible: the factory has made one from them
		panic(fmt.Sprintf("client for decoded lists and watches: %v", err))
	}
	return client
}

// restClient is a client whose answers, where they are decoded, codecs decode.
func restClient(config *rest.Config, httpClient *http.Client, codecs runtime.NegotiatedSerializer) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion = &schema.GroupVersion{} // of no matter, but required
	config.APIPath = "/"                         // each request has its own
	config.NegotiatedSerializer = codecs
	return rest.RESTClientForConfigAndClient(config, httpClient)
}

// statusCodecs decode what a server says instead of a list or a watch: a Status,
// in the content type that was asked for.
var statusCodecs = sync.OnceValue(func() runtime.NegotiatedSerializer {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(scheme).WithoutConversion()
})

// resourceListerWatcher lists and watches one resource of a server.
type resourceListerWatcher struct {
	server *dynamicListerWatcherFactory
	// limiter is nil where config has none.
	limiter   flowcontrol.RateLimiter
	namespace string
	resource  schema.GroupVersionResource
	tweaks    []TweakListOptionsFunc
	// retries is how often a request is made again within open if the server says when. A
	// Reflector does that itself, at its own pace.
	retries int
}

// tweaked adds a tweak, which sees the options before the others do.
func (lw resourceListerWatcher) tweaked(tweak TweakListOptionsFunc) resourceListerWatcher {
	if tweak != nil {
		lw.tweaks = append([]TweakListOptionsFunc{tweak}, lw.tweaks...)
	}
	return lw
}

func (lw resourceListerWatcher) List(opts metav1.ListOptions) (runtime.Object, error) {
	return lw.ListWithContext(context.Background(), opts)
}

func (lw resourceListerWatcher) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	return lw.WatchWithContext(context.Background(), opts)
}

func (lw resourceListerWatcher) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	// It is read at once, whatever becomes of it.
	head := &heading{sent: func() {}, answered: func() {}, mayWiden: true}
	list, err := lw.dynamic().List(withHeading(ctx, head), tweak(opts, lw.tweaks...))
	if err != nil {
		return nil, answerError(err) // not a typed nil
	}
	return list, nil
}

// open implements wireSource.
func (lw resourceListerWatcher) open(ctx context.Context, opts metav1.ListOptions, accept string, head *heading) (io.ReadCloser, error) {
	if complaints := content.IsPathSegmentName(lw.namespace); len(complaints) > 0 {
		return nil, fmt.Errorf("namespace %q of a list of %v: %s", lw.namespace, lw.resource.GroupResource(), strings.Join(complaints, ", "))
	}
	opts = tweak(opts, lw.tweaks...)
	params, err := queryparams.Convert(&opts)
	if err != nil {
		return nil, fmt.Errorf("options of a list of %v: %w", lw.resource.GroupResource(), err)
	}
	request := lw.get().AbsPath(lw.path()...).SetHeader("Accept", accept).MaxRetries(lw.retries)
	if lw.server.config.DisableCompression {
		// client-go's transport for plain HTTP asks for gzip all the same.
		request.SetHeader("Accept-Encoding", "identity")
	}
	for name, values := range params {
		for _, value := range values {
			request.Param(name, value)
		}
	}
	return request.Stream(withHeading(ctx, head))
}

// get begins a request.
func (lw resourceListerWatcher) get() *rest.Request {
	return lw.server.client.Get().Throttle(lw.limiter)
}

// serverOf tells which server a ListerWatcher lists, by a comparable value; nil if it is
// not one of this package.
func serverOf(lw interface{}) any {
	switch lw := lw.(type) {
	case resourceListerWatcher:
		if lw.server.config.Dial != nil { // a name may mean another server to others
			return lw.server
		}
		return lw.server.config.Host
	case filtered:
		return serverOf(lw.lw)
	default:
		return nil
	}
}

func (lw resourceListerWatcher) asksProtobuf() bool { return lw.server.asksProtobuf }

func (lw resourceListerWatcher) watchListFailure() error {
	return lw.server.watchLists.failure(lw.resource)
}

func (lw resourceListerWatcher) watchListFailed(why error) {
	lw.server.watchLists.failed(lw.resource, why)
}

// path has the segments of the resource's URL, as a dynamic client has them.
func (lw resourceListerWatcher) path() (segments []string) {
	if lw.resource.Group == "" {
		segments = append(segments, "api")
	} else {
		segments = append(segments, "apis", lw.resource.Group)
	}
	segments = append(segments, lw.resource.Version)
	if lw.namespace != "" {
		segments = append(segments, "namespaces", lw.namespace)
	}
	return append(segments, lw.resource.Resource)
}

// minLongWatch is the least time that a watch of the factory's lasts. They are
// meant for many resources of many servers, where a reflector's default of 5
// minutes costs much.
const minLongWatch = 15 * time.Minute

// longWatcher is a ListerWatcher whose watches last longer than a reflector
// would ask for. A reflector asks it, so as to know what silence to expect.
type longWatcher interface{ minWatchTimeout() time.Duration }

func (resourceListerWatcher) minWatchTimeout() time.Duration { return minLongWatch }

func (lw resourceListerWatcher) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	if asked := time.Duration(ptr.Deref(opts.TimeoutSeconds, 0)) * time.Second; asked < minLongWatch {
		opts.TimeoutSeconds = ptr.To(int64((minLongWatch + rand.N(minLongWatch)) / time.Second))
	}
	opened, err := lw.dynamic().Watch(ctx, tweak(opts, lw.tweaks...))
	return opened, answerError(err)
}

func (lw resourceListerWatcher) dynamic() dynamic.ResourceInterface {
	return dynamic.New(lw.server.decodingClient(lw.limiter)).Resource(lw.resource).Namespace(lw.namespace)
}

// NewFilteredListerWatcher returns lw with options that optionsFunc has changed,
// for lists and watches alike. It may be nil. What it does to Limit and Continue
// is undone: pages belong to who reads them.
func NewFilteredListerWatcher(lw cache.ListerWatcher, optionsFunc TweakListOptionsFunc) cache.ListerWatcher {
	if own, ok := lw.(resourceListerWatcher); ok {
		return own.tweaked(optionsFunc)
	}
	return filtered{cache.ToListerWatcherWithContext(lw), optionsFunc}
}

// filtered is a ListerWatcher of others with a tweak.
type filtered struct {
	lw    cache.ListerWatcherWithContext
	tweak TweakListOptionsFunc
}

func (f filtered) List(opts metav1.ListOptions) (runtime.Object, error) {
	return f.ListWithContext(context.Background(), opts)
}

func (f filtered) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	return f.WatchWithContext(context.Background(), opts)
}

func (f filtered) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	return f.lw.ListWithContext(ctx, tweak(opts, f.tweak))
}

func (f filtered) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	return f.lw.WatchWithContext(ctx, tweak(opts, f.tweak))
}

// tweak returns opts as the tweaks have changed them.
func tweak(opts metav1.ListOptions, tweaks ...TweakListOptionsFunc) metav1.ListOptions {
	limit, token := opts.Limit, opts.Continue
	for _, tweak := range tweaks {
		if tweak != nil {
			tweak(&opts)
		}
	}
	opts.Limit, opts.Continue = limit, token
	return opts
}
