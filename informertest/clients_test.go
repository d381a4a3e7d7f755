package informertest_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"

	"github.com/rvinformer/informer/informertest"
)

func TestDynamicClient(t *testing.T) {
	s := start(t, informertest.Options{})
	client, err := dynamic.NewForConfig(s.Config())
	require.NoError(t, err)
	ctx := t.Context()
	in := client.Resource(widgets).Namespace("a")

	w, err := in.Watch(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	defer w.Stop()

	o := widget("", "1", 1)
	o.SetAPIVersion("example.com/v1")
	o.SetKind("Widget")
	made, err := in.Create(ctx, o, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, "2", made.GetResourceVersion())
	require.NotEmpty(t, made.GetUID())
	created := made.GetCreationTimestamp()
	require.False(t, created.IsZero())
	_, err = in.Create(ctx, o, metav1.CreateOptions{})
	require.True(t, apierrors.IsAlreadyExists(err), err)

	require.NoError(t, unstructured.SetNestedField(made.Object, int64(2), "spec", "size"))
	newer, err := in.Update(ctx, made, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, "3", newer.GetResourceVersion())
	require.Equal(t, made.GetUID(), newer.GetUID())
	_, err = in.Update(ctx, made, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), err)
	same, err := in.Update(ctx, newer, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, "3", same.GetResourceVersion())

	got, err := in.Get(ctx, "1", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, newer, got)
	all, err := client.Resource(widgets).List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, []unstructured.Unstructured{*newer}, all.Items)
	require.Equal(t, "3", all.GetResourceVersion())

	old := types.UID("another")
	err = in.Delete(ctx, "1", *metav1.NewPreconditionDeleteOptions(string(old)))
	require.True(t, apierrors.IsConflict(err), err)
	require.NoError(t, in.Delete(ctx, "1", metav1.DeleteOptions{}))
	require.True(t, apierrors.IsNotFound(in.Delete(ctx, "1", metav1.DeleteOptions{})))
	_, err = in.Get(ctx, "1", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), err)
	_, err = in.Patch(ctx, "1", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
	require.True(t, apierrors.IsMethodNotSupported(err), err)
	_, err = client.Resource(widgets.GroupVersion().WithResource("gadgets")).List(ctx, metav1.ListOptions{})
	require.True(t, apierrors.IsNotFound(err), err)

	for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
		require.Equal(t, want, (<-w.ResultChan()).Type)
	}
}

func TestTypedClient(t *testing.T) {
	s := start(t, informertest.Options{})
	client, err := kubernetes.NewForConfig(s.Config())
	require.NoError(t, err)
	ctx := t.Context()

	_, err = client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "node-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{NodeName: "n"}}
	_, err = client.CoreV1().Pods("a").Create(ctx, pod, metav1.CreateOptions{})
	require.NoError(t, err)

	// What came over HTTP as a map equals what Go gives as a struct.
	stored, err := s.Get(pods, "a", "p")
	require.NoError(t, err)
	pod.Namespace = "a"
	again, err := s.Update(pods, pod)
	require.NoError(t, err)
	require.Equal(t, stored, again)

	ns, err := client.CoreV1().Namespaces().Get(ctx, "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "2", ns.ResourceVersion)
	nodeList, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Regexp(t, "^node-.{5}$", nodeList.Items[0].Name)
	podList, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: 3})
	require.NoError(t, err)
	require.Equal(t, "n", podList.Items[0].Spec.NodeName)
	require.NoError(t, client.CoreV1().Pods("a").Delete(ctx, "p", metav1.DeleteOptions{}))
}

func TestDiscoveryClient(t *testing.T) {
	s := start(t, informertest.Options{})
	client, err := discovery.NewDiscoveryClientForConfig(s.Config())
	require.NoError(t, err)
	found := func() []string {
		lists, err := client.ServerPreferredResources()
		require.NoError(t, err)
		var out []string
		for _, l := range lists {
			for _, r := range l.APIResources {
				require.ElementsMatch(t, []string{"get", "list", "watch", "create", "update", "delete"}, r.Verbs)
				out = append(out, fmt.Sprint(l.GroupVersion, " ", r.Name, " ", r.Kind, " ", r.Namespaced))
			}
		}
		return out
	}
	want := []string{
		"v1 configmaps ConfigMap true", "v1 namespaces Namespace false", "v1 nodes Node false", "v1 pods Pod true", "v1 secrets Secret true",
		"apps/v1 deployments Deployment true", "example.com/v1 widgets Widget true",
	}
	require.ElementsMatch(t, want, found())
	s.AddResource(informertest.Resource{GroupVersionResource: widgets.GroupVersion().WithResource("gadgets"), Kind: "Gadget", Custom: true})
	require.ElementsMatch(t, append(want, "example.com/v1 gadgets Gadget false"), found())
	v, err := client.ServerVersion()
	require.NoError(t, err)
	require.Equal(t, "1", v.Major)
}

func TestPagerOfClientGo(t *testing.T) {
	s := five(t)
	client, err := dynamic.NewForConfig(s.Config())
	require.NoError(t, err)
	p := pager.New(func(ctx context.Context, opts metav1.ListOptions) (object runtime.Object, err error) {
		return client.Resource(configMaps).List(ctx, opts)
	})
	p.PageSize = 2
	n := 0
	require.NoError(t, p.EachListItem(t.Context(), metav1.ListOptions{}, func(runtime.Object) error { n++; return nil }))
	require.Equal(t, 5, n)
}

// noWatchList marks a client whose informers must list.
type noWatchList struct{}

func (noWatchList) IsWatchListSemanticsUnSupported() bool { return true }

// TestSharedInformer holds an informer of client-go against the server, through cut connections,
// compactions and a sequence set back.
func TestSharedInformer(t *testing.T) {
	for _, mode := range []string{"watch-list", "list"} {
		for _, secure := range []bool{false, true} {
			name := mode
			if secure {
				name += " in protobuf over HTTP 2"
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { followWithSharedInformer(t, mode == "watch-list", secure) })
			})
		}
	}
}

func followWithSharedInformer(t *testing.T, watchList, secure bool) {
	s := start(t, informertest.Options{InMemory: true, TLS: secure})
	create(t, s, configMap("a", "1", "x"), configMap("a", "2", "x"), configMap("b", "1", "x"))
	config := s.Config()
	if secure {
		config = inProtobuf(s)
	}
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	var lw cache.ListerWatcher = cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "configmaps", "", fields.Everything())
	if !watchList {
		lw = cache.ToListWatcherWithWatchListSemantics(lw.(*cache.ListWatch), noWatchList{})
	}
	informer := cache.NewSharedIndexInformer(lw, &corev1.ConfigMap{}, 0, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		informer.RunWithContext(ctx)
	}()
	defer func() {
		cancel()
		<-done
	}()

	same := func() {
		t.Helper()
		// Virtual time enough for every backoff.
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		want, err := s.ResourceVersions(configMaps, "")
		require.NoError(t, err)
		got := map[string]string{}
		for _, o := range informer.GetStore().List() {
			o := o.(*corev1.ConfigMap)
			got[o.Namespace+"/"+o.Name] = o.ResourceVersion
		}
		require.Equal(t, want, got)
	}
	same()
	require.True(t, informer.HasSynced())

	_, err = s.Update(configMaps, configMap("a", "1", "y"))
	require.NoError(t, err)
	require.NoError(t, s.Delete(configMaps, "b", "1"))
	same()

	s.CloseClientConnections()
	create(t, s, configMap("c", "1", "x"))
	same()

	s.CloseClientConnections()
	create(t, s, configMap("c", "2", "x"))
	require.NoError(t, s.Delete(configMaps, "a", "2"))
	s.Compact()
	same()

	// That the sequence went back it can only learn when it is past where it was, from a watch that
	// expires: asked for its future, a server is silent. The sequence must not pass it just when a
	// bookmark is due, once a minute: that would take the informer past the compaction.
	s.SetResourceVersion(3)
	create(t, s, configMap("d", "1", "x"))
	time.Sleep(90 * time.Second)
	s.SetResourceVersion(50)
	s.Compact()
	s.CloseClientConnections()
	same()

	var initial, lists int
	for _, r := range s.Requests() {
		if r.Verb == "list" {
			lists++
		}
		if r.Options.SendInitialEvents != nil {
			initial++
		}
	}
	require.Equal(t, watchList, initial > 0)
	require.Equal(t, !watchList, lists > 0)
}
