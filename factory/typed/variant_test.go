package typed_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/factory/typed"
	"github.com/rvinformer/informer/informertest"
)

// A factory whose transform is not that of the informer that the registry had keeps its own when
// the other one goes.
func TestVariantOutlivesWhatItIsAVariantOf(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		create(t, s, "one")
		registry := factory.New()
		named := func(name string) *typed.Factory {
			return over(s, typed.WithFactory(registry), typed.WithTransform(func(obj any) (any, error) { return obj, nil }), typed.WithTransformName(name))
		}
		one, other := named("one"), named("other")
		one.Core().V1().Pods().Informer()
		before := other.Core().V1().Pods().Informer()
		stopOne, stopOther := started(t, one), started(t, other)
		stopOne()

		require.Same(t, before.GetStore(), other.Core().V1().Pods().Informer().GetStore())
		_, err := other.Core().V1().Pods().Lister().Pods("default").Get("one")
		require.NoError(t, err)
		key, err := other.KeyFor(pods)
		require.NoError(t, err)
		status, ok := registry.Status(key)
		require.True(t, ok)
		require.True(t, status.Synced)
		stopOther()
		require.Empty(t, registry.Statuses())
	})
}
