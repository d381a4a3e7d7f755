package servers_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// Over a pipe in memory the client cannot say that it refuses a certificate.
func TestWrongCAHasWordsOfItsOwn(t *testing.T) {
	server := informertest.NewServer(informertest.Options{TLS: true})
	defer server.Close()
	config := server.Config()
	config.CAData = nil
	i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{ListerWatcher: harness.ListerOf(t, config), Handler: &harness.Recorder{}})
	defer harness.Start(i.RunWithContext)()
	require.Eventually(t, func() bool {
		c := i.Status().Condition
		return c.Reason == "ServerUnreachable" && strings.Contains(c.Message, server.URL()) &&
			strings.Contains(c.Message, "the CA of the rest.Config has not signed the server's certificate")
	}, time.Minute, 10*time.Millisecond)
}

// The condition of an informer names what a newcomer has got wrong.
func TestMistakesOfNewcomersHaveWordsOfTheirOwn(t *testing.T) {
	noRoute := harness.Before(func(rw http.ResponseWriter, r *http.Request) bool { // as a kube-apiserver answers
		if r.URL.Path == "/apis/example.com/v1/namespaces/a/podz" {
			rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
			rw.WriteHeader(http.StatusNotFound)
			_, _ = rw.Write([]byte("404 page not found\n"))
			return false
		}
		return true
	})
	tlsOnly := harness.Before(func(rw http.ResponseWriter, r *http.Request) bool { // as net/http answers
		rw.WriteHeader(http.StatusBadRequest)
		_, _ = rw.Write([]byte("Client sent an HTTP request to an HTTPS server.\n"))
		return false
	})
	podz := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "podz"}
	for name, test := range map[string]struct {
		options   informertest.Options
		namespace string
		resource  schema.GroupVersionResource
		reason    informer.ConditionReason
		words     []string
	}{
		"wrong name": {options: informertest.Options{Wrap: noRoute}, namespace: "a", resource: podz, reason: "NotFound",
			words: []string{`podz.example.com in version "v1" at http://localhost`, "could not find the requested resource", `namespace "a"`, "plural"}},
		"no resource": {resource: schema.GroupVersionResource{Group: "example.com"}, reason: "Failing",
			words: []string{`resource "", version "", group "example.com": the resource and its version must not be empty`}},
		"http to an https port": {options: informertest.Options{Wrap: tlsOnly}, resource: harness.Pods, reason: "Failing",
			words: []string{"takes no plain HTTP", "Host of the rest.Config has to begin with https://"}},
	} {
		harness.BubbleRun(t, name, test.options, func(t *testing.T, w *harness.World) {
			i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
				ListerWatcher: w.Factory().ForResource(test.namespace, test.resource), Handler: &harness.Recorder{},
			})
			defer harness.Start(i.RunWithContext)()
			for range 2 { // also when the server has counted as away for long
				harness.Sleep(10 * time.Second)
				c := i.Status().Condition
				require.Equal(t, test.reason, c.Reason, c.Message)
				for _, words := range test.words {
					require.Contains(t, c.Message, words)
				}
				time.Sleep(time.Hour)
			}
		})
	}
}
