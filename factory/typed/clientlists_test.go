package typed_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/factory/typed"
	"github.com/rvinformer/informer/objectcache"
)

// texts are the pods that a lister has, as JSON by their names.
func texts(t *testing.T, f informers.SharedInformerFactory) map[string]string {
	listed, err := f.Core().V1().Pods().Lister().List(labels.Everything())
	require.NoError(t, err)
	texts := map[string]string{}
	for _, p := range listed {
		text, err := json.Marshal(p)
		require.NoError(t, err)
		texts[p.Name] = string(text)
	}
	return texts
}

// Over a fake clientset, the informers that a program ships have what client-go's have, and tell
// the same.
func TestClientListsOverFakeClientsetAsClientGo(t *testing.T) {
	for name, opts := range map[string][]typed.SharedInformerOption{
		"encoded": {typed.WithClientLists(), typed.WithObjectCache(objectcache.Options{})},
		"decoded": {typed.WithClientLists()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset(pod("listed", "app", "web"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}})
				ctx, cancel := context.WithCancel(t.Context())
				ours := typed.New(client, 0, append(opts, typed.WithNamespace("default"))...)
				theirs := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("default"))
				var mu sync.Mutex
				told := map[informers.SharedInformerFactory][]string{}
				for _, f := range []informers.SharedInformerFactory{ours, theirs} {
					say := func(what string, obj any) {
						key, _ := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
						mu.Lock()
						defer mu.Unlock()
						told[f] = append(told[f], what+" "+key)
					}
					_, err := f.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
						AddFunc:    func(obj any) { say("add", obj) },
						UpdateFunc: func(_, obj any) { say("update", obj) },
						DeleteFunc: func(obj any) { say("delete", obj) },
					})
					require.NoError(t, err)
					f.Core().V1().Nodes().Informer()
					f.StartWithContext(ctx)
					require.NoError(t, f.WaitForCacheSyncWithContext(ctx).AsError())
				}
				require.NotNil(t, typed.ObjectCache(ours.Core().V1().Pods().Informer()))
				synctest.Wait()
				agree := func() {
					t.Helper()
					synctest.Wait()
					require.Equal(t, texts(t, theirs), texts(t, ours))
					mu.Lock()
					defer mu.Unlock()
					require.Equal(t, told[theirs], told[ours])
				}
				agree()
				api := client.CoreV1().Pods("default")
				_, err := api.Create(ctx, pod("created"), metav1.CreateOptions{})
				require.NoError(t, err)
				agree()
				_, err = api.Update(ctx, pod("created", "app", "db"), metav1.UpdateOptions{})
				require.NoError(t, err)
				agree()
				require.NoError(t, api.Delete(ctx, "listed", metav1.DeleteOptions{}))
				agree()
				node, err := ours.Core().V1().Nodes().Lister().Get("node")
				require.NoError(t, err)
				require.Equal(t, "node", node.Name)
				cancel()
				ours.Shutdown()
				theirs.Shutdown()
			})
		})
	}
}

// Suites give a fake clientset objects without a name, and a fake watch deletions of what was never listed.
func TestClientListsOverNamelessObjectsAndUnseenDeletionsAsClientGo(t *testing.T) {
	for name, opts := range map[string][]typed.SharedInformerOption{
		"encoded": {typed.WithClientLists(), typed.WithObjectCache(objectcache.Options{})},
		"decoded": {typed.WithClientLists()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nameless := func(namespace string) *corev1.Pod {
					return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
				}
				client := fake.NewClientset(nameless("a"), &corev1.Node{})
				var mu sync.Mutex
				var watches []*watch.FakeWatcher
				client.PrependWatchReactor("pods", func(clienttesting.Action) (bool, watch.Interface, error) {
					mu.Lock()
					defer mu.Unlock()
					watches = append(watches, watch.NewFake())
					return true, watches[len(watches)-1], nil
				})
				ctx, cancel := context.WithCancel(t.Context())
				ours, theirs := typed.New(client, 0, opts...), informers.NewSharedInformerFactory(client, 0)
				told, kept := map[informers.SharedInformerFactory][]string{}, map[informers.SharedInformerFactory][]string{}
				for _, f := range []informers.SharedInformerFactory{ours, theirs} {
					say := func(what string, obj any) {
						key, _ := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
						mu.Lock()
						defer mu.Unlock()
						told[f] = append(told[f], fmt.Sprintf("%s %T %q", what, obj, key))
					}
					for _, i := range []cache.SharedIndexInformer{f.Core().V1().Pods().Informer(), f.Core().V1().Nodes().Informer()} {
						_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
							AddFunc:    func(obj any) { say("add", obj) },
							UpdateFunc: func(_, obj any) { say("update", obj) },
							DeleteFunc: func(obj any) { say("delete", obj) },
						})
						require.NoError(t, err)
					}
					f.StartWithContext(ctx)
					require.NoError(t, f.WaitForCacheSyncWithContext(ctx).AsError())
				}
				synctest.Wait()
				for _, w := range watches {
					w.Add(nameless("b"))
					w.Modify(nameless("a"))
					w.Delete(nameless("a"))
					w.Delete(nameless("unseen"))
					w.Delete(pod("unseen"))
				}
				synctest.Wait()
				for f := range told {
					pods, err := f.Core().V1().Pods().Lister().List(labels.Everything())
					require.NoError(t, err)
					for _, p := range pods {
						kept[f] = append(kept[f], cache.MetaObjectToName(p).String())
					}
					_, err = f.Core().V1().Pods().Lister().Pods("b").Get("")
					require.NoError(t, err)
					_, err = f.Core().V1().Nodes().Lister().Get("")
					require.NoError(t, err)
				}
				require.Len(t, told[theirs], 7)
				require.ElementsMatch(t, told[theirs], told[ours])
				require.Equal(t, []string{"b/"}, kept[theirs])
				require.Equal(t, kept[theirs], kept[ours])
				cancel()
				ours.Shutdown()
				theirs.Shutdown()
			})
		})
	}
}

func TestClientListsNeedAClientAndNoConfig(t *testing.T) {
	require.PanicsWithValue(t, "typed: WithClientLists without a client", func() { typed.New(nil, 0, typed.WithClientLists()) })
	synctest.Test(t, func(t *testing.T) {
		bad := func() { typed.New(fake.NewClientset(), 0, typed.WithClientLists(), typed.WithRESTConfig(nil)) }
		require.PanicsWithValue(t, "typed: WithClientLists beside WithRESTConfig: each says how objects are read", bad)
	})
}
