package typed_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/factory/typed"
	"github.com/rvinformer/informer/informertest"
)

// The same version is not the same object if the UID differs: a server that was restored gives its
// versions anew.
func TestSameVersionOfAnotherObject(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		backup := s.Backup()
		create(t, s, "one", "life", "first")
		f := over(s)
		lister := f.Core().V1().Pods().Lister().Pods("default")
		stop := started(t, f)
		before, err := lister.Get("one")
		require.NoError(t, err)
		relist(s, func() {
			s.Restore(backup)
			create(t, s, "one", "life", "second")
			create(t, s, "two")
		})
		after, err := lister.Get("one")
		require.NoError(t, err)
		require.Equal(t, before.ResourceVersion, after.ResourceVersion)
		require.NotEqual(t, before.UID, after.UID)
		require.Equal(t, "second", after.Labels["life"])
		stop()
	})
}

// A list under way is waited for: after Shutdown nothing calls the transform any more.
func TestShutdownWaitsForTheList(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		create(t, s, "one")
		var returned atomic.Bool
		f := over(s, typed.WithTransform(func(obj any) (any, error) {
			time.Sleep(time.Minute)
			returned.Store(true)
			return obj, nil
		}))
		f.Core().V1().Pods().Informer()
		stop := make(chan struct{})
		f.Start(stop)
		time.Sleep(time.Second)
		close(stop)
		f.Shutdown()
		require.True(t, returned.Load())
	})
}

// Why an informer has not synced, the registry knows; a handler of the user's is told as well.
func TestStatusOfWhatFails(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		s.Inject(informertest.Fault{Match: informertest.Match{Resource: pods}, Effect: informertest.Status(403)})
		s.Inject(informertest.Fault{Match: informertest.Match{Resource: nodes}, Effect: informertest.Status(404)})
		registry := factory.New()
		f := over(s, typed.WithFactory(registry))
		var told atomic.Int32
		require.NoError(t, f.Core().V1().Pods().Informer().SetWatchErrorHandler(func(*cache.Reflector, error) { told.Add(1) }))
		require.NoError(t, f.Core().V1().Nodes().Informer().SetWatchErrorHandlerWithContext(nil), "client-go's")
		stop := make(chan struct{})
		f.Start(stop)
		time.Sleep(time.Second)
		key, err := f.KeyFor(pods)
		require.NoError(t, err)
		status, ok := registry.Status(key)
		require.True(t, ok)
		require.Equal(t, factory.ErrorForbidden, status.ErrorClass())
		require.Positive(t, told.Load())
		key, err = f.KeyFor(nodes)
		require.NoError(t, err)
		status, _ = registry.Status(key)
		require.Equal(t, factory.ErrorNotFound, status.ErrorClass())
		s.Heal()
		synced(t, f)
		close(stop)
		f.Shutdown()
	})
}

// An object that cannot be decoded is left out and reported, and takes nothing away; when it has
// gone, all is well.
func TestObjectThatIsNotOfItsType(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		create(t, s, "good")
		config := s.Config()
		config.ContentType = "application/json"
		f := typed.New(nil, 0, typed.WithRESTConfig(config))
		i := f.Core().V1().Pods().Informer()
		var told atomic.Pointer[error]
		require.NoError(t, i.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { told.Store(&err) }))
		stop := started(t, f)
		time.Sleep(time.Second)
		_, err := s.Create(pods, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": "default", "name": "bad"}, "spec": "text",
		}})
		require.NoError(t, err)
		time.Sleep(5 * time.Minute)
		require.Equal(t, []string{"default/good"}, keys(i))
		require.ErrorContains(t, *told.Load(), `"default/bad"`)
		relist(s, func() {})
		require.Equal(t, []string{"default/good"}, keys(i))
		require.ErrorContains(t, *told.Load(), `"default/bad"`)
		require.NoError(t, s.Delete(pods, "default", "bad"))
		create(t, s, "other")
		time.Sleep(5 * time.Minute)
		require.ElementsMatch(t, []string{"default/good", "default/other"}, keys(i))
		stop()
	})
}

// Where utilruntime lets the process survive a panic, a transform may panic.
func TestTransformThatPanics(t *testing.T) {
	crash, handlers := utilruntime.ReallyCrash, utilruntime.PanicHandlers
	defer func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = crash, handlers }()
	utilruntime.ReallyCrash, utilruntime.PanicHandlers = false, nil
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		f := over(s, typed.WithTransform(func(obj any) (any, error) {
			if obj.(*corev1.Pod).Labels["bad"] != "" {
				panic("bad")
			}
			return obj, nil
		}))
		i := f.Core().V1().Pods().Informer()
		stop := started(t, f)
		time.Sleep(time.Second)
		create(t, s, "bad", "bad", "yes")
		time.Sleep(time.Minute)
		change(t, s, "bad")
		s.Compact()
		time.Sleep(10 * time.Minute)
		require.Equal(t, []string{"default/bad"}, keys(i))
		stop()
	})
}
