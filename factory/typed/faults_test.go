package typed_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/factory/typed"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/informertest/oracle"
)

// judged lets an oracle see what a server does.
func judged(s *informertest.Server, opts oracle.Options) (o *oracle.Oracle, stop func()) {
	o = oracle.New(opts)
	var state []oracle.Write
	restored := ""
	stop = s.Observe(func(w informertest.Write) {
		if w.Resource != pods && w.Type != informertest.Restored {
			return
		}
		one := oracle.Write{Key: w.Key, UID: w.UID, ResourceVersion: w.ResourceVersion}
		switch w.Type {
		case informertest.Restored:
			state, restored = nil, w.ResourceVersion
			o.Restored(restored, state)
		case informertest.Kept:
			state = append(state, one)
			o.Restored(restored, state)
		case informertest.Created:
			one.Type = oracle.Created
			o.Wrote(one)
		case informertest.Updated:
			one.Type = oracle.Updated
			o.Wrote(one)
		case informertest.Deleted:
			one.Type = oracle.Deleted
			o.Wrote(one)
		}
	})
	return o, stop
}

// settle tells an oracle what the informer has, and asks whether all was right.
func settle(t require.TestingT, o *oracle.Oracle, f *typed.Factory) {
	stored := map[string]string{}
	for _, obj := range f.Core().V1().Pods().Informer().GetStore().List() {
		p := obj.(*corev1.Pod)
		stored[p.Namespace+"/"+p.Name] = p.ResourceVersion
	}
	o.Settled(stored)
	require.NoError(t, o.Check())
}

var listFaults = []string{
	"list cut=200 times=2",
	"list cut=900 times=2",
	"list cut=1500,clean times=2",
	"list page=later cut=300 times=2",
	"list page=later reset times=2",
	"list page=later 410 times=1",
	"list page=later 410 times=3",
	"list page=first 410 times=3",
	"list 504 times=2",
	"list 500 times=2",
	"list 429 retry-after=1 times=2",
	"list 404 times=2",
	"list garbage=1 times=2",
	"list page=later garbage=1 times=2",
	"list hang times=1",
	"watch garbage=1 times=1",
	"watch cut=300 times=3",
	"watch error-event=410 times=1",
	"watch error-event=500 times=2",
	"watch close times=3",
	"watch hang times=1",
	"watch drop-bookmarks=1",
}

// A list that is broken in whatever way deletes nothing that exists and keeps nothing that does
// not; and so does a broken watch.
func TestBrokenAnswersLoseNothing(t *testing.T) {
	for _, form := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		for _, text := range listFaults {
			bubbleRun(t, form[len("application/"):]+" "+text, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
				config := s.Config()
				config.ContentType = form
				f := typed.New(nil, 0, typed.WithRESTConfig(config), typed.WithTweakListOptions(func(o *metav1.ListOptions) {
					if !o.Watch && o.TimeoutSeconds == nil {
						o.Limit = 3
					}
				}))
				// A watch that hangs from its beginning is waited for until it should have ended.
				losesNothing(t, s, text, oracle.Options{UpdatesReplace: true}, f, 40*time.Minute)
			})
		}
	}
}

// losesNothing has a factory meet a fault at its start, and three times more while objects change,
// and requires that an oracle finds nothing wrong. In the pause, the factory recovers.
func losesNothing(t *testing.T, s *informertest.Server, text string, opts oracle.Options, f *typed.Factory, pause time.Duration) {
	fault, err := informertest.ParseFault(text)
	require.NoError(t, err)
	o, unobserve := judged(s, opts)
	defer unobserve()
	for n := range 10 {
		create(t, s, fmt.Sprint("old-", n))
	}
	registration, err := f.Core().V1().Pods().Informer().AddEventHandler(o.Handler(nil))
	require.NoError(t, err)
	stop := make(chan struct{})
	defer f.Shutdown()
	defer close(stop)
	o.Started(oracle.Run{})
	heal := s.Inject(fault)
	f.Start(stop)
	time.Sleep(10 * time.Minute)
	require.True(t, registration.HasSynced())
	o.Synced()
	settle(t, o, f)

	heal()
	for range 3 {
		heal = s.Inject(fault)
		relist(s, func() {
			require.NoError(t, s.Delete(pods, "default", "old-1"))
			create(t, s, "old-1")
			change(t, s, "old-2", "app", "web")
			require.NoError(t, s.Delete(pods, "default", "old-3"))
		})
		create(t, s, "old-3")
		time.Sleep(pause)
		settle(t, o, f)
		heal()
	}
}

// A server that was restored from a backup gives its versions anew: what is stored with the same
// version is another state.
func TestRestoredServerIsReadAnew(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		create(t, s, "same")
		create(t, s, "changes")
		backup := s.Backup()
		change(t, s, "changes", "state", "before")
		create(t, s, "more")
		f := over(s)
		lister := f.Core().V1().Pods().Lister().Pods("default")
		defer started(t, f)()
		before, err := lister.Get("changes")
		require.NoError(t, err)
		heal := s.Inject(informertest.Fault{Effect: informertest.Refuse()})
		s.Restore(backup)
		change(t, s, "changes", "state", "after")
		heal()
		time.Sleep(time.Minute)
		// A watch from a version that is yet to come is silent: client-go does not notice. It does
		// when it has to list.
		s.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch"}}, Effect: informertest.ErrorEvent(410), Times: 1})
		time.Sleep(30 * time.Minute)
		after, err := lister.Get("changes")
		require.NoError(t, err)
		require.Equal(t, before.ResourceVersion, after.ResourceVersion)
		require.Equal(t, before.UID, after.UID)
		require.Equal(t, "after", after.Labels["state"])
		_, err = lister.Get("more")
		require.Error(t, err)
	})
}

// Readers and lists do not meet: what was stored is never transformed again. The race detector
// watches.
func TestTransformMeetsNoReader(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		for n := range 20 {
			create(t, s, fmt.Sprint("pod-", n))
		}
		var calls atomic.Int32
		registry := factory.New()
		f := over(s, typed.WithFactory(registry), typed.WithTransform(func(obj any) (any, error) {
			calls.Add(1)
			p := obj.(*corev1.Pod)
			p.Annotations = map[string]string{"transformed": p.Annotations["transformed"] + "x"}
			p.ManagedFields = nil
			return p, nil
		}))
		lister := f.Core().V1().Pods().Lister()
		stop := make(chan struct{})
		f.Start(stop)
		synced(t, f)
		read := make(chan struct{})
		go func() {
			defer close(read)
			for {
				all, _ := lister.List(labels.Everything())
				for _, p := range all {
					if p.Annotations["transformed"] != "x" {
						panic(p.Annotations["transformed"])
					}
				}
				select {
				case <-stop:
					return
				case <-time.After(time.Second):
				}
			}
		}()
		for n := range 5 {
			relist(s, func() {
				change(t, s, "pod-0", "n", fmt.Sprint(n))
			})
		}
		create(t, s, "watched")
		time.Sleep(time.Minute)
		require.EqualValues(t, 20+5+1, calls.Load())
		close(stop)
		<-read
		f.Shutdown()
	})
}

// Transforms may fail, or make other objects.
func TestTransformThatFails(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		create(t, s, "good")
		f := over(s, typed.WithTransform(func(obj any) (any, error) {
			p := obj.(*corev1.Pod)
			if p.Labels["bad"] != "" {
				return nil, fmt.Errorf("bad")
			}
			return &metav1.PartialObjectMetadata{ObjectMeta: p.ObjectMeta}, nil
		}))
		i := f.Core().V1().Pods().Informer()
		told := handles(t, i)
		stop := started(t, f)
		create(t, s, "other")
		create(t, s, "ugly", "bad", "yes")
		time.Sleep(time.Minute)
		require.ElementsMatch(t, []string{"default/good", "default/other"}, keys(i))
		require.IsType(t, &metav1.PartialObjectMetadata{}, i.GetStore().List()[0])
		change(t, s, "other", "bad", "yes")                    // lost, as with client-go
		require.NoError(t, s.Delete(pods, "default", "other")) // not lost
		require.NoError(t, s.Delete(pods, "default", "ugly"))
		time.Sleep(time.Minute)
		require.Equal(t, []string{"default/good"}, keys(i))
		require.EqualValues(t, 1, told.deleted.Load(), "of the object that the handler has seen")
		stop()
	})
}
