package typed_test

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/rvinformer/informer/factory/typed"
)

var update = flag.Bool("update", false, "write scope.go")

// Of all resources that the scheme can name, ours has the informers that client-go's has.
func TestForResourceOfTheWholeScheme(t *testing.T) {
	theirs := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	ours := typed.NewSharedInformerFactory(fake.NewClientset(), 0)
	defer ours.Shutdown()
	found := 0
	for gvk := range scheme.Scheme.AllKnownTypes() {
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		want, wantErr := theirs.ForResource(resource)
		got, err := ours.ForResource(resource)
		if wantErr != nil {
			require.EqualError(t, err, wantErr.Error())
			require.ErrorIs(t, err, typed.ErrNoInformer)
			continue
		}
		found++
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("%T", want.Lister()), fmt.Sprintf("%T", got.Lister()))
		again, err := ours.ForResource(resource)
		require.NoError(t, err)
		require.Same(t, got.Informer(), again.Informer())
		require.Contains(t, got.Informer().GetIndexer().GetIndexers(), "namespace")
	}
	require.Equal(t, 147, found)

	_, err := ours.ForResource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"})
	require.EqualError(t, err, "no informer found for example.com/v1, Resource=widgets")
}

// The typed accessors have the informers that ForResource has, and no others.
func TestAccessorsHaveTheInformersOfForResource(t *testing.T) {
	f := typed.New(fake.NewClientset(), 0)
	defer f.Shutdown()
	byAccessor := map[any]string{}
	for _, accessor := range accessors(f) {
		lister := accessor.value.MethodByName("Lister").Call(nil)[0]
		require.NotNil(t, lister.Interface(), accessor.name)
		indexer := accessor.value.MethodByName("Informer").Call(nil)[0].MethodByName("GetIndexer").Call(nil)[0].Interface()
		require.Empty(t, byAccessor[indexer], accessor.name)
		byAccessor[indexer] = accessor.name
	}
	require.Len(t, byAccessor, 147)
	for gvk := range scheme.Scheme.AllKnownTypes() {
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		if generic, err := f.ForResource(resource); err == nil {
			require.NotEmpty(t, byAccessor[any(generic.Informer().GetIndexer())], resource)
		}
	}
}

type accessor struct {
	name  string
	value reflect.Value
}

// accessors calls group, version and resource.
func accessors(f informers.SharedInformerFactory) (all []accessor) {
	factory := reflect.ValueOf(f)
	for i := range reflect.TypeFor[informers.SharedInformerFactory]().NumMethod() {
		method := reflect.TypeFor[informers.SharedInformerFactory]().Method(i)
		if method.Type.NumIn() != 0 || method.Type.NumOut() != 1 || method.Type.Out(0).Kind() != reflect.Interface {
			continue
		}
		group := factory.MethodByName(method.Name).Call(nil)[0]
		for v := range group.NumMethod() {
			version := group.Method(v).Call(nil)[0]
			for r := range version.NumMethod() {
				resource := version.Method(r).Call(nil)[0]
				all = append(all, accessor{method.Name + "." + group.Type().Method(v).Name + "." + version.Type().Method(r).Name, resource})
			}
		}
	}
	return all
}

// What scope.go says is what the clientset says, which asks for a namespace or does not.
func TestScopes(t *testing.T) {
	var lines []string
	clientset := reflect.TypeFor[kubernetes.Interface]()
	f := typed.New(fake.NewClientset(), 0, typed.WithNamespace("default"))
	defer f.Shutdown()
	for i := range clientset.NumMethod() {
		group := clientset.Method(i).Type
		if group.NumOut() != 1 || group.Out(0).Kind() != reflect.Interface || clientset.Method(i).Name == "Discovery" {
			continue
		}
		for m := range group.Out(0).NumMethod() {
			method := group.Out(0).Method(m)
			if method.Name == "RESTClient" {
				continue
			}
			// The object that the client of the resource gets tells its resource.
			get, listed := method.Type.Out(0).MethodByName("Get")
			if !listed {
				continue
			}
			kinds, _, err := scheme.Scheme.ObjectKinds(reflect.New(get.Type.Out(0).Elem()).Interface().(runtime.Object))
			require.NoError(t, err)
			resource, _ := meta.UnsafeGuessKindToResource(kinds[0])
			key, err := f.KeyFor(resource)
			if err != nil { // it cannot be listed
				continue
			}
			namespaced := method.Type.NumIn() == 1
			if !*update {
				require.Equal(t, namespaced, key.Namespace == "default", "%v", resource)
			}
			if !namespaced {
				lines = append(lines, fmt.Sprintf("\t{Group: %q, Resource: %q}: true,\n", resource.Group, resource.Resource))
			}
		}
	}
	if *update {
		slices.Sort(lines)
		text, err := os.ReadFile("scope.go")
		require.NoError(t, err)
		head, _, _ := strings.Cut(string(text), "schema.GroupResource]bool{")
		text = []byte(head + "schema.GroupResource]bool{\n" + strings.Join(slices.Compact(lines), "") + "}\n")
		require.NoError(t, os.WriteFile("scope.go", text, 0o666))
	}
	require.NotEmpty(t, lines)
}
