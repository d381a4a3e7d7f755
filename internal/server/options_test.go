package server

import (
	"net/url"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion/queryparams"
	"k8s.io/client-go/rest"
)

func TestOnlySelectsNameAndNamespace(t *testing.T) {
	for key, want := range map[string]string{"a/1": "x=y,metadata.name=1,metadata.namespace=a", "1": "x=y,metadata.name=1"} {
		opts := metav1.ListOptions{FieldSelector: "x=y"}
		Only(key)(&opts)
		require.Equal(t, want, opts.FieldSelector)
	}
}

// Each field of the options, alone and beside all others, is encoded as client-go does, also one
// that a later version adds.
func TestOptionsAreSetAsClientGoEncodesThem(t *testing.T) {
	var cases []metav1.ListOptions
	var all metav1.ListOptions
	fields := reflect.TypeFor[metav1.ListOptions]()
	for i := range fields.NumField() {
		for _, value := range valuesOf(t, fields.Field(i).Type) {
			var one metav1.ListOptions
			reflect.ValueOf(&one).Elem().Field(i).Set(value)
			reflect.ValueOf(&all).Elem().Field(i).Set(value)
			cases = append(cases, one, all)
		}
	}
	require.Greater(t, len(cases), 2*fields.NumField())
	for _, opts := range cases {
		want, err := queryparams.Convert(&opts)
		require.NoError(t, err)
		request := rest.NewRequestWithClient(&url.URL{Host: "host"}, "", rest.ClientContentConfig{}, nil)
		setOptions(request, &opts)
		require.Equal(t, want.Encode(), request.URL().RawQuery, "%+v", opts)
	}
}

// valuesOf are values of a field, the zero one first.
func valuesOf(t *testing.T, field reflect.Type) []reflect.Value {
	t.Helper()
	switch zero := reflect.Zero(field); field.Kind() {
	case reflect.String:
		return []reflect.Value{zero, reflect.ValueOf("a=b,c in (d&e) é%").Convert(field)}
	case reflect.Bool:
		return []reflect.Value{zero, reflect.ValueOf(true)}
	case reflect.Int64:
		return []reflect.Value{zero, reflect.ValueOf(int64(-7)), reflect.ValueOf(int64(500))}
	case reflect.Pointer:
		values := []reflect.Value{zero}
		for _, value := range valuesOf(t, field.Elem()) {
			pointer := reflect.New(field.Elem())
			pointer.Elem().Set(value)
			values = append(values, pointer)
		}
		return values
	case reflect.Struct:
		require.Equal(t, reflect.TypeFor[metav1.TypeMeta](), field)
		return []reflect.Value{zero, reflect.ValueOf(metav1.TypeMeta{Kind: "Kind", APIVersion: "v1/x"})}
	default:
		t.Fatalf("a field of type %v is not encoded", field)
		return nil
	}
}
