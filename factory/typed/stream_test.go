package typed_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/rvinformer/informer/factory/typed"
	"github.com/rvinformer/informer/informertest"
)

// relist makes informers list again, after meanwhile has made changes that no watch shows.
func relist(s *informertest.Server, meanwhile func()) {
	heal := s.Inject(informertest.Fault{Effect: informertest.Refuse()})
	meanwhile()
	s.Compact()
	heal()
	time.Sleep(5 * time.Minute)
}

// A list that shows an object unchanged gives the informer the object that it has.
func TestRelistKeepsWhatHasNotChanged(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		for _, name := range []string{"same", "changed", "recreated", "deleted"} {
			create(t, s, name)
		}
		f := over(s, typed.WithTransform(func(obj any) (any, error) {
			p := obj.(*corev1.Pod)
			p.Annotations = map[string]string{"transformed": p.Annotations["transformed"] + "x"}
			return p, nil
		}))
		lister := f.Core().V1().Pods().Lister().Pods("default")
		defer started(t, f)()
		before := map[string]*corev1.Pod{}
		for _, name := range []string{"same", "changed", "recreated", "deleted"} {
			var err error
			before[name], err = lister.Get(name)
			require.NoError(t, err)
		}
		relist(s, func() {
			change(t, s, "changed", "app", "web")
			require.NoError(t, s.Delete(pods, "default", "recreated"))
			create(t, s, "recreated")
			require.NoError(t, s.Delete(pods, "default", "deleted"))
			create(t, s, "new")
		})

		same, err := lister.Get("same")
		require.NoError(t, err)
		require.Same(t, before["same"], same)
		for _, name := range []string{"changed", "recreated", "new"} {
			p, err := lister.Get(name)
			require.NoError(t, err)
			require.NotSame(t, before[name], p)
			require.Equal(t, "x", p.Annotations["transformed"])
		}
		_, err = lister.Get("deleted")
		require.Error(t, err)
		require.Equal(t, "x", same.Annotations["transformed"])
	})
}
