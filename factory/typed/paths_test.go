package typed_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/factory/typed"
)

// recorder answers every request with 404 and remembers its path.
type recorder struct {
	mu    sync.Mutex
	paths map[string]bool
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paths[request.URL.Path+" "+request.URL.Query().Get("labelSelector")] = true
	const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
	return &http.Response{StatusCode: http.StatusNotFound, Request: request,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(status))}, nil
}

// For all resources of client-go we ask for what client-go asks for, in one namespace and in all.
func TestPathsAreThoseOfClientGo(t *testing.T) {
	asked := func(t *testing.T, namespace string, open func(c *rest.Config) informers.SharedInformerFactory) map[string]bool {
		r := &recorder{paths: map[string]bool{}}
		f := open(&rest.Config{Host: "http://server", Transport: r, QPS: -1})
		for gvk := range scheme.Scheme.AllKnownTypes() {
			resource, _ := meta.UnsafeGuessKindToResource(gvk)
			_, _ = f.ForResource(resource) // some have none
		}
		ctx, cancel := context.WithCancel(t.Context())
		f.StartWithContext(ctx)
		synctest.Wait()
		cancel()
		time.Sleep(time.Minute) // client-go's end when their backoff does
		f.Shutdown()
		return r.paths
	}
	tweak := func(o *metav1.ListOptions) { o.LabelSelector = "app=web" }
	for _, namespace := range []string{"", "default"} {
		t.Run("namespace "+namespace, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				theirs := asked(t, namespace, func(c *rest.Config) informers.SharedInformerFactory {
					client, err := kubernetes.NewForConfig(c)
					require.NoError(t, err)
					return informers.NewFilteredSharedInformerFactory(client, 0, namespace, tweak)
				})
				require.GreaterOrEqual(t, len(theirs), 138)
				for name, options := range map[string]func(c *rest.Config) []typed.SharedInformerOption{
					"streamed": func(c *rest.Config) []typed.SharedInformerOption {
						return []typed.SharedInformerOption{typed.WithRESTConfig(c)}
					},
					"client": func(*rest.Config) []typed.SharedInformerOption { return nil },
				} {
					ours := asked(t, namespace, func(c *rest.Config) informers.SharedInformerFactory {
						client, err := kubernetes.NewForConfig(c)
						require.NoError(t, err)
						return typed.New(client, 0, append(options(c), typed.WithNamespace(namespace), typed.WithTweakListOptions(tweak))...)
					})
					require.Equal(t, theirs, ours, name)
				}
			})
		})
	}
}
