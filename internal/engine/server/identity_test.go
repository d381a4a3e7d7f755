package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/engine/server"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

var (
	podsResource        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	deploymentsResource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// inCluster runs test with a server in memory that has a namespace kube-system.
func inCluster(t *testing.T, wrap func(http.Handler) http.Handler, test func(t *testing.T, api *informertest.Server, uid string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		api := informertest.NewServer(informertest.Options{InMemory: true, Wrap: wrap})
		defer api.Close()
		namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
		created, err := api.Create(namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}})
		require.NoError(t, err)
		test(t, api, string(created.GetUID()))
	})
}

func serverAt(t testing.TB, config *rest.Config) *server.Server {
	t.Helper()
	s, err := server.New(config)
	require.NoError(t, err)
	return s
}

func selecting(labelSelector, fieldSelector string) server.Tweak {
	return func(opts *metav1.ListOptions) {
		opts.LabelSelector, opts.FieldSelector, opts.Limit = labelSelector, fieldSelector, 7
	}
}

// alsoLabelled adds to the label selector of other tweaks.
func alsoLabelled(label string) server.Tweak {
	return func(opts *metav1.ListOptions) {
		opts.LabelSelector = strings.TrimPrefix(opts.LabelSelector+","+label, ",")
	}
}

func TestIdentifyNamesServerResourceSelectorsAndCluster(t *testing.T) {
	inCluster(t, nil, func(t *testing.T, api *informertest.Server, uid string) {
		s := serverAt(t, api.Config())
		const url = "http://localhost"
		for name, test := range map[string]struct {
			resource *server.Resource
			want     checkpoint.Source
		}{
			"all pods": {
				s.Resource("", podsResource),
				checkpoint.Source{Server: url, Resource: "v1/pods", Cluster: uid},
			},
			"deployments of a namespace": {
				s.Resource("a", deploymentsResource).Tweaked(nil),
				checkpoint.Source{Server: url, Resource: "apps/v1/deployments", Namespace: "a", Cluster: uid},
			},
			"with selectors": {
				s.Resource("", podsResource).Tweaked(selecting("b=2,a=1", "spec.nodeName=n,metadata.name=m")),
				checkpoint.Source{Server: url, Resource: "v1/pods", LabelSelector: "a=1,b=2", FieldSelector: "metadata.name=m,spec.nodeName=n", Cluster: uid},
			},
			"with selectors in another order": {
				s.Resource("", podsResource).Tweaked(selecting("a=1,b=2", "metadata.name=m,spec.nodeName=n")),
				checkpoint.Source{Server: url, Resource: "v1/pods", LabelSelector: "a=1,b=2", FieldSelector: "metadata.name=m,spec.nodeName=n", Cluster: uid},
			},
			"with a selector that is none": {
				s.Resource("", podsResource).Tweaked(selecting("((", "((")),
				checkpoint.Source{Server: url, Resource: "v1/pods", LabelSelector: "((", FieldSelector: "((", Cluster: uid},
			},
			"tweaked twice": {
				s.Resource("a", podsResource).Tweaked(alsoLabelled("b")).Tweaked(selecting("a=1", "")),
				checkpoint.Source{Server: url, Resource: "v1/pods", Namespace: "a", LabelSelector: "a=1,b", Cluster: uid},
			},
		} {
			api.ResetRequests()
			got, err := test.resource.Identify(t.Context())
			require.NoError(t, err, name)
			require.Equal(t, test.want, got, name)
			require.Equal(t, got, checkpoint.SourceFrom(got.Metadata()), name)
			require.LessOrEqual(t, len(api.Requests()), 1, name)
		}
	})
}

func TestSelectionOfAFilteredListerWatcher(t *testing.T) {
	user := &cache.ListWatch{}
	unknown, err := server.IdentifierOf(user).Identify(t.Context())
	require.NoError(t, err)
	require.Zero(t, unknown)
	require.False(t, server.IdentifierOf(user).Responds(t.Context()))
	require.Equal(t, checkpoint.Source{}, server.Filter(user, nil).Selection())
	twice := server.Filter(server.Filter(user, alsoLabelled("b")), selecting("a=1", "x=1"))
	require.Equal(t, checkpoint.Source{LabelSelector: "a=1,b", FieldSelector: "x=1"}, twice.Selection())
	identified, err := server.IdentifierOf(twice).Identify(t.Context())
	require.NoError(t, err)
	require.Equal(t, twice.Selection(), identified)
}

// The URL of the server has no more than a client needs, above all no password.
func TestIdentifyLeavesOutCredentialsAndQuery(t *testing.T) {
	prefix := func(next http.Handler) http.Handler {
		mux := http.NewServeMux()
		mux.Handle("/clusters/a/", http.StripPrefix("/clusters/a", next))
		mux.Handle("/", next)
		return mux
	}
	inCluster(t, prefix, func(t *testing.T, api *informertest.Server, uid string) {
		for host, want := range map[string]string{
			"http://localhost":                  "http://localhost",
			"http://localhost/":                 "http://localhost",
			"localhost":                         "http://localhost",
			"http://me:secret@localhost":        "http://localhost",
			"http://localhost/clusters/a":       "http://localhost/clusters/a",
			"http://localhost/clusters/a/?x=1#": "http://localhost/clusters/a",
		} {
			config := api.Config()
			config.Host = host
			got, err := serverAt(t, config).Resource("", podsResource).Identify(t.Context())
			require.NoError(t, err, host)
			require.Equal(t, want, got.Server, host)
			require.Equal(t, uid, got.Cluster, host)
		}
	})
}

func TestIdentifyWithoutACluster(t *testing.T) {
	status := func(code int) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "no", code)
		}
	}
	says := func(contentType, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", contentType)
			_, _ = w.Write([]byte(body))
		}
	}
	for name, test := range map[string]struct {
		answer func(http.ResponseWriter)
		again  bool
	}{
		"400":                 {status(400), false},
		"401":                 {status(401), true},
		"403":                 {status(403), false},
		"404":                 {status(404), false},
		"405":                 {status(405), false},
		"406":                 {status(406), false},
		"408":                 {status(408), true},
		"429":                 {status(429), true},
		"500":                 {status(500), true},
		"503":                 {status(503), true},
		"a page":              {says("text/html", "<html>"), false},
		"nothing":             {says("application/json", ""), false},
		"no UID":              {says("application/json", `{"kind":"Namespace","metadata":{"name":"kube-system"}}`), false},
		"another type of UID": {says("application/json", `{"metadata":{"uid":1}}`), false},
		"a large body":        {says("application/json", strings.Repeat(" ", 2<<20)), false},
		"a connection cut":    {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, true},
		"a body that was cut": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "99")
			says("application/json", "{")(w)
		}, true},
		"a Status without a code": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(503)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure"}`))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			inCluster(t, func(http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					asked.Add(1)
					test.answer(w)
				})
			}, func(t *testing.T, api *informertest.Server, _ string) {
				began := time.Now()
				got, err := serverAt(t, api.Config()).Resource("a", podsResource).Identify(t.Context())
				require.Zero(t, time.Since(began), "the caller waits, not this")
				require.EqualValues(t, 1, asked.Load())
				if test.again {
					require.ErrorContains(t, err, "UID of the namespace kube-system of http://localhost: ")
				} else {
					require.NoError(t, err)
				}
				require.Equal(t, checkpoint.Source{Server: "http://localhost", Resource: "v1/pods", Namespace: "a"}, got)
			})
		})
	}
}

// A delay that the server has asked for reaches the caller, which asks again.
func TestIdentifyKeepsRetryAfter(t *testing.T) {
	inCluster(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "17")
			http.Error(w, "busy", http.StatusTooManyRequests)
		})
	}, func(t *testing.T, api *informertest.Server, _ string) {
		_, err := serverAt(t, api.Config()).Resource("", podsResource).Identify(t.Context())
		seconds, ok := apierrors.SuggestsClientDelay(err)
		require.True(t, ok, err)
		require.Equal(t, 17, seconds)
	})
}

func TestIdentifyEndsAtASilentServer(t *testing.T) {
	for name, begin := range map[string]func(http.ResponseWriter){
		"at once": func(http.ResponseWriter) {},
		"amid its answer": func(w http.ResponseWriter) {
			_, _ = w.Write([]byte("{"))
			_ = http.NewResponseController(w).Flush()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					begin(w)
					<-r.Context().Done()
				})
			}, func(t *testing.T, api *informertest.Server, _ string) {
				resource := serverAt(t, api.Config()).Resource("", podsResource)
				began := time.Now()
				_, err := resource.Identify(t.Context())
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Equal(t, 10*time.Second, time.Since(began))

				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				began = time.Now()
				_, err = resource.Identify(ctx)
				require.ErrorIs(t, err, context.Canceled)
				require.Equal(t, time.Second, time.Since(began))
			})
		})
	}
}

func TestIdentifyFailsWithoutAServer(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	_, err := serverAt(t, &rest.Config{Host: server.URL}).Resource("", podsResource).Identify(t.Context())
	require.ErrorContains(t, err, "UID of the namespace kube-system of "+server.URL)
}

// No more than the metadata is asked for, in JSON, whatever the client asks for.
func TestIdentifyAsksForMetadataInJSON(t *testing.T) {
	var accept, path string
	inCluster(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			accept, path = r.Header.Get("Accept"), r.URL.String()
			next.ServeHTTP(w, r)
		})
	}, func(t *testing.T, api *informertest.Server, uid string) {
		config := api.Config()
		config.ContentType = "application/vnd.kubernetes.protobuf"
		got, err := serverAt(t, config).Resource("", podsResource).Identify(t.Context())
		require.NoError(t, err)
		require.Equal(t, uid, got.Cluster)
		require.Equal(t, "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json", accept)
		require.Equal(t, "/api/v1/namespaces/kube-system", path)
	})
}

// The informers of a server find out together which cluster it is of. If the one that asks is ended
// by a transport of the caller's, the next one finds it out.
func TestNextInformerFindsTheClusterAfterOneThatEnded(t *testing.T) {
	inCluster(t, nil, func(t *testing.T, api *informertest.Server, uid string) {
		created, err := api.Create(podsResource, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "1"}})
		require.NoError(t, err)
		var ends atomic.Bool
		config := api.Config()
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if ends.Swap(false) {
					runtime.Goexit()
				}
				return next.RoundTrip(r)
			})
		})
		pods := serverAt(t, config).Resource("", podsResource)
		inquiry := func(known ...object.Known) server.Inquiry {
			return server.Inquiry{
				ResourceVersion: created.GetResourceVersion(), Period: 1, Objects: func() []object.Known { return known },
			}
		}
		known := object.Known{Key: "a/1", Version: keytable.Version{ResourceVersion: created.GetResourceVersion(), UID: created.GetUID()}}

		ends.Store(true)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = pods.Ask(t.Context(), inquiry(known))
		}()
		<-ended
		require.False(t, ends.Load())

		answer, err := pods.Ask(t.Context(), inquiry(known))
		require.NoError(t, err)
		require.Equal(t, server.Same, answer.Identity)
		answer, err = pods.Ask(t.Context(), inquiry())
		require.NoError(t, err)
		require.Equal(t, server.Same, answer.Identity, "by the cluster that the one before has found")
		require.Equal(t, uid, answer.Cluster)
	})
}
