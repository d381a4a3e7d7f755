package objectcache_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/objectcache"
)

// scripted is a ListerWatcher of a user's. It lists items, and its newest watch is what a test writes
// to.
type scripted struct {
	items []metav1.PartialObjectMetadata
	watch *watch.FakeWatcher
	// before, if set, is called in each list.
	before func()
}

func (s *scripted) listerWatcher() cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListFunc: func(metav1.ListOptions) (apiruntime.Object, error) {
			if s.before != nil {
				s.before()
			}
			return &metav1.PartialObjectMetadataList{Items: slices.Clone(s.items)}, nil
		},
		WatchFunc: func(metav1.ListOptions) (watch.Interface, error) {
			s.watch = watch.NewFake()
			return s.watch, nil
		},
	}, noWatchLists{})
}

// besideClientGo is an informer beside one of client-go, each with a ListerWatcher of its own that
// shows the same.
type besideClientGo struct {
	*world
	// Of these, the first is of ours.
	sources   [2]scripted
	informers [2]cache.SharedIndexInformer
	handlers  [2]told
}

// runBesideClientGo runs a test with objects that are kept encoded, and with decoded ones.
func runBesideClientGo(t *testing.T, items []metav1.PartialObjectMetadata, test func(t *testing.T, b *besideClientGo)) {
	for _, decoded := range []bool{false, true} {
		t.Run(fmt.Sprint("decoded=", decoded), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &besideClientGo{world: &world{t: t}}
				b.show(items...)
				example := func() *metav1.PartialObjectMetadata { return &metav1.PartialObjectMetadata{} }
				indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, "value": func(obj any) ([]string, error) { return []string{value(obj)}, nil }}
				b.informers = [2]cache.SharedIndexInformer{
					newInformer(b.sources[0].listerWatcher(), example(), objectcache.Options{Decoded: decoded, Indexers: indexers}),
					cache.NewSharedIndexInformer(b.sources[1].listerWatcher(), example(), 0, indexers),
				}
				for n, i := range b.informers {
					_, err := i.AddEventHandler(&b.handlers[n])
					require.NoError(t, err)
					done := make(chan struct{})
					go func() {
						defer close(done)
						i.RunWithContext(t.Context())
					}()
					t.Cleanup(func() { <-done })
				}
				synctest.Wait()
				test(t, b)
			})
		})
	}
}

// show sets what the next list shows.
func (b *besideClientGo) show(items ...metav1.PartialObjectMetadata) {
	for n := range b.sources {
		b.sources[n].items = items
	}
}

// send has both watches tell an event.
func (b *besideClientGo) send(event watch.EventType, obj metav1.PartialObjectMetadata) {
	for n := range b.sources {
		b.sources[n].watch.Action(event, obj.DeepCopy())
	}
}

// relist has both informers list again.
func (b *besideClientGo) relist() {
	for n := range b.sources {
		b.sources[n].watch.Error(&metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: http.StatusGone})
	}
	sleep(time.Minute)
}

// requireCalls requires that both handlers were called with this since the last time, in any order, and that
// both stores have the same.
func (b *besideClientGo) requireCalls(want ...string) {
	b.t.Helper()
	synctest.Wait()
	require.ElementsMatch(b.t, want, b.handlers[1].take(), "client-go")
	require.ElementsMatch(b.t, want, b.handlers[0].take())
	ours, theirs := b.informers[0].GetIndexer(), b.informers[1].GetIndexer()
	require.ElementsMatch(b.t, theirs.ListKeys(), ours.ListKeys())
	for _, key := range append(theirs.ListKeys(), "", "none/") {
		wanted, exists, err := theirs.GetByKey(key)
		require.NoError(b.t, err)
		got, found, err := ours.GetByKey(key)
		require.NoError(b.t, err)
		require.Equal(b.t, exists, found, "key %q", key)
		require.Equal(b.t, wanted, got)
	}
	for _, name := range []string{cache.NamespaceIndex, "value"} {
		require.ElementsMatch(b.t, theirs.ListIndexFuncValues(name), ours.ListIndexFuncValues(name))
		for _, value := range theirs.ListIndexFuncValues(name) {
			wanted, err := theirs.IndexKeys(name, value)
			require.NoError(b.t, err)
			got, err := ours.IndexKeys(name, value)
			require.NoError(b.t, err)
			require.ElementsMatch(b.t, wanted, got)
		}
	}
}

func metadataOf(namespace, name, value string) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"value": value}},
	}
}

// Fakes show objects without a name, with a namespace or without one.
func TestForeignObjectsWithoutANameAreKept(t *testing.T) {
	for what, namespace := range map[string]string{"namespaced": "a", "cluster-scoped": ""} {
		t.Run(what, func(t *testing.T) {
			key := cache.ObjectName{Namespace: namespace}.String()
			runBesideClientGo(t, []metav1.PartialObjectMetadata{metadataOf(namespace, "", "0"), metadataOf(namespace, "web", "0")}, func(t *testing.T, b *besideClientGo) {
				b.requireCalls("add "+key+" 0 initial", "add "+key+"web 0 initial")
				b.send(watch.Modified, metadataOf(namespace, "", "1"))
				b.requireCalls("update " + key + " 1 was 0")
				b.send(watch.Added, metadataOf("b", "", "0"))
				b.requireCalls("add b/ 0")
				b.send(watch.Deleted, metadataOf("b", "", "1"))
				b.requireCalls("delete b/ 1")
				b.send(watch.Deleted, metadataOf(namespace, "", "2"))
				b.requireCalls("delete " + key + " 2")
				b.send(watch.Added, metadataOf(namespace, "", "3"))
				b.requireCalls("add " + key + " 3")
				b.show(metadataOf(namespace, "new", "0"))
				b.relist()
				b.requireCalls("gone "+key+" 3", "gone "+key+"web 0", "add "+key+"new 0")
				b.show(metadataOf(namespace, "", "4"))
				b.relist()
				b.requireCalls("gone "+key+"new 0", "add "+key+" 4")
			})
		})
	}
}

// A nameless object is in a shard and in a selection, or it is not, as any other.
func TestForeignObjectWithoutANameIsSelected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := informer.Shard{}.Split(2)[0], informer.Shard{}.Split(2)[1]
		var nameless []metav1.PartialObjectMetadata
		for n := range 20 {
			obj := metadataOf(fmt.Sprint("ns-", n), "", fmt.Sprint(n%2))
			obj.UID = types.UID(fmt.Sprint("uid-", n))
			nameless = append(nameless, obj)
		}
		cluster := metadataOf("", "", "0")
		cluster.UID = "uid"
		nameless = append(nameless, cluster)
		keys := func(shard informer.Shard) []string {
			source := scripted{items: nameless}
			lw := informer.NewFilteredListerWatcher(source.listerWatcher(), func(o *metav1.ListOptions) { o.LabelSelector = "value=0" })
			i := newInformer(lw, &metav1.PartialObjectMetadata{}, objectcache.Options{Shard: shard})
			defer (&world{t: t}).run(i)()
			return i.GetStore().ListKeys()
		}
		all := keys(informer.Shard{})
		require.Len(t, all, 11)
		require.Contains(t, all, "")
		require.NotEmpty(t, keys(one))
		require.ElementsMatch(t, all, append(keys(one), keys(two)...))
	})
}

// Fake watches tell the deletion of what they have never shown.
func TestForeignDeletionOfAnUnseenObjectIsTold(t *testing.T) {
	runBesideClientGo(t, []metav1.PartialObjectMetadata{metadataOf("a", "web", "0")}, func(t *testing.T, b *besideClientGo) {
		b.requireCalls("add a/web 0 initial")
		for _, version := range []string{"", "7", "7", "opaque", "6"} {
			for _, name := range []string{"unseen", ""} {
				obj := metadataOf("a", name, "last")
				obj.ResourceVersion = version
				b.send(watch.Deleted, obj)
				b.requireCalls("delete a/" + name + " last")
			}
		}
		b.send(watch.Deleted, metadataOf("a", "web", "1"))
		b.send(watch.Deleted, metadataOf("a", "web", "2"))
		b.requireCalls("delete a/web 1", "delete a/web 2")
	})
}

// An event of an object that is not selected ends the object here, and is nothing to tell where it was
// never seen.
func TestUnselectedObjectIsNoDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := scripted{items: []metav1.PartialObjectMetadata{metadataOf("a", "web", "0")}}
		lw := informer.NewFilteredListerWatcher(source.listerWatcher(), func(o *metav1.ListOptions) { o.LabelSelector = "value=0" })
		i := newInformer(lw, &metav1.PartialObjectMetadata{}, objectcache.Options{})
		h, _ := handle(t, i)
		defer (&world{t: t}).run(i)()
		for _, event := range []watch.EventType{watch.Added, watch.Modified} {
			source.watch.Action(event, ptr.To(metadataOf("a", "other", "1")))
		}
		source.watch.Modify(ptr.To(metadataOf("a", "web", "1")))
		source.watch.Modify(ptr.To(metadataOf("a", "web", "2")))
		synctest.Wait()
		require.Equal(t, []string{"add a/web 0 initial", "delete a/web 1"}, h.take())
	})
}

// A handler of changes gets the object that the watch has told.
func TestForeignDeletionOfAnUnseenObjectIsAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := watch.NewFake()
		lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListFunc:  func(metav1.ListOptions) (apiruntime.Object, error) { return &corev1.PodList{}, nil },
			WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return events, nil },
		}, noWatchLists{})
		i := newInformer(lw, &corev1.Pod{}, objectcache.Options{})
		var changes []objectcache.Change
		_, err := i.AddChangeHandler(func(c objectcache.Change) { changes = append(changes, c) }, cache.HandlerOptions{})
		require.NoError(t, err)
		defer (&world{t: t}).run(i)()
		events.Delete(podOf("a", "gone", "u", "7"))
		synctest.Wait()
		require.Len(t, changes, 1)
		require.Equal(t, informer.Deleted, changes[0].Type)
		require.Equal(t, "a/gone", changes[0].Key)
		require.False(t, changes[0].FinalStateUnknown)
		require.True(t, changes[0].New.IsZero())
		last, err := changes[0].Old.Decode()
		require.NoError(t, err)
		require.Equal(t, podOf("a", "gone", "u", "7"), last)
	})
}

// A snapshot has objects without a name, and restores them.
func TestSnapshotHasForeignObjectsWithoutAName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		saved := informer.FileCheckpoint(filepath.Join(t.TempDir(), "pods"))
		source := scripted{items: []metav1.PartialObjectMetadata{metadataOf("", "", "0"), metadataOf("a", "", "0"), metadataOf("a", "web", "0")}}
		for n := range source.items {
			source.items[n].ResourceVersion, source.items[n].UID = "7", types.UID(fmt.Sprint(n))
		}
		start := func() (h *told, stop func()) {
			i := newInformer(source.listerWatcher(), &metav1.PartialObjectMetadata{}, objectcache.Options{
				Snapshot: saved, SnapshotSecrets: true,
				ErrorHandler: func(_ *informer.Reflector, err error) { require.NoError(t, err) },
			})
			h, _ = handle(t, i)
			stop = (&world{t: t}).run(i)
			require.ElementsMatch(t, []string{"", "a/", "a/web"}, i.GetStore().ListKeys())
			return h, stop
		}
		_, stop := start()
		stop()
		source.items = nil // only the snapshot has them
		list := make(chan struct{})
		source.before = func() { <-list }
		h, stop := start()
		require.ElementsMatch(t, []string{"add  0 initial", "add a/ 0 initial", "add a/web 0 initial"}, h.take())
		close(list)
		synctest.Wait()
		require.ElementsMatch(t, []string{"gone  0", "gone a/ 0", "gone a/web 0"}, h.take())
		stop()
	})
}
