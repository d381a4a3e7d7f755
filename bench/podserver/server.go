// Package podserver is an API server of generated pods, made for measuring its
// clients: it costs so little itself that what is measured is the client.
//
// It serves over HTTPS and HTTP/2, uncompressed, what a kube-apiserver would: lists of
// /api/v1/pods, whole or in pages, watches from a resource version, and watch-lists
// (sendInitialEvents), and the discovery of its resources, the objects as pods or as their
// metadata, in JSON or in protobuf, as Accept demands. It holds no text per pod: a pod's encoding
// is that of a template whose differing parts, all of fixed width, are overwritten. With
// Options.Samples it has pods with the entropy of real ones, and custom resources, and holds these.
//
// It lacks: selectors but for that of a shard (Options.Sharded), history (any resource version and
// any continue token is good), pods in a namespace of its own (every list and watch of one
// namespace is of an empty set), and writes. The set never changes, but for the burst: after its
// initial events, if it asks for any, each watch is sent Options.Events changes as fast as it
// reads. A server may begin with a past, Options.Changed: beside one without, it is the same set a
// while later.
package podserver

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/internal/testkit/selfsigned"
)

// Options of a server.
type Options struct {
	Pods int
	// Changed is how many of them, evenly spread, have changed since the resource version that a
	// server without a past lists with. Lists have them so, and a watch from there on is sent these
	// changes.
	Changed int
	// Samples serves pods with the entropy of real ones (package internal/testkit/samples) instead of those
	// of a template, and as many releases, a custom resource. They do not change, have no
	// metadata alone, and are held in memory once they were asked for.
	Samples bool
	// Events is the number of changes in the burst of a watch, after those.
	Events int
	// Resources are other names in the core group under which the pods are served too.
	Resources []string
	// Trouble is what is wrong with it.
	Trouble Trouble
	// Plain serves over HTTP, without TLS and HTTP/2.
	Plain bool
	// Sharded has lists and initial events select pods by the shardSelector of a request, of one
	// range, and lists say so in their shardInfo: those of a kube-apiserver with the gate
	// ShardedListAndWatch. Else the shardSelector is ignored. Such a server has no changes and no
	// samples.
	Sharded bool

	// share is what a request selects.
	share *share
}

// Server is a server that runs. Close ends it.
type Server struct {
	options  Options
	http     *http.Server
	listener net.Listener
	ca       []byte
	served   chan error

	shares  shares
	door    *door
	changed atomic.Int64 // Options.Changed, and what Change has added

	watches  atomic.Int64 // open
	requests atomic.Int64
	bytes    atomic.Int64 // of bodies written
}

// Start serves on a free port of the loopback interface.
func Start(o Options) (*Server, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	forms() // not in the first request
	certificate, ca, err := selfsigned.Certificate()
	if err != nil {
		return nil, fmt.Errorf("certificate of the server: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, listener: listener, ca: ca, served: make(chan error, 1), door: newDoor(listener, o.Trouble == Slow)}
	s.changed.Store(int64(o.Changed))
	mux := http.NewServeMux()
	if o.Samples {
		objects := &sampled{set: o}
		mux.HandleFunc("GET /api/v1/pods", func(w http.ResponseWriter, r *http.Request) {
			if f := negotiate(r); f == nil || f.metadata {
				refuseForm(w)
			} else {
				s.serve(w, r, o, sampleObjects{objects.pods(f.protobuf), o})
			}
		})
		mux.HandleFunc("GET "+releasesPath, func(w http.ResponseWriter, r *http.Request) {
			s.serve(w, r, o, sampleObjects{objects.releaseForm(), o})
		})
	}
	resources := sets.New(o.templateResources()...)
	mux.HandleFunc("GET /api/v1/{resource}", func(w http.ResponseWriter, r *http.Request) {
		if !resources.Has(r.PathValue("resource")) {
			http.NotFound(w, r)
			return
		}
		set := o
		set.Changed = int(s.changed.Load())
		if o.Sharded {
			var err error
			if set.share, err = s.shares.of(o, r.URL.Query().Get("shardSelector")); err != nil {
				refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "invalid shard selector: "+err.Error())
				return
			}
		}
		s.serveTemplates(w, r, set)
	})
	o.serveDiscovery(mux)
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}/pods", func(w http.ResponseWriter, r *http.Request) { s.serveTemplates(w, r, Options{}) })
	mux.HandleFunc("GET /api/v1/namespaces/kube-system", serveCluster)
	s.http = &http.Server{
		Handler:           o.Trouble.around(mux),
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0), // clients that break off
	}
	go func() {
		if o.Plain {
			s.served <- s.http.Serve(s.door)
		} else {
			s.served <- s.http.ServeTLS(s.door, "", "")
		}
	}()
	return s, nil
}

// Config is how to reach the server, without a limit of the rate of requests.
func (s *Server) Config() *rest.Config {
	if s.options.Plain {
		return &rest.Config{Host: "http://" + s.listener.Addr().String(), QPS: -1}
	}
	return &rest.Config{
		Host:            "https://" + s.listener.Addr().String(),
		TLSClientConfig: rest.TLSClientConfig{CAData: s.ca},
		QPS:             -1,
	}
}

// Change makes n more of its pods, which have no burst, differ from those of a list before. It is
// for a server that clients are away from: a watch that is open is not sent them.
func (s *Server) Change(n int) { s.changed.Add(int64(n)) }

// Close breaks what is under way and waits until no request is served.
func (s *Server) Close() error {
	err := s.http.Close()
	if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// content is how the objects of a set are sent.
type content interface {
	events
	contentType(watching bool) string
	// list sends n objects, from the first.
	list(ctx context.Context, w *counted, first, n int) error
}

// serveTemplates answers a list or a watch of a set of pods that are made from a template.
func (s *Server) serveTemplates(w http.ResponseWriter, r *http.Request, set Options) {
	if f := negotiate(r); f != nil {
		s.serve(w, r, set, templates{f, set})
	} else {
		refuseForm(w)
	}
}

// serve answers a list or a watch of a set.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, set Options, c content) {
	s.requests.Add(1)
	query := r.URL.Query()
	watching, _ := strconv.ParseBool(query.Get("watch"))
	w.Header().Set("Content-Type", c.contentType(watching))
	out := &counted{w: w, total: &s.bytes}
	// An error is that of a client that has gone.
	if watching {
		s.watches.Add(1)
		defer s.watches.Add(-1)
		_ = watchOf(query, set).serve(r.Context(), out, c, set)
		return
	}
	first, n, err := page(query, set)
	if err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	_ = c.list(r.Context(), out, first, n)
}

func refuseForm(w http.ResponseWriter) {
	refuse(w, http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, "no form of the Accept header is known")
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
}

// counted counts what is written.
type counted struct {
	w     http.ResponseWriter
	total *atomic.Int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.total.Add(int64(n))
	return n, err
}

func (c *counted) flush() { c.w.(http.Flusher).Flush() }

// serveCluster tells which cluster this is, and that it has whatever version it is asked for.
func serveCluster(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	// A client that is gone needs no answer.
	_, _ = w.Write([]byte(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"podserver"}}`))
}
