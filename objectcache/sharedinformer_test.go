/*
Copyright 2017 The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package objectcache_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/klog/v2/textlogger"

	"github.com/rvinformer/informer/objectcache"
)

// The tests of this file are those of client-go's shared informer (v0.37.2,
// tools/cache/shared_informer_test.go), with this package's informer in the place of client-go's,
// with helpers for the steps that many of them share, and in virtual time where they wait.
// What they read of its insides is in export_test.go.

func podNamed(name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func podWithVersion(name, resourceVersion string) *v1.Pod {
	pod := podNamed(name)
	pod.UID, pod.ResourceVersion = types.UID(name), resourceVersion
	return pod
}

// newFakeControllerSource simulates an apiserver object endpoint.
func newFakeControllerSource(t testing.TB, pods ...*v1.Pod) *fcache.FakeControllerSource {
	source := fcache.NewFakeControllerSource()
	t.Cleanup(source.Shutdown)
	for _, pod := range pods {
		source.Add(pod)
	}
	return source
}

func newPodInformer(lw cache.ListerWatcher, resync time.Duration) *objectcache.Informer {
	if keepDecoded {
		return objectcache.NewSharedIndexInformerWithOptions(lw, &v1.Pod{}, objectcache.Options{ResyncPeriod: resync, Decoded: true})
	}
	return objectcache.NewSharedIndexInformer(lw, &v1.Pod{}, resync, cache.Indexers{}).(*objectcache.Informer)
}

// run runs an informer until stop is called, which waits for its end and may be called again.
func run(informer *objectcache.Informer) (stop func()) {
	stopped := make(chan struct{})
	var wg wait.Group
	wg.StartWithChannel(stopped, informer.Run)
	return sync.OnceFunc(func() {
		close(stopped)
		wg.Wait()
	})
}

func addHandler(t testing.TB, informer *objectcache.Informer, handler cache.ResourceEventHandler) cache.ResourceEventHandlerRegistration {
	t.Helper()
	handle, err := informer.AddEventHandler(handler)
	require.NoError(t, err)
	return handle
}

// requireHandlers checks how many handlers an informer has, and that these are among them.
func requireHandlers(t testing.TB, informer *objectcache.Informer, n int, registered ...cache.ResourceEventHandlerRegistration) {
	t.Helper()
	require.Equal(t, n, objectcache.Handlers(informer))
	for i, handle := range registered {
		require.True(t, objectcache.IsRegistered(informer, handle), "handle %d", i)
	}
}

// shutDown is the ShutDownEventHandler of client-go v0.37.
func shutDown(informer cache.SharedInformer, handle cache.ResourceEventHandlerRegistration) error {
	if err := informer.RemoveEventHandler(handle); err != nil {
		return err
	}
	<-handle.(interface{ ShutdownChan() <-chan struct{} }).ShutdownChan()
	return nil
}

type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

type testListener struct {
	lock              sync.RWMutex
	resyncPeriod      time.Duration
	expectedItemNames sets.Set[string]
	receivedItemNames []string
	name              string
}

func newTestListener(name string, resyncPeriod time.Duration, expected ...string) *testListener {
	return &testListener{resyncPeriod: resyncPeriod, expectedItemNames: sets.New(expected...), name: name}
}

// addTo adds l to an informer, with its resync period.
func (l *testListener) addTo(t testing.TB, informer *objectcache.Informer) cache.ResourceEventHandlerRegistration {
	t.Helper()
	handle, err := informer.AddEventHandlerWithResyncPeriod(l, l.resyncPeriod)
	require.NoError(t, err)
	return handle
}

func (l *testListener) OnAdd(obj interface{}, isInInitialList bool) { l.handle(obj) }

func (l *testListener) OnUpdate(old, new interface{}) { l.handle(new) }

func (l *testListener) OnDelete(obj interface{}) {}

func (l *testListener) handle(obj interface{}) {
	l.lock.Lock()
	defer l.lock.Unlock()
	objectMeta, _ := meta.Accessor(obj)
	l.receivedItemNames = append(l.receivedItemNames, objectMeta.GetName())
}

// requireOK waits in a bubble until l has what it expects, and a second more for any unexpected
// stragglers to come in.
func (l *testListener) requireOK(t testing.TB) {
	t.Helper()
	_ = wait.PollImmediate(100*time.Millisecond, time.Minute, func() (bool, error) {
		return l.satisfiedExpectations(), nil
	})
	time.Sleep(1 * time.Second)
	l.requireSatisfied(t)
}

func (l *testListener) requireSatisfied(t testing.TB) {
	t.Helper()
	l.lock.RLock()
	defer l.lock.RUnlock()
	require.Equal(t, l.expectedItemNames, sets.New(l.receivedItemNames...), l.name)
}

func (l *testListener) satisfiedExpectations() bool {
	l.lock.RLock()
	defer l.lock.RUnlock()

	return sets.New(l.receivedItemNames...).Equal(l.expectedItemNames)
}

func (l *testListener) reset() {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.receivedItemNames = nil
}

func TestListenerResyncPeriods(t *testing.T) { synctest.Test(t, testListenerResyncPeriods) }

func testListenerResyncPeriods(t *testing.T) {
	source := newFakeControllerSource(t, podNamed("pod1"), podNamed("pod2"))

	// create the shared informer and resync every 1s
	informer := newPodInformer(source, 1*time.Second)

	never := newTestListener("never", 0, "pod1", "pod2")
	every2s := newTestListener("every 2s", 2*time.Second, "pod1", "pod2")
	every3s := newTestListener("every 3s", 3*time.Second, "pod1", "pod2")
	listeners := []*testListener{never, every2s, every3s}
	for _, listener := range listeners {
		listener.addTo(t, informer)
	}
	defer run(informer)()

	// Ensure that those listeners, and no others, got both pods in the time that has passed.
	//
	// synctest.Wait doesn't detect deadlocks involving mutexes: they are considered not durably
	// blocking, so in case of such a deadlock it'll just keep waiting until the entire unit test
	// times out. The backtraces then show the deadlock.
	requireOnly := func(resynced ...*testListener) {
		t.Helper()
		synctest.Wait()
		for _, listener := range listeners {
			if slices.Contains(resynced, listener) {
				listener.requireSatisfied(t)
			} else {
				require.Empty(t, listener.receivedItemNames, "%s: should not have resynced", listener.name)
			}
			listener.reset()
		}
	}

	// All got the initial objects after the initial processing, at the initial start time.
	requireOnly(never, every2s, every3s)
	time.Sleep(2 * time.Second)
	requireOnly(every2s)
	time.Sleep(1 * time.Second)
	requireOnly(every3s)
}

func TestResyncCheckPeriod(t *testing.T) {
	// create the shared informer and resync every 12 hours
	informer := newPodInformer(newFakeControllerSource(t), 12*time.Hour)

	var handles []cache.ResourceEventHandlerRegistration
	var periods []time.Duration
	for _, step := range []struct{ resync, check time.Duration }{
		{0, 12 * time.Hour}, // never resync
		{1 * time.Minute, 1 * time.Minute},
		{55 * time.Second, 55 * time.Second},
		{5 * time.Second, 5 * time.Second},
	} {
		handles = append(handles, newTestListener("listener", step.resync).addTo(t, informer))
		periods = append(periods, step.resync)
		require.Equal(t, step.check, objectcache.ResyncCheckPeriod(informer))
		for i, handle := range handles {
			require.Equal(t, periods[i], objectcache.ResyncPeriod(handle), "listener %d", i)
		}
	}
}

// verify that https://github.com/kubernetes/kubernetes/issues/59822 is fixed
func TestSharedInformerInitializationRace(t *testing.T) {
	informer := newPodInformer(newFakeControllerSource(t), 1*time.Second)
	listener := newTestListener("raceListener", 0)

	go informer.AddEventHandlerWithResyncPeriod(listener, listener.resyncPeriod)
	defer run(informer)()
}

// TestSharedInformerWatchDisruption simulates a watch that was closed
// with updates to the store during that time. We ensure that handlers with
// resync and no resync see the expected state.
func TestSharedInformerWatchDisruption(t *testing.T) {
	synctest.Test(t, testSharedInformerWatchDisruption)
}

func testSharedInformerWatchDisruption(t *testing.T) {
	source := newFakeControllerSource(t, podWithVersion("pod1", "1"), podWithVersion("pod2", "2"))

	// create the shared informer and resync every 1s
	informer := newPodInformer(source, 1*time.Second)

	listenerNoResync := newTestListener("listenerNoResync", 0, "pod1", "pod2")
	listenerResync := newTestListener("listenerResync", 1*time.Second, "pod1", "pod2")
	listeners := []*testListener{listenerNoResync, listenerResync}
	for _, listener := range listeners {
		listener.addTo(t, informer)
	}
	defer run(informer)()

	for _, listener := range listeners {
		listener.requireOK(t)
	}

	// Add pod3, bump pod2 but don't broadcast it, so that the change will be seen only on relist
	source.AddDropWatch(podWithVersion("pod3", "3"))
	source.ModifyDropWatch(podWithVersion("pod2", "4"))

	// Ensure that nobody saw any changes
	for _, listener := range listeners {
		listener.requireOK(t)
	}

	for _, listener := range listeners {
		listener.reset()
	}

	listenerNoResync.expectedItemNames = sets.New("pod2", "pod3")
	listenerResync.expectedItemNames = sets.New("pod1", "pod2", "pod3")

	// Simulate a connection loss (or even just a too-old-watch)
	source.ResetWatch()

	// The pause before the second list of a young watch.
	time.Sleep(4 * time.Second)

	for _, listener := range listeners {
		listener.requireOK(t)
	}
}

func TestSharedInformerErrorHandling(t *testing.T) {
	source := newFakeControllerSource(t, podNamed("pod1"))
	source.ListError = errors.New("Access Denied")

	informer := newPodInformer(source, 1*time.Second)

	errCh := make(chan error, 1)
	_ = informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
		select {
		case errCh <- err:
		default: // the test reads the first error only, and the handler must return
		}
	})
	defer run(informer)()

	select {
	case err := <-errCh:
		require.ErrorContains(t, err, "Access Denied")
	case <-time.After(time.Minute):
		t.Errorf("Timeout waiting for error handler call")
	}
}

// TestSharedInformerStartRace is a regression test to ensure there is no race between
// Run and SetWatchErrorHandler, and Run and SetTransform.
func TestSharedInformerStartRace(t *testing.T) {
	informer := newPodInformer(newFakeControllerSource(t), 1*time.Second)
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			// Set dummy functions, just to test for race
			informer.SetTransform(func(i interface{}) (interface{}, error) {
				return i, nil
			})
			informer.SetWatchErrorHandler(func(r *cache.Reflector, err error) {
			})
		}
	}()

	var wg wait.Group
	wg.StartWithChannel(stop, informer.Run)
	defer func() {
		close(stop)
		wg.Wait()
	}()
}

func TestSharedInformerTransformer(t *testing.T) { synctest.Test(t, testSharedInformerTransformer) }

func testSharedInformerTransformer(t *testing.T) {
	source := newFakeControllerSource(t, podWithVersion("pod1", "1"), podWithVersion("pod2", "2"))

	informer := newPodInformer(source, 1*time.Second)
	informer.SetTransform(func(obj interface{}) (interface{}, error) {
		if pod, ok := obj.(*v1.Pod); ok {
			name := pod.GetName()

			if upper := strings.ToUpper(name); upper != name {
				pod.SetName(upper)
				return pod, nil
			}
		}
		return obj, nil
	})

	listenerTransformer := newTestListener("listenerTransformer", 0, "POD1", "POD2")
	addHandler(t, informer, listenerTransformer)
	defer run(informer)()

	listenerTransformer.requireOK(t)
}

func TestSharedInformerRemoveHandler(t *testing.T) {
	informer := newPodInformer(newFakeControllerSource(t, podNamed("pod1")), 1*time.Second)

	handle1 := addHandler(t, informer, &cache.ResourceEventHandlerFuncs{})
	handle2 := addHandler(t, informer, &cache.ResourceEventHandlerFuncs{})
	requireHandlers(t, informer, 2)

	require.NoError(t, informer.RemoveEventHandler(handle2))
	requireHandlers(t, informer, 1)

	require.NoError(t, informer.RemoveEventHandler(handle1))
	requireHandlers(t, informer, 0)
}

func TestSharedInformerRemoveForeignHandler(t *testing.T) {
	informer := newPodInformer(newFakeControllerSource(t, podNamed("pod1")), 1*time.Second)
	informer2 := newPodInformer(newFakeControllerSource(t, podNamed("pod1")), 1*time.Second)

	handle1 := addHandler(t, informer, &cache.ResourceEventHandlerFuncs{})
	handle2 := addHandler(t, informer, &cache.ResourceEventHandlerFuncs{})
	requireHandlers(t, informer, 2)
	requireHandlers(t, informer2, 0)

	// remove handle at foreign informer
	require.False(t, objectcache.IsRegistered(informer2, handle1))
	require.False(t, objectcache.IsRegistered(informer2, handle2))
	require.NoError(t, informer2.RemoveEventHandler(handle1))
	requireHandlers(t, informer, 2, handle1, handle2)
	requireHandlers(t, informer2, 0)

	require.NoError(t, informer.RemoveEventHandler(handle2))
	requireHandlers(t, informer, 1)

	require.NoError(t, informer.RemoveEventHandler(handle1))
	requireHandlers(t, informer, 0)
}

func TestSharedInformerMultipleRegistration(t *testing.T) {
	informer := newPodInformer(newFakeControllerSource(t, podNamed("pod1")), 1*time.Second)

	handler1 := &cache.ResourceEventHandlerFuncs{}
	reg1 := addHandler(t, informer, handler1)
	requireHandlers(t, informer, 1, reg1)
	reg2 := addHandler(t, informer, handler1)
	requireHandlers(t, informer, 2, reg1, reg2)

	require.NoError(t, informer.RemoveEventHandler(reg1))
	require.False(t, objectcache.IsRegistered(informer, reg1))
	requireHandlers(t, informer, 1, reg2)

	require.NoError(t, informer.RemoveEventHandler(reg2))
	require.False(t, objectcache.IsRegistered(informer, reg2))
	requireHandlers(t, informer, 0)
}

func TestRemovingRemovedSharedInformer(t *testing.T) {
	informer := newPodInformer(newFakeControllerSource(t, podNamed("pod1")), 1*time.Second)
	reg := addHandler(t, informer, &cache.ResourceEventHandlerFuncs{})
	for range 2 {
		require.NoError(t, informer.RemoveEventHandler(reg))
		require.False(t, objectcache.IsRegistered(informer, reg))
	}
}

// Shows that many concurrent goroutines can be manipulating shared informer
// listeners without tripping it up. There are not really many assertions in this
// test. Meant to be run with -race to find race conditions
func TestSharedInformerHandlerAbuse(t *testing.T) {
	source := newFakeControllerSource(t)
	informer := newPodInformer(source, 1*time.Second)

	ctx, cancel := context.WithCancel(context.Background())
	informerCtx, informerCancel := context.WithCancel(context.Background())
	var informerWg wait.Group
	informerWg.StartWithChannel(informerCtx.Done(), informer.Run)
	defer func() {
		cancel()
		informerWg.Wait()
	}()

	worker := func() {
		// Keep adding and removing handler
		// Make sure no duplicate events?
		funcs := cache.ResourceEventHandlerDetailedFuncs{
			AddFunc:    func(obj interface{}, isInInitialList bool) {},
			UpdateFunc: func(oldObj, newObj interface{}) {},
			DeleteFunc: func(obj interface{}) {},
		}
		handles := []cache.ResourceEventHandlerRegistration{}

		for {
			select {
			case <-ctx.Done():
				return
			default:
				switch rand.Intn(2) {
				case 0:
					// Register handler again
					reg, err := informer.AddEventHandlerWithResyncPeriod(funcs, 1*time.Second)
					if err != nil {
						if strings.Contains(err.Error(), "stopped already") {
							// test is over
							return
						}
						t.Errorf("failed to add handler: %v", err)
						return
					}
					handles = append(handles, reg)
				case 1:
					//  Remove a random handler
					if len(handles) == 0 {
						continue
					}

					idx := rand.Intn(len(handles))
					err := informer.RemoveEventHandler(handles[idx])
					if err != nil {
						if strings.Contains(err.Error(), "stopped already") {
							// test is over
							return
						}
						t.Errorf("failed to remove handler: %v", err)
						return
					}
					handles = append(handles[:idx], handles[idx+1:]...)
				}
			}
		}
	}

	wg := sync.WaitGroup{}
	for i := 0; i < 100; i++ {
		wg.Go(worker)
	}

	objs := []*v1.Pod{}

	// While workers run, randomly create events for the informer
	for i := 0; i < 2000; i++ {
		if len(objs) == 0 {
			// Make sure there is always an object
			obj := podNamed("pod" + strconv.Itoa(i))
			objs = append(objs, obj)

			// deep copy before adding since the Modify function mutates the obj
			source.Add(obj.DeepCopy())
		}

		switch rand.Intn(3) {
		case 0:
			// Add Object
			obj := podNamed("pod" + strconv.Itoa(i))
			objs = append(objs, obj)
			source.Add(obj.DeepCopy())
		case 1:
			// Update Object
			idx := rand.Intn(len(objs))
			source.Modify(objs[idx].DeepCopy())

		case 2:
			// Remove Object
			idx := rand.Intn(len(objs))
			source.Delete(objs[idx].DeepCopy())
			objs = append(objs[:idx], objs[idx+1:]...)
		}
	}

	// sotp informer which stops workers. stopping informer first to exercise
	// contention for informer while it is closing
	informerCancel()

	// wait for workers to finish since they may throw errors
	wg.Wait()
}

func TestStateSharedInformer(t *testing.T) { synctest.Test(t, testStateSharedInformer) }

func testStateSharedInformer(t *testing.T) {
	informer := newPodInformer(newFakeControllerSource(t, podNamed("pod1")), 1*time.Second)
	listener := newTestListener("listener", 0, "pod1")
	listener.addTo(t, informer)

	require.False(t, objectcache.IsStarted(informer), "after creation")
	require.False(t, informer.IsStopped(), "after creation")

	stop := run(informer)
	defer stop()
	listener.requireOK(t)
	require.True(t, objectcache.IsStarted(informer), "while handling events")
	require.False(t, informer.IsStopped(), "before the stop channel is closed")

	stop()
	require.True(t, informer.IsStopped())
	require.True(t, objectcache.IsStarted(informer), "after it has been started and stopped")
}

func TestAddOnStoppedSharedInformer(t *testing.T) {
	informer := newPodInformer(newFakeControllerSource(t, podNamed("pod1")), 1*time.Second)
	listener := newTestListener("listener", 0, "pod1")
	run(informer)()
	require.True(t, informer.IsStopped())

	_, err := informer.AddEventHandlerWithResyncPeriod(listener, listener.resyncPeriod)
	require.Error(t, err)
	require.True(t, strings.HasSuffix(err.Error(), "was not added to shared informer because it has stopped already"), err)
}

func TestRemoveOnStoppedSharedInformer(t *testing.T) {
	informer := newPodInformer(newFakeControllerSource(t, podNamed("pod1")), 1*time.Second)
	handle := newTestListener("listener", 0, "pod1").addTo(t, informer)
	run(informer)()
	require.True(t, informer.IsStopped())
	require.NoError(t, informer.RemoveEventHandler(handle))
}

func TestRemoveWhileActive(t *testing.T) { synctest.Test(t, testRemoveWhileActive) }

func testRemoveWhileActive(t *testing.T) {
	source := newFakeControllerSource(t)
	informer := newPodInformer(source, 0)

	listener := newTestListener("listener", 0, "pod1")
	handle := addHandler(t, informer, listener)
	defer run(informer)()

	source.Add(podNamed("pod1"))
	listener.requireOK(t)

	informer.RemoveEventHandler(handle)
	require.False(t, objectcache.IsRegistered(informer, handle))

	source.Add(podNamed("pod2"))
	listener.requireOK(t)
}

func TestAddWhileActive(t *testing.T) { synctest.Test(t, testAddWhileActive) }

func testAddWhileActive(t *testing.T) {
	source := newFakeControllerSource(t)
	informer := newPodInformer(source, 0)
	listener1 := newTestListener("originalListener", 0, "pod1")
	listener2 := newTestListener("listener2", 0, "pod1", "pod2")
	handle1 := addHandler(t, informer, listener1)
	require.False(t, handle1.HasSynced(), "Synced before Run??")
	defer run(informer)()

	source.Add(podNamed("pod1"))
	listener1.requireOK(t)

	select {
	case <-handle1.HasSyncedChecker().Done():
		require.True(t, handle1.HasSynced(), "Not synced after channel said we are synced??")
	case <-time.After(time.Minute):
		t.Error("Not synced a minute after Run??")
	}

	listener2.lock.Lock() // ensure we observe it before it has synced
	handle2 := addHandler(t, informer, listener2)
	require.False(t, handle2.HasSynced(), "Synced before processing anything?")
	listener2.lock.Unlock() // permit it to proceed and sync

	source.Add(podNamed("pod2"))
	listener2.requireOK(t)
	require.True(t, handle2.HasSynced(), "Not synced even after processing?")
	requireHandlers(t, informer, 2, handle1, handle2)

	listener1.expectedItemNames = listener2.expectedItemNames
	listener1.requireOK(t)
}

// TestShutdown depends on goleak.VerifyTestMain in main_test.go to verify that
// all goroutines really have stopped in the different scenarios.
func TestShutdown(t *testing.T) {
	handler := cache.ResourceEventHandlerFuncs{AddFunc: func(_ any) {}}
	t.Run("no-context", func(t *testing.T) {
		informer := newPodInformer(newFakeControllerSource(t), 1*time.Second)
		handle := addHandler(t, informer, handler)
		defer func() {
			assert.NoError(t, informer.RemoveEventHandler(handle))
		}()
		defer run(informer)()

		require.Eventually(t, informer.HasSynced, time.Minute, time.Millisecond, "informer has synced")
	})

	t.Run("no-context-later", func(t *testing.T) {
		informer := newPodInformer(newFakeControllerSource(t), 1*time.Second)
		defer run(informer)()

		require.Eventually(t, informer.HasSynced, time.Minute, time.Millisecond, "informer has synced")
		assert.NoError(t, informer.RemoveEventHandler(addHandler(t, informer, handler)))
	})

	t.Run("no-run", func(t *testing.T) {
		// Neither informer nor handler have any goroutines running
		// and it doesn't matter that nothing gets stopped or removed.
		addHandler(t, newPodInformer(newFakeControllerSource(t), 1*time.Second), handler)
	})
}

func TestEventPanics(t *testing.T) {
	// Initialized by init.
	var (
		buffer lockedBuffer
		logger klog.Logger
		source *fcache.FakeControllerSource
	)

	init := func(t *testing.T) {
		// Restoring state is very sensitive to ordering. All goroutines spawned
		// by a test must have completed and there has to be a check that they
		// have completed that is visible to the race detector. This also
		// applies to all other tests!
		t.Cleanup(klog.CaptureState().Restore) //nolint:logcheck // CaptureState shouldn't be used in packages with contextual logging, but here it is okay.
		buffer.buffer.Reset()
		logger = textlogger.NewLogger(textlogger.NewConfig(
			textlogger.Output(&buffer),
		))
		oldReallyCrash := utilruntime.ReallyCrash
		utilruntime.ReallyCrash = false
		t.Cleanup(func() { utilruntime.ReallyCrash = oldReallyCrash })

		source = newFakeControllerSource(t, podNamed("pod1"))
	}

	newHandler := func(ctx context.Context) cache.ResourceEventHandlerFuncs {
		logger := klog.FromContext(ctx)
		return cache.ResourceEventHandlerFuncs{
			AddFunc: func(obj any) {
				logger.Info("Add func will panic now", "pod", klog.KObj(obj.(*v1.Pod)))
				panic("fake panic")
			},
		}
	}
	_, _, panicLine, _ := runtime.Caller(0)
	panicLine -= 4
	expectedLog := func(name string) string {
		if name == "" {
			return fmt.Sprintf(`sharedinformer_test.go:%d] "Observed a panic" panic="fake panic"`, panicLine)
		}
		return fmt.Sprintf(`sharedinformer_test.go:%d] "Observed a panic" logger=%q panic="fake panic"`, panicLine, name)
	}
	handler := newHandler(context.Background())

	t.Run("simple", func(t *testing.T) {
		init(t)
		klog.SetLogger(logger)
		informer := newPodInformer(source, 1*time.Second)
		handle := addHandler(t, informer, handler)
		stop := run(informer)
		defer func() {
			stop()
			assert.True(t, informer.IsStopped())
			assert.NoError(t, informer.RemoveEventHandler(handle))
		}()
		require.Eventually(t, informer.HasSynced, time.Minute, time.Millisecond, "informer has synced")

		// This times out (https://github.com/kubernetes/kubernetes/issues/129024) because the
		// handler never syncs when the callback panics:
		//    require.Eventually(t, handle.HasSynced, time.Minute, time.Millisecond, "handler has synced")
		//
		// Wait for a non-empty buffer instead. This implies that we have to make
		// the buffer thread-safe, which wouldn't be necessary otherwise.
		assert.EventuallyWithT(t, func(t *assert.CollectT) {
			assert.Contains(t, buffer.String(), expectedLog(""))
		}, time.Minute, time.Millisecond, "handler has panicked")
	})

	t.Run("many", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			init(t)
			// One pod was already created in init, add some more.
			numPods := 5
			for i := 1; i < numPods; i++ {
				source.Add(podNamed(fmt.Sprintf("pod%d", i+1)))
			}
			_, ctx := ktesting.NewTestContext(t)
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()

			informer := newPodInformer(source, 1*time.Second)
			names := []string{"fake-event-handler-1", "fake-event-handler-2"}
			for _, name := range names {
				logger := klog.LoggerWithName(logger, name)
				handle, err := informer.AddEventHandlerWithOptions(newHandler(klog.NewContext(ctx, logger)), cache.HandlerOptions{Logger: &logger})
				require.NoError(t, err)
				defer func() {
					assert.NoError(t, informer.RemoveEventHandler(handle))
				}()
			}

			var wg wait.Group
			wg.StartWithContext(klog.NewContext(ctx, klog.LoggerWithName(logger, "informer")), informer.RunWithContext)
			defer func() {
				cancel()
				wg.Wait()
				assert.True(t, informer.IsStopped())
			}()
			synctest.Wait()
			require.True(t, informer.HasSynced())

			// Both handlers sleep for one second after each panic.
			for panics := 1; panics <= numPods; panics++ {
				synctest.Wait()
				output := buffer.String()
				for _, name := range names {
					expected := expectedLog(name)
					require.Equal(t, panics, strings.Count(output, expected), "Log output should have the right number of panics for %q (search string: %q), got instead:\n%s", name, expected, output)
				}
				time.Sleep(time.Second)
			}
		})
	})
}

// blockingHandler is a handler that waits until block is closed, and then sends its pod to
// scheduledPods.
type blockingHandler struct {
	cache.ResourceEventHandlerFuncs
	scheduledPods            chan *v1.Pod
	block, started, finished chan struct{}
	panicVal                 any
}

func newBlockingHandler() *blockingHandler {
	h := &blockingHandler{
		scheduledPods: make(chan *v1.Pod, 1),
		block:         make(chan struct{}),
		started:       make(chan struct{}),
		finished:      make(chan struct{}),
	}
	h.AddFunc = func(obj any) {
		close(h.started)
		<-h.block
		defer close(h.finished)
		defer func() { h.panicVal = recover() }()
		h.scheduledPods <- obj.(*v1.Pod)
	}
	return h
}

func TestRemoveEventHandler_AsynchronousPanic(t *testing.T) {
	source := newFakeControllerSource(t)
	informer := newPodInformer(source, 0)
	defer run(informer)()
	handler := newBlockingHandler()
	handle := addHandler(t, informer, handler)

	// Trigger the event
	source.Add(podNamed("pod1"))

	// Wait for handler to start and block
	<-handler.started

	// Now remove the handler. This should return immediately.
	require.NoError(t, informer.RemoveEventHandler(handle))

	// Close the channel that the handler writes to
	close(handler.scheduledPods)

	// Unblock the handler
	close(handler.block)

	// Wait for handler to finish
	<-handler.finished

	require.NotNil(t, handler.panicVal, "Expected handler to panic (send on closed channel), but it did not")
}

func TestRemoveEventHandler_SynchronousShutdown(t *testing.T) {
	source := newFakeControllerSource(t)
	informer := newPodInformer(source, 0)
	defer run(informer)()
	handler := newBlockingHandler()
	handle := addHandler(t, informer, handler)

	// Trigger the event
	source.Add(podNamed("pod1"))

	// Wait for handler to start and block
	<-handler.started

	// Unblock the handler so it can run and exit
	close(handler.block)

	// Now remove the handler and wait for it to fully stop.
	require.NoError(t, shutDown(informer, handle))

	// NOW it is safe to close the channel
	close(handler.scheduledPods)

	// Wait for handler function to finish (should already be done)
	<-handler.finished

	require.Nil(t, handler.panicVal, "Handler panicked unexpectedly")
}

func TestShutDownEventHandler_Lifecycles(t *testing.T) {
	handler := cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {}}
	// start waits deterministically for the informer to sync (proving it has started)
	start := func(t *testing.T, informer *objectcache.Informer) (stop func()) {
		stop = run(informer)
		syncCtx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		assert.True(t, cache.WaitFor(syncCtx, "informer sync", informer.HasSyncedChecker()), "Informer did not sync")
		return stop
	}

	t.Run("InformerNeverStarted", func(t *testing.T) {
		informer := newPodInformer(newFakeControllerSource(t), 0)
		// Shutdown should return immediately because the informer was never started.
		require.NoError(t, shutDown(informer, addHandler(t, informer, handler)))
	})

	t.Run("StartedThenAddedThenShutDown", func(t *testing.T) {
		informer := newPodInformer(newFakeControllerSource(t), 0)
		defer start(t, informer)()
		require.NoError(t, shutDown(informer, addHandler(t, informer, handler)))
	})

	t.Run("AddedThenStartedThenShutDown", func(t *testing.T) {
		informer := newPodInformer(newFakeControllerSource(t), 0)
		handle := addHandler(t, informer, handler)
		defer start(t, informer)()
		require.NoError(t, shutDown(informer, handle))
	})
}
