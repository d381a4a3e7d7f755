package informer_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// The examples follow pods, and call what makes an object, runs an informer until it is stopped, and
// tells the key of an object and what changes in it.
var (
	pods   = harness.Pods
	object = harness.Object
	start  = harness.Start
	key    = harness.Key
	data   = harness.Data
)

// simulated is a cluster with pods of the namespace "default", and what lists and watches
// them. A program has a rest.Config instead of that of the server.
func simulated(names ...string) (*informertest.Server, cache.ListerWatcher) {
	server := informertest.NewServer(informertest.Options{})
	for _, name := range names {
		if _, err := server.Create(pods, object(pods, "default/"+name, "")); err != nil {
			panic(err)
		}
	}
	factory, err := informer.NewDynamicListerWatcherFactory(server.Config())
	if err != nil {
		panic(err)
	}
	return server, factory.ForResource("default", pods)
}

// namesOf are the names of the objects that lw lists.
func namesOf(lw cache.ListerWatcher) (names []string) {
	list, err := lw.List(metav1.ListOptions{})
	if err != nil {
		panic(err)
	}
	err = meta.EachListItem(list, func(obj runtime.Object) error {
		names = append(names, obj.(metav1.Object).GetName())
		return nil
	})
	if err != nil {
		panic(err)
	}
	return names
}
