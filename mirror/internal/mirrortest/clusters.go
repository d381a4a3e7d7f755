// Package mirrortest has what the tests of mirror share: simulated clusters, and screens that
// remember what was written to them.
package mirrortest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/mirror/internal/clusters"
	"github.com/rvinformer/informer/mirror/internal/demo"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// verifyPage is the page size of lists that Differences makes, which tells them from those of mirror.
const verifyPage = 499

// Some resources of a demo.
var (
	Pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	ConfigMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	Widgets    = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
)

// Cluster is a simulated cluster like one of the demo.
type Cluster struct{ *demo.Cluster }

// NewCluster returns a cluster until the test ends.
func NewCluster(t testing.TB, name string, objects int, options informertest.Options) Cluster {
	c := Cluster{&demo.Cluster{Name: name, Server: informertest.NewServer(options)}}
	t.Cleanup(c.Server.Close)
	require.NoError(t, c.Fill(t.Context(), objects))
	return c
}

// Of returns all objects of a resource.
func (c Cluster) Of(t testing.TB, resource schema.GroupVersionResource) *demo.Stock {
	for _, s := range c.Stock {
		if s.Kind.Resource == resource {
			return s
		}
	}
	require.FailNow(t, "no such stock", resource)
	return nil
}

// Listed are the resources that the server was asked to list, be it as the beginning of a watch.
func (c Cluster) Listed() sets.Set[schema.GroupVersionResource] {
	resources := sets.New[schema.GroupVersionResource]()
	for _, request := range c.Server.Requests() {
		asksForOne := strings.Contains(request.Options.FieldSelector, "metadata.name=") // whether the server was restored
		verified := request.Options.Limit == verifyPage
		if !verified && (request.Verb == "list" && !asksForOne || request.Verb == "watch" && request.Options.SendInitialEvents != nil) {
			resources.Insert(request.GroupVersionResource)
		}
	}
	return resources
}

// ChangeAll changes, deletes, recreates and creates objects of each kind.
func (c Cluster) ChangeAll(t testing.TB) {
	for _, s := range c.Stock {
		require.NoError(t, s.Delete())
		require.NoError(t, s.Recreate(1))
		require.NoError(t, s.Create())
		require.NoError(t, s.Update(2))
	}
}

// Differences compares the rows of some resources, or all if there are none, with the server.
func (c Cluster) Differences(t testing.TB, db *sqlsink.Sink, resources ...schema.GroupVersionResource) (all []string) {
	t.Helper()
	listers, err := informer.NewDynamicListerWatcherFactory(c.Server.Config())
	require.NoError(t, err)
	for _, s := range c.Stock {
		if resources != nil && !sets.New(resources...).Has(s.Kind.Resource) {
			continue
		}
		lister := listers.ForResource("", s.Kind.Resource)
		report, err := db.Place(c.Name, s.Kind.Resource).Verify(t.Context(), lister, sqlsink.VerifyOptions{Patience: time.Millisecond, PageSize: verifyPage})
		require.NoError(t, err)
		require.Equal(t, s.Len(), report.Objects, s.Kind.Resource)
		for _, d := range report.Differences {
			all = append(all, fmt.Sprintf("%s %s: %s", s.Kind.Resource.Resource, d.Key, d.Reason))
		}
	}
	return all
}

// Equal requires that the rows of some resources, or all if there are none, equal the server.
func (c Cluster) Equal(t testing.TB, db *sqlsink.Sink, resources ...schema.GroupVersionResource) {
	t.Helper()
	require.Empty(t, c.Differences(t, db, resources...))
}

// Unreachable is the address of a server that is not there.
func Unreachable(t testing.TB) *rest.Config {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return &rest.Config{Host: "http://" + listener.Addr().String()}
}

// Kubeconfig writes a file with a context for each endpoint.
func Kubeconfig(t testing.TB, endpoints ...clusters.Endpoint) (path string) {
	config := api.NewConfig()
	for _, e := range endpoints {
		config.Clusters[e.Name] = &api.Cluster{Server: e.Client.Host}
		config.Contexts[e.Name] = &api.Context{Cluster: e.Name}
		config.CurrentContext = e.Name
	}
	path = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	return path
}

// ChangeAny creates, changes, deletes or recreates an object, and leaves at least one of each kind.
// It deletes only those of the first kinds: after a deletion that its checkpoint does not know of,
// an informer that was killed lists.
func (c Cluster) ChangeAny(random *rand.Rand, deletes int) error {
	i := random.IntN(len(c.Stock))
	stock, what := c.Stock[i], random.IntN(8)
	switch {
	case what == 0:
		return stock.Create()
	case what == 1 && i < deletes && stock.Len() > 1:
		return stock.Delete()
	case what < 4 && i < deletes:
		return stock.Recreate(random.Int())
	default:
		return stock.Update(random.Int())
	}
}
