package server

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion/queryparams"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/ptr"

	"github.com/rvinformer/informer/internal/leaf/redact"
)

// MinWatchTimeout is the least time that a watch of a Resource lasts. A Resource is meant for
// many resources of many servers, where the 5 minutes of client-go cost much.
const MinWatchTimeout = 15 * time.Minute

// Resource lists and watches one resource of a server, and asks the server about itself.
type Resource struct {
	server *Server
	// limiter is nil if the configuration has none.
	limiter   flowcontrol.RateLimiter
	namespace string
	resource  schema.GroupVersionResource
	tweaks    tweaks
	// retries is how often Open makes a request again if the server says when.
	retries int
	// onlyJSON tells that objects are asked for in no other encoding.
	onlyJSON bool
	// origin, if set, says which cluster it is. See AnsweredBy.
	origin *Resource
}

var _ cache.ListerWatcherWithContext = &Resource{}

// Of returns the Resource that lw, a ListerWatcher, is or embeds; nil if it has none.
func Of(lw any) *Resource {
	if own, ok := lw.(interface{ itself() *Resource }); ok {
		return own.itself()
	}
	return nil
}

func (r *Resource) itself() *Resource { return r }

// Namespace returns the namespace whose objects are read, empty for all objects.
func (r *Resource) Namespace() string { return r.namespace }

// GroupResource returns what is read, in any version.
func (r *Resource) GroupResource() schema.GroupResource { return r.resource.GroupResource() }

// Tweaked returns a copy with another tweak, which sees the options before the others do. It
// shares the rate limiter.
func (r *Resource) Tweaked(tweak Tweak) *Resource {
	copied := *r
	copied.tweaks = r.tweaks.with(tweak)
	return &copied
}

// Only returns a copy that selects the object of a key, "namespace/name" or "name", if the resource
// selects it.
func (r *Resource) Only(key string) *Resource {
	return Of(Narrow(r, Only(key)))
}

// Retrying returns a copy whose Open makes a request again, as often as that, if the server
// says when. Without it, callers do so at their own pace.
func (r *Resource) Retrying(times int) *Resource {
	copied := *r
	copied.retries = times
	return &copied
}

// InJSON returns a copy whose objects are asked for in no other encoding.
func (r *Resource) InJSON() *Resource {
	copied := *r
	copied.onlyJSON = true
	return &copied
}

// AnsweredBy returns a copy whose requests a transport answers in place of the server. It has the same
// source, and so the server itself is asked which cluster it is.
func (r *Resource) AnsweredBy(transport http.RoundTripper) (*Resource, error) {
	s, err := New(&rest.Config{Host: r.Address(), Transport: transport, QPS: -1})
	if err != nil {
		return nil, err
	}
	copied := *r
	copied.server, copied.limiter, copied.origin = s, nil, r
	return &copied, nil
}

// OnlyJSON reports whether objects are asked for in no other encoding.
func (r *Resource) OnlyJSON() bool { return r.onlyJSON }

// Turns is equal for the resources of one server, so that lists can take turns server by server.
func (r *Resource) Turns() any { return r.server.turns }

// AsksProtobuf reports whether the client's configuration asks for protobuf.
func (r *Resource) AsksProtobuf() bool { return r.server.asksProtobuf }

// compresses reports whether lists and watches may come compressed: unless the client's
// configuration has DisableCompression.
func (r *Resource) compresses() bool { return !r.server.link.Load().config.DisableCompression }

// ParameterFailure returns why a query parameter did not work for the resource lately, or nil.
func (r *Resource) ParameterFailure(name string) error {
	return r.server.parameters.failure(r.resource, name)
}

// ParameterFailed notes that a query parameter did not work.
func (r *Resource) ParameterFailed(name string, why error) {
	r.server.parameters.note(r.resource, name, why)
}

// Open asks for a list or, if opts say so, for a watch, and lends the body of the answer. If the
// server answers with an error, that is an apierrors.APIStatus.
func (r *Resource) Open(ctx context.Context, opts metav1.ListOptions, how Request) (*Body, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	opts = r.tweaks.apply(opts)
	l := r.server.link.Load()
	request := l.streamClient.Get().Throttle(r.limiter).AbsPath(r.path()...).SetHeader("Accept", how.Accept).MaxRetries(r.retries)
	if agent := l.config.UserAgent; agent != "" {
		request.SetHeader("User-Agent", agent) // or client-go's transport copies the request to set it
	}
	encoding := acceptGzip
	if !r.compresses() {
		encoding = "identity" // client-go's transport for plain HTTP asks for gzip all the same
	}
	request.SetHeader("Accept-Encoding", encoding)
	parameters, err := queryparams.Convert(&opts)
	if err != nil { // not possible: they are fields of a struct
		return nil, err
	}
	for name := range parameters {
		request.Param(name, parameters.Get(name))
	}
	e := &exchange{Request: how, tells: true, unzips: r.compresses()}
	body, err := request.Stream(withExchange(ctx, e))
	if err != nil {
		return nil, r.explain(e.withDelay(err))
	}
	e.forgetHead()
	return &Body{ReadCloser: body, ContentType: e.contentType, Over: e.over, Wide: e.wide, HTTP2: e.http2, Zipped: e.zipped, Lost: e.lost, Options: opts}, nil
}

// HeadPatience is how long the head of a list may take, zero if the client's configuration has no
// Timeout. The Timeout does not hold for the bodies of lists, nor for watches, because these are read
// as they come.
func (r *Resource) HeadPatience() time.Duration { return r.server.link.Load().config.Timeout }

// get begins a request that has the Timeout of the client's configuration.
func (r *Resource) get() *rest.Request {
	return r.server.link.Load().client.Get().Throttle(r.limiter)
}

// Period returns the number of the present period, from 1: it grows when a connection of the server
// may have been lost. What is listed in one period is of one cluster.
func (r *Resource) Period() uint64 { return r.server.acquaintance.losses.Load() }

// path has the segments of the resource's URL, as a dynamic client has them.
func (r *Resource) path() (segments []string) {
	if r.resource.Group == "" {
		segments = append(segments, "api")
	} else {
		segments = append(segments, "apis", r.resource.Group)
	}
	segments = append(segments, r.resource.Version)
	if r.namespace != "" {
		segments = append(segments, "namespaces", r.namespace)
	}
	return append(segments, r.resource.Resource)
}

// List implements cache.ListerWatcher.
func (r *Resource) List(opts metav1.ListOptions) (runtime.Object, error) {
	return r.ListWithContext(context.Background(), opts)
}

// Watch implements cache.ListerWatcher.
func (r *Resource) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	return r.WatchWithContext(context.Background(), opts)
}

// ListWithContext returns a list of unstructured objects.
func (r *Resource) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	if r.probed(ctx, opts) {
		return nil, errProbed
	}
	// The client reads the body at once, whatever becomes of the list.
	e := &exchange{Request: Request{MayWiden: true, Sent: func() {}, Answered: func() {}}}
	if err := r.check(); err != nil {
		return nil, err
	}
	l := r.server.link.Load()
	list, err := r.dynamic(l, l.httpClient).List(withExchange(ctx, e), r.tweaks.apply(opts))
	if err != nil {
		return nil, redact.Error(r.explain(err)) // not a typed nil
	}
	return list, nil
}

// WatchWithContext opens a watch of unstructured objects. It lasts at least MinWatchTimeout, and the
// Timeout of the client's configuration does not end it.
func (r *Resource) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	if asked := time.Duration(ptr.Deref(opts.TimeoutSeconds, 0)) * time.Second; asked < MinWatchTimeout {
		opts.TimeoutSeconds = ptr.To(int64((MinWatchTimeout + rand.N(MinWatchTimeout)) / time.Second))
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	l := r.server.link.Load()
	opened, err := r.dynamic(l, l.streams).Watch(ctx, r.tweaks.apply(opts))
	return opened, redact.Error(r.explain(err))
}

func (r *Resource) dynamic(l *link, client *http.Client) dynamic.ResourceInterface {
	return dynamic.New(l.decodingClient(client, r.limiter)).Resource(r.resource).Namespace(r.namespace)
}
