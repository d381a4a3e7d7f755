package informertest_test

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/rvinformer/informer/informertest"
)

func Example() {
	server := informertest.NewServer(informertest.Options{})
	defer server.Close()
	client, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		panic(err)
	}
	ctx := context.Background()

	web := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	if _, err := server.Create(pods, web); err != nil {
		panic(err)
	}
	list, err := client.Resource(pods).List(ctx, metav1.ListOptions{})
	if err != nil {
		panic(err)
	}
	fmt.Println("listed", list.Items[0].GetName(), "at", list.GetResourceVersion())

	watch, err := client.Resource(pods).Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		panic(err)
	}
	defer watch.Stop()
	if err := server.Delete(pods, "default", "web"); err != nil {
		panic(err)
	}
	fmt.Println("then", (<-watch.ResultChan()).Type)

	server.Compact()
	_, err = client.Resource(pods).List(ctx, metav1.ListOptions{ResourceVersion: "2", ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	fmt.Println("later:", err)

	// Output:
	// listed web at 2
	// then DELETED
	// later: too old resource version: 2 (history begins at 3)
}

func ExampleServer_Inject() {
	server := informertest.NewServer(informertest.Options{})
	defer server.Close()
	ask := func() int {
		response, err := http.Get(server.URL() + "/api/v1/pods")
		if err != nil {
			panic(err)
		}
		defer response.Body.Close()
		return response.StatusCode
	}
	fault, err := informertest.ParseFault("list 503 retry-after=2 skip=1 times=1")
	if err != nil {
		panic(err)
	}
	defer server.Inject(fault)()
	fmt.Println(ask(), ask(), ask())
	// Output: 200 503 200
}
