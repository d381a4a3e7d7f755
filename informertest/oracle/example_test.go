package oracle_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest/oracle"
)

// memoryLister is a ListerWatcher over objects in memory. It tells an Oracle of every
// write, before others can know.
type memoryLister struct {
	oracle *oracle.Oracle

	mu       sync.Mutex
	version  int
	objects  map[string]corev1.ConfigMap
	events   []watch.Event // one for each version
	watchers *watch.Broadcaster
}

func newMemoryLister(o *oracle.Oracle) *memoryLister {
	return &memoryLister{oracle: o, objects: map[string]corev1.ConfigMap{}, watchers: watch.NewBroadcaster(100, watch.WaitIfChannelFull)}
}

func (s *memoryLister) put(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	obj, exists := s.objects[name]
	write, event := oracle.Updated, watch.Modified
	if !exists {
		obj.Namespace, obj.Name, obj.UID = "default", name, types.UID(fmt.Sprint("uid-", s.version))
		write, event = oracle.Created, watch.Added
	}
	s.changed(write, event, obj)
}

func (s *memoryLister) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.changed(oracle.Deleted, watch.Deleted, s.objects[name])
}

func (s *memoryLister) changed(write oracle.WriteType, event watch.EventType, obj corev1.ConfigMap) {
	obj.ResourceVersion = strconv.Itoa(s.version)
	if write == oracle.Deleted {
		delete(s.objects, obj.Name)
	} else {
		s.objects[obj.Name] = obj
	}
	s.oracle.Wrote(oracle.Write{Type: write, Key: "default/" + obj.Name, UID: obj.UID, ResourceVersion: obj.ResourceVersion})
	s.events = append(s.events, watch.Event{Type: event, Object: &obj})
	_ = s.watchers.Action(event, &obj) // fails only after Shutdown
}

// List is of cache.ListerWatcher.
func (s *memoryLister) List(metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)}}
	for _, obj := range s.objects {
		list.Items = append(list.Items, obj)
	}
	return list, nil
}

// Watch is of cache.ListerWatcher. It begins with what came after the version of options.
func (s *memoryLister) Watch(options metav1.ListOptions) (watch.Interface, error) {
	after, err := strconv.Atoi(options.ResourceVersion)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watchers.WatchWithPrefix(s.events[after:])
}

// IsWatchListSemanticsUnSupported says to client-go that it has to list.
func (s *memoryLister) IsWatchListSemanticsUnSupported() bool { return true }

// An informer of client-go, over a ListerWatcher of one's own, is told of everything.
func Example() {
	o := oracle.New(oracle.Options{UpdatesReplace: true})
	store := newMemoryLister(o)
	defer store.watchers.Shutdown()
	store.put("settings")
	store.put("old")

	told := make(chan string, 10)
	handler := o.Handler(informer.ResourceEventHandlerFuncs{
		AddFunc:    func(obj interface{}) { told <- "add " + obj.(*corev1.ConfigMap).Name },
		DeleteFunc: func(obj interface{}) { told <- "delete " + obj.(*corev1.ConfigMap).Name },
	})
	followed := cache.NewSharedIndexInformer(store, &corev1.ConfigMap{}, 0, cache.Indexers{})
	registration, err := followed.AddEventHandler(handler)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var running sync.WaitGroup
	o.Started(oracle.Run{})
	running.Go(func() { followed.RunWithContext(ctx) })
	cache.WaitForCacheSync(ctx.Done(), registration.HasSynced)
	o.Synced()
	<-told
	<-told

	store.put("settings")
	store.remove("old")
	store.put("new")
	fmt.Println(<-told)
	fmt.Println(<-told)
	stop()
	running.Wait() // the calls have returned

	stored := map[string]string{}
	for _, obj := range followed.GetStore().List() {
		stored["default/"+obj.(*corev1.ConfigMap).Name] = obj.(*corev1.ConfigMap).ResourceVersion
	}
	o.Settled(stored)
	o.Stopped(false)
	fmt.Println(o.Check())
	// Output:
	// delete old
	// add new
	// <nil>
}

// A deletion that never happened is told.
func ExampleNew() {
	o := oracle.New(oracle.Options{Now: func() time.Time { return time.Unix(0, 0).UTC() }})
	o.Wrote(oracle.Write{Type: oracle.Created, Key: "default/web", UID: "u", ResourceVersion: "5"})
	o.Started(oracle.Run{})
	tell := func(change informer.EventType) {
		done := o.Told(oracle.Event{Type: change, Key: "default/web", UID: "u", ResourceVersion: "5", IsInInitialList: change == informer.Added})
		done(nil) // the handler has returned
	}
	tell(informer.Added)
	fmt.Println(o.Check())
	tell(informer.Deleted)
	var wrong *oracle.Violation
	fmt.Println(errors.As(o.Check(), &wrong))
	fmt.Println(wrong.Guarantee, wrong.Key)
	fmt.Println(wrong.Reason)
	// Output:
	// <nil>
	// true
	// no-false-delete default/web
	// Deleted default/web, version 5, UID u, and it has been there all the time since version 5
}

// What an Oracle judges.
func ExampleValidators() {
	for _, v := range oracle.Validators() {
		fmt.Println(v.Name)
	}
	// Output:
	// ordered
	// unique
	// reliable
	// no-false-delete
	// authentic
	// resumable
	// bookmarkable
	// initial-list
	// synced
	// memory
	// equal
	// stored
	// persistent
	// paced
	// shard
	// redelivered
}
