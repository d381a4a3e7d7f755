package typed

import (
	"context"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// checkClientLists panics if WithClientLists cannot work.
func (s *settings) checkClientLists() {
	switch {
	case s.clientLists && s.asksConfig:
		panic("typed: WithClientLists beside WithRESTConfig: each says how objects are read")
	case s.clientLists && s.client == nil:
		panic("typed: WithClientLists without a client")
	}
}

// listsOf returns the lists and watches that a client has for objects like example.
func listsOf(client kubernetes.Interface, example runtime.Object, namespace string) (cache.ListerWatcher, error) {
	resource := resourceClientOf(client, reflect.TypeOf(example).Elem(), namespace)
	if !resource.IsValid() {
		return nil, fmt.Errorf("the client %T has no lists of %T", client, example)
	}
	list, watches := resource.MethodByName("List"), resource.MethodByName("Watch")
	call := func(method reflect.Value, ctx context.Context, options metav1.ListOptions) (any, error) {
		results := method.Call([]reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(options)})
		err, _ := results[1].Interface().(error)
		return results[0].Interface(), err
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			listed, err := call(list, ctx, options)
			if err != nil {
				return nil, err
			}
			return listed.(runtime.Object), nil
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			watched, err := call(watches, ctx, options)
			if err != nil {
				return nil, err
			}
			return watched.(watch.Interface), nil
		},
	}, nil
}

// resourceClientOf returns what a client has for objects of a type, such as CoreV1().Pods(namespace),
// whose List returns them. It is invalid if there is none.
func resourceClientOf(client kubernetes.Interface, of reflect.Type, namespace string) reflect.Value {
	all := reflect.TypeFor[kubernetes.Interface]()
	for i := range all.NumMethod() {
		group := all.Method(i)
		if group.Type.NumIn() != 0 || group.Type.NumOut() != 1 || group.Type.Out(0).Kind() != reflect.Interface {
			continue
		}
		for k := range group.Type.Out(0).NumMethod() {
			resource := group.Type.Out(0).Method(k)
			if !lists(resource.Type, of) {
				continue
			}
			var in []reflect.Value
			if resource.Type.NumIn() == 1 {
				in = []reflect.Value{reflect.ValueOf(namespace)}
			}
			return reflect.ValueOf(client).MethodByName(group.Name).Call(nil)[0].MethodByName(resource.Name).Call(in)[0]
		}
	}
	return reflect.Value{}
}

// lists reports whether a method returns a client whose List has items of a type.
func lists(resource, of reflect.Type) bool {
	if resource.NumOut() != 1 || resource.Out(0).Kind() != reflect.Interface || resource.NumIn() > 1 {
		return false
	}
	list, ok := resource.Out(0).MethodByName("List")
	if !ok || list.Type.NumOut() != 2 || list.Type.Out(0).Kind() != reflect.Pointer {
		return false
	}
	items, ok := list.Type.Out(0).Elem().FieldByName("Items")
	return ok && items.Type.Kind() == reflect.Slice && items.Type.Elem() == of
}
