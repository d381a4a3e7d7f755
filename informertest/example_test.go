package informertest_test

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// A server with a custom resource and nothing else.
func ExampleNewServer() {
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	server := informertest.NewServer(informertest.Options{
		Resources: []informertest.Resource{{GroupVersionResource: widgets, Kind: "Widget", Namespaced: true, Custom: true}},
	})
	defer server.Close()
	client, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		panic(err)
	}
	_, err = client.Resource(widgets).List(context.Background(), metav1.ListOptions{})
	fmt.Println("widgets:", err)
	_, err = client.Resource(pods).List(context.Background(), metav1.ListOptions{})
	fmt.Println("pods:", err)
	// Output:
	// widgets: <nil>
	// pods: the server could not find the requested resource: it does not serve pods of v1
}

// To what is served by default, more can be added.
func ExampleDefaultResources() {
	for _, r := range informertest.DefaultResources() {
		fmt.Println(r.GroupVersionResource.GroupVersion(), r.GroupVersionResource.Resource)
	}
	// Output:
	// v1 pods
	// v1 configmaps
	// v1 secrets
	// v1 namespaces
	// v1 nodes
	// apps/v1 deployments
	// example.com/v1 widgets
}

// A fault is a line of text, too.
func ExampleParseFault() {
	fault, err := informertest.ParseFault("watch cut=100 times=2")
	if err != nil {
		panic(err)
	}
	fmt.Println(fault.Verbs, fault.Effect, fault.Times)
	fmt.Println(fault)
	_, err = informertest.ParseFault("watch cutt=100")
	fmt.Println(err)
	// Output:
	// [watch] cut=100 2
	// watch cut=100 times=2
	// fault "watch cutt=100": unknown word "cutt=100"
}

// What can happen to a request, and its text in a script.
func ExampleEffect() {
	for _, effect := range []informertest.Effect{
		// A connection ends, or says nothing.
		informertest.Refuse(),
		informertest.Reset(),
		informertest.Hang(),
		// A body is broken off, after so many bytes, or slow.
		informertest.Cut(100),
		informertest.CutClean(100),
		informertest.Slow(10),
		// One that is compressed cannot be decompressed.
		informertest.Corrupt(100),
		informertest.WrongChecksum(),
		// One of the items is not what it should be.
		informertest.Garbage(3),
		informertest.Mistyped(3),
		informertest.Oversize(3, 1<<20),
		// The answer is an error.
		informertest.Status(503),
		informertest.ErrorEvent(410),
		// A watch-list is none.
		informertest.IgnoreWatchList(),
		informertest.RefuseWatchList(),
		informertest.EndlessWatchList(),
		// A watch ends early, has no bookmarks, or no order.
		informertest.CloseWatch(),
		informertest.NoBookmarks(),
		informertest.DropBookmarks(2),
		informertest.Repeat(5),
		informertest.Swap(5),
		// A replica is behind.
		informertest.Lag(),
	} {
		fmt.Println(effect)
	}
	// Output:
	// refuse
	// reset
	// hang
	// cut=100
	// cut=100,clean
	// slow=10
	// corrupt=100
	// wrong-checksum
	// garbage=3
	// mistyped=3
	// oversize=3,1048576
	// 503
	// error-event=410
	// ignore-watch-list
	// refuse-watch-list
	// endless-watch-list
	// close
	// no-bookmarks
	// drop-bookmarks=2
	// repeat=5
	// swap=5
	// lag
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
