package informer_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// The examples follow pods of a simulated cluster, and call what makes an object, runs an informer
// until it is stopped, and tells the key of an object and what changes in it.
var (
	pods      = harness.Pods
	simulated = harness.Simulated
	object    = harness.Object
	start     = harness.Start
	key       = harness.Key
	data      = harness.Data
)

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
