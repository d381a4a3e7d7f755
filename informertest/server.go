package informertest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/internal/testkit/selfsigned"
)

// maxStreams is how many requests one connection of HTTP/2 carries at once, as to a kube-apiserver.
const maxStreams = 100

// Options say how a [Server] is to be. The zero value serves [DefaultResources] on a loopback port.
type Options struct {
	// Resources are what is served; nil means DefaultResources. AddResource adds more later.
	Resources []Resource
	// BookmarkInterval is the time between two bookmarks of one watch. Default: 1 minute, as in a
	// kube-apiserver.
	BookmarkInterval time.Duration
	// InMemory serves over connections inside the process instead of a loopback port, so that a
	// testing/synctest bubble can hold the server and its clients. The configuration then has its
	// own Dial function. NewServer must be called inside the bubble, and Close as well.
	InMemory bool
	// TLS serves HTTPS with a certificate of the server's own, and HTTP/2 to clients that ask for
	// it, as a kube-apiserver does. The configuration then trusts that certificate. Without, the
	// server speaks HTTP/1.1 only.
	TLS bool
	// Wrap, if set, is given the server's handler and returns the one that is served. It sees every
	// request first: to delay it, to answer it itself, to cut it off (panic with
	// http.ErrAbortHandler). Close waits for what it does.
	Wrap func(http.Handler) http.Handler
	// ShardedListAndWatch has the server select by the shardSelector of a request, and say so in
	// the shardInfo of lists, as a kube-apiserver does whose feature gate of that name is on.
	// Default: the selector is ignored, as by one whose gate is off, or that is too old to have it.
	// The selector has to be written as a Shard and apimachinery write it.
	ShardedListAndWatch bool
	// GzipAbove is the size in bytes that the answer to a list or get must exceed to be compressed
	// with gzip, for a client that accepts that. Default: 128 KiB, as in a kube-apiserver. 1
	// compresses them all.
	GzipAbove int
	// GzipWatches has watches compressed with gzip, for a client that accepts that, as
	// watch-lists are by a kube-apiserver from 1.37 on: what is sent at a time is a member of the
	// gzip format of its own.
	GzipWatches bool
	// Seed is what the dice of faults begin with: the same requests in the same order then meet the
	// same. Unless it is 0, UIDs and generated names depend on it too. Servers that stand for
	// different clusters need different ones then.
	Seed uint64
	// OpaqueVersions makes resource versions texts of no order, such as "v-1a2b", on the wire and
	// in all methods. Clients can only tell whether two of them are the same.
	OpaqueVersions bool
	// Dialect is what the server does otherwise than a kube-apiserver over etcd.
	Dialect Dialect
}

// Server is a simulated Kubernetes API server. Its methods may be called from several goroutines.
type Server struct {
	store    *store
	faults   *faults
	recorder *recorder
	conns    conns
	watches  openWatches

	http   *http.Server
	url    string
	ca     []byte                                                               // what clients are to trust, in PEM; nil without TLS
	dial   func(ctx context.Context, network, address string) (net.Conn, error) // nil: the network
	stop   context.CancelFunc                                                   // ends the watches
	served chan struct{}                                                        // closed once no connection is accepted any more
	once   sync.Once
}

// NewServer starts a server; whoever calls it must Close it. It panics when a resource lacks its
// name, version or kind, and when it cannot listen.
func NewServer(opts Options) *Server {
	if opts.Resources == nil {
		opts.Resources = DefaultResources()
	}
	if opts.BookmarkInterval <= 0 {
		opts.BookmarkInterval = time.Minute
	}
	if opts.GzipAbove <= 0 {
		opts.GzipAbove = gzipThreshold
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{store: newStore(versions(opts.OpaqueVersions), opts.Seed), stop: stop, served: make(chan struct{})}
	s.faults = newFaults(s.store, opts.Seed)
	s.conns.refuses = s.faults.refuses
	if opts.InMemory {
		// There it is the dialling that fails; a connection that slipped through is cut.
		s.conns.refuses = s.faults.refusesAll
	}
	for _, r := range opts.Resources {
		s.AddResource(r)
	}

	var handler http.Handler = &handler{store: s.store, faults: s.faults, options: opts, cutAfter: s.conns.cutAfter, ctx: ctx, watches: &s.watches}
	if opts.Wrap != nil {
		handler = opts.Wrap(handler)
	}
	s.recorder = &recorder{next: handler}
	s.http = &http.Server{
		Handler:   s.conns.handle(s.recorder),
		ConnState: s.conns.observe,
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, conn)
		},
	}

	serve := s.http.Serve
	if opts.TLS {
		s.secure()
		serve = func(l net.Listener) error { return s.http.ServeTLS(l, "", "") }
	}
	listener := s.listen(opts)
	go func() {
		defer close(s.served)
		if err := serve(listener); !errors.Is(err, http.ErrServerClosed) {
			panic(fmt.Sprintf("informertest: serving on %s: %v", s.url, err))
		}
	}()
	return s
}

// secure prepares the server for TLS.
func (s *Server) secure() {
	certificate, ca, err := selfsigned.Certificate()
	if err != nil {
		panic(fmt.Sprintf("informertest: no certificate for TLS: %v", err))
	}
	s.ca = ca
	s.http.TLSConfig = &tls.Config{
		Certificates: []tls.Certificate{certificate},
		// In memory nothing is buffered: a ticket that the server writes after the handshake would
		// meet a client that writes too.
		SessionTicketsDisabled: true,
	}
	s.http.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: maxStreams}
}

func (s *Server) listen(opts Options) net.Listener {
	protocol := "http://"
	if opts.TLS {
		protocol = "https://"
	}
	if opts.InMemory {
		l := newMemoryListener(s.faults.refuses)
		s.dial = l.dial
		// A name that no proxy setting of the environment applies to.
		s.url = protocol + "localhost"
		return l
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(fmt.Sprintf("informertest: cannot listen on a loopback port: %v", err))
	}
	s.url = protocol + l.Addr().String()
	return l
}

// Config returns a new client configuration for this server: JSON, and no throttling in the client.
// For protobuf, set its ContentType and AcceptContentTypes. Its Wrap adds a transport. That of a
// server in memory has one already, in WrapTransport, without which virtual time may stand still.
func (s *Server) Config() *rest.Config {
	config := &rest.Config{
		Host:            s.url,
		Dial:            s.dial,
		TLSClientConfig: rest.TLSClientConfig{CAData: slices.Clone(s.ca)},
		QPS:             -1,
		ContentConfig:   rest.ContentConfig{ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON},
	}
	if s.dial != nil {
		config.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return readBodies{next} }
	}
	return config
}

// URL returns the server's address, without a slash at its end. Of a server in memory it is only a
// name: connections to it need the Dial function of Config.
func (s *Server) URL() string { return s.url }

// Close ends all watches, cuts all connections and waits until every handler has returned. A second
// Close waits too.
func (s *Server) Close() {
	s.once.Do(func() {
		s.stop()
		s.conns.close()
		// Closes the listener; an error of that is nothing that anyone could act on.
		_ = s.http.Close()
	})
	<-s.served
	s.conns.wait()
}

// CloseClientConnections cuts every connection now, those of requests and watches that are under way
// too. The server goes on and accepts new ones. The handlers of the cut connections end soon, but
// perhaps after the return.
func (s *Server) CloseClientConnections() { s.conns.cut() }

// AddResource makes the server serve one more resource, as when a CustomResourceDefinition is
// created. A resource that is served already is described anew and keeps its objects. It panics
// when the name, version or kind is missing.
func (s *Server) AddResource(r Resource) {
	r, err := r.complete()
	if err != nil {
		panic(err.Error())
	}
	s.store.add(r)
}

// Create stores a new object, typed or unstructured, and returns it as stored: with UID, creation
// timestamp, resource version, kind and apiVersion. A missing name is made from generateName. The
// object given is neither kept nor changed.
//
// Errors are those of a server: AlreadyExists, NotFound for a resource that is not served,
// BadRequest for an object without name or of another kind.
func (s *Server) Create(gvr schema.GroupVersionResource, obj runtime.Object) (*unstructured.Unstructured, error) {
	r, o, err := s.store.create(gvr, "", obj)
	if err != nil {
		return nil, err
	}
	return o.decode(r)
}

// Load creates many objects. It is Create without the cost of returning them; the sequence may
// yield one object again and again, changed in between. It stops at the first error, which names
// the object, and keeps those created before.
func (s *Server) Load(gvr schema.GroupVersionResource, objects iter.Seq[runtime.Object]) error {
	n := 0
	for obj := range objects {
		if _, _, err := s.store.create(gvr, "", obj); err != nil {
			return fmt.Errorf("loading object %d of %s: %w", n, gvr.GroupResource(), err)
		}
		n++
	}
	return nil
}

// Update replaces an object, typed or unstructured, and returns it as stored. UID and creation
// timestamp stay those of the stored object. When nothing else differs either, nothing is written
// and the resource version stays, as on a real server. The object given is neither kept nor
// changed.
//
// Errors are those of a server: NotFound, BadRequest for an object without name or of another kind,
// and Conflict when the object carries a resource version or UID that is not the stored one's. An
// object without resource version replaces whatever is there.
func (s *Server) Update(gvr schema.GroupVersionResource, obj runtime.Object) (*unstructured.Unstructured, error) {
	r, o, err := s.store.update(gvr, "", "", obj)
	if err != nil {
		return nil, err
	}
	return o.decode(r)
}

// Delete removes an object at once: finalizers and grace periods are not simulated. The namespace
// is empty for cluster scoped resources. The error is NotFound for an object or resource that is
// not there.
func (s *Server) Delete(gvr schema.GroupVersionResource, namespace, name string) error {
	_, _, err := s.store.remove(gvr, namespace, name, nil)
	return err
}

// Expire removes objects of a namespace at once, all in one resource version, as etcd does with what
// an expired lease holds. A kube-apiserver keeps its Events under leases. The error is NotFound for an
// object or resource that is not there: then nothing is removed.
func (s *Server) Expire(gvr schema.GroupVersionResource, namespace string, names ...string) error {
	return s.store.expire(gvr, namespace, names)
}

// Get returns a copy of an object. The namespace is empty for cluster scoped resources. The error
// is NotFound for an object or resource that is not there.
func (s *Server) Get(gvr schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	r, o, err := s.store.get(gvr, namespace, name)
	if err != nil {
		return nil, err
	}
	return o.decode(r)
}

// List returns copies of the objects of a namespace, or of all namespaces when it is empty, in the
// order of a list request. The error is NotFound for a resource that is not served.
func (s *Server) List(gvr schema.GroupVersionResource, namespace string) ([]*unstructured.Unstructured, error) {
	r, objects, err := s.store.all(gvr, namespace)
	if err != nil {
		return nil, err
	}
	out := make([]*unstructured.Unstructured, 0, len(objects))
	for _, o := range objects {
		u, err := o.decode(r)
		if err != nil {
			return nil, err
		}
		out = append(out, u)
	}
	return out, nil
}

// ResourceVersions returns the resource version of every object that List would return, by key:
// namespace/name, or name for cluster scoped resources. It costs much less than List, which matters
// to hold a large informer against the server.
func (s *Server) ResourceVersions(gvr schema.GroupVersionResource, namespace string) (map[string]string, error) {
	r, objects, err := s.store.all(gvr, namespace)
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(objects))
	for _, o := range objects {
		out[r.key(o.namespace, o.name)] = r.versions.format(o.rv)
	}
	return out, nil
}

// ResourceVersion returns the resource version of the newest write. There is one sequence over all
// resources, as in etcd; it begins at 1, so that the first write gets 2.
func (s *Server) ResourceVersion() string { return s.store.versions.format(s.store.newest()) }

// Compact forgets the history up to now. From then on the state is known at the newest resource
// version and later: a watch from an older one gets 410 Expired as an ERROR event, and so do, as a
// response, exact reads of an older one and continue tokens of lists that began before it. What is
// of the newest resource version itself stays valid, as in etcd; write something first to make it
// expire too.
//
// A running watch goes on as long as it has no more than 1000 writes left to read, otherwise it
// ends with 410 Expired.
//
// Nothing is ever compacted by itself, so a server that runs for long under many writes needs it
// now and then.
func (s *Server) Compact() { s.store.compact() }

// SetResourceVersion moves the sequence: the next write gets rv+1.
//
// Forwards, nothing else changes.
//
// Backwards, the server becomes what clients see after etcd was restored from a backup, or a
// cluster rebuilt under the same name. The objects stay, but those newer than rv now have rv as
// their resource version, since none can be newer than the server. The history is forgotten as by
// Compact. Running watches end without an error, as they do when a server restarts; begun again at
// their old, now future resource version, they are silent until the sequence has passed it.
// [Server.Restore] takes the objects back as well.
//
// It panics for 0, which is no resource version.
func (s *Server) SetResourceVersion(rv uint64) {
	if rv == 0 {
		panic("informertest: SetResourceVersion(0): resource versions begin at 1")
	}
	s.store.jump(rv)
}

// Requests returns what the server was asked since it started or since ResetRequests, in the order
// of arrival. The slice is the caller's; a request that is still under way shows what is known so
// far.
func (s *Server) Requests() []Request { return s.recorder.requests() }

// ResetRequests forgets the requests so far.
func (s *Server) ResetRequests() { s.recorder.reset() }
