package factory_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/factory"
)

func TestTransformsAreComparedByName(t *testing.T) {
	f1 := func(obj any) (any, error) { return obj, nil }
	f2 := func(obj any) (any, error) { return nil, nil }
	none := factory.InformerOptions{}
	nameOnly := factory.InformerOptions{TransformName: "a"}
	nameless := factory.InformerOptions{ObjectTransform: f1}
	a := factory.InformerOptions{ObjectTransform: f1, TransformName: "a"}
	alsoA := factory.InformerOptions{ObjectTransform: f2, TransformName: "a"}
	b := factory.InformerOptions{ObjectTransform: f1, TransformName: "b"}
	const ask = "; InformerOptions.TransformName tells whether they are the same"
	for _, c := range []struct {
		have, asked factory.InformerOptions
		says        string // after the key; empty: no conflict
	}{
		{none, none, ""},
		{none, nameOnly, ""},
		{a, a, ""},
		{a, alsoA, ""},
		{a, b, `it exists with the transform "a", and was asked for with the transform "b"`},
		{a, none, `it exists with the transform "a", and was asked for with no transform`},
		{none, nameless, "it exists with no transform, and was asked for with a transform without a name"},
		{nameless, nameless, "it exists with a transform without a name, and was asked for with a transform without a name" + ask},
		{nameless, a, `it exists with a transform without a name, and was asked for with the transform "a"` + ask},
	} {
		f := factory.New()
		f.InformerFor(pods, c.have, newStubFunc)
		_, err := f.TryInformerFor(pods, c.asked, never(t))
		_, leaseErr := f.Acquire(pods, c.asked, never(t))
		require.Equal(t, err, leaseErr)
		if c.says == "" {
			require.NoError(t, err)
			continue
		}
		var conflict *factory.TransformConflictError
		require.ErrorAs(t, err, &conflict)
		require.EqualError(t, err, "informer of v1/pods, standard: "+c.says)
		require.Equal(t, pods, conflict.Key.Resource)
		require.Zero(t, f.Statuses()[0].Leases, "a refused request is no user")
	}
}
