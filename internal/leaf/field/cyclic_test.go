package field_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/internal/leaf/field"
)

type names map[string]names

// ring is inlined in itself, and has a map of maps like it.
type ring struct {
	//lint:ignore U1000 reflection reads it
	*ring `json:",inline" protobuf:"bytes,1,opt,name=ring"`
	Names names  `json:"names,omitempty" protobuf:"bytes,2,rep,name=names"`
	Text  string `json:"text" protobuf:"bytes,3,opt,name=text"`
}

func TestTypeThatLeadsBackToItselfIsRead(t *testing.T) {
	rings := field.Of(reflect.TypeFor[*ring]())
	value, why := rings.InProtobuf([]byte{3<<3 | 2, 1, 'a'}, "text")
	require.Equal(t, field.Found, why)
	require.NotZero(t, value)
	_, why = rings.InProtobuf([]byte{3<<3 | 2, 1, 'a'}, "names.a.b")
	require.NotEqual(t, field.Found, why)
}
