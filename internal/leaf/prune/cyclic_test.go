package prune_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/internal/leaf/prune"
)

type names map[string]names

// ring is inlined in itself, and has fields that lead back to their type.
type ring struct {
	//lint:ignore U1000 reflection reads it
	*ring `json:",inline"`
	Next  *ring  `json:"next,omitempty"`
	Names names  `json:"names,omitempty"`
	Text  string `json:"text"`
}

func TestTypeThatLeadsBackToItselfIsPruned(t *testing.T) {
	fields, err := prune.Parse(nil, []string{"text", "next.text", "names.a.b"})
	require.NoError(t, err)
	require.NoError(t, fields.Of(reflect.TypeFor[*ring]()).Err())
	obj := &ring{Text: "a", Next: &ring{Text: "b", Next: &ring{Text: "c"}}, Names: names{"a": {"b": nil, "c": nil}}}
	fields.Apply(obj)
	require.Equal(t, &ring{Next: &ring{Next: &ring{Text: "c"}}, Names: names{"a": {"c": nil}}}, obj)
}
