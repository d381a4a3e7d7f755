package factory_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/informertest"
)

// sharedConfig is what the handlers of a shared informer have in common.
func sharedConfig(t testing.TB, s *informertest.Server) informer.InformerConfig {
	config := versionsConfig(t, s, pods, &tally{})
	config.Handler = nil
	return config
}

// watches is how often the server was asked for a watch.
func watches(s *informertest.Server) (n int) {
	for _, r := range s.Requests() {
		if r.Verb == "watch" {
			n++
		}
	}
	return n
}

func TestUsersShareAResourceVersionInformer(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server, f *factory.Factory) {
		create(t, s, pods, "one")
		config := sharedConfig(t, s)
		config.ListMode = informer.ListModePaged
		a := f.ResourceVersionInformerFor(pods, factory.InformerOptions{LabelSelector: ""}, config)
		b := f.ResourceVersionInformerFor(pods, factory.InformerOptions{}, sharedConfig(t, s))
		require.Same(t, a.Informer, b.Informer)
		early, late := &tally{}, &tally{}
		_, err := a.Informer.AddEventHandler(early)
		require.NoError(t, err)
		a.Start(nil)
		b.Start(nil)
		require.True(t, f.WaitForCacheSync(nil))
		h, err := b.Informer.AddEventHandler(late)
		require.NoError(t, err)
		<-h.HasSyncedChecker().Done()
		create(t, s, pods, "two")
		synctest.Wait()
		require.EqualValues(t, 2, early.added.Load())
		require.EqualValues(t, 2, late.added.Load())
		require.Equal(t, 1, watches(s))

		status := f.Statuses()[0]
		require.Equal(t, informer.PhaseWatching, status.Phase)
		require.Contains(t, status.Key.String(), "v1/pods, shared resource-version")

		lease, err := f.AcquireSharedResourceVersion(pods, factory.InformerOptions{}, config)
		require.NoError(t, err)
		require.Same(t, a.Informer, lease.Informer)
		<-lease.Informer.RemoveHandler(h)
		ends(t, lease.Release(), "the release: others have the informer for good")
		require.Equal(t, informer.PhaseWatching, f.Statuses()[0].Phase)
	})
}

// The last release ends the informer, its handlers and its watch; the next request gets another
// one, without handlers.
func TestTheLastReleaseEndsASharedInformer(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server, f *factory.Factory) {
		create(t, s, pods, "one")
		var before *informer.SharedResourceVersionInformer
		for range 3 {
			told := &tally{}
			one, err := f.AcquireSharedResourceVersion(pods, factory.InformerOptions{}, sharedConfig(t, s))
			require.NoError(t, err)
			other, err := f.AcquireSharedResourceVersion(pods, factory.InformerOptions{}, sharedConfig(t, s))
			require.NoError(t, err)
			require.Same(t, one.Informer, other.Informer)
			require.NotSame(t, before, one.Informer)
			before = one.Informer
			require.Empty(t, one.Informer.Handlers())
			_, err = one.Informer.AddEventHandler(told)
			require.NoError(t, err)
			require.NoError(t, other.Start())
			require.True(t, f.WaitForCacheSync(nil))
			require.EqualValues(t, 1, told.added.Load())
			ends(t, one.Release(), "the release of one of two")
			ends(t, other.Release(), "the last release")
			require.Empty(t, f.Statuses())
		}
	})
}

// There is no newFunc that would apply the transform of the options: it is that of the handlers, if
// the configuration has none of its own.
func TestTransformOfASharedInformer(t *testing.T) {
	label := func(value string) func(obj any) (any, error) {
		return func(obj any) (any, error) {
			obj.(metav1.Object).SetLabels(map[string]string{"by": value})
			return obj, nil
		}
	}
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server, f *factory.Factory) {
		create(t, s, pods, "one")
		own := sharedConfig(t, s)
		own.Transform = label("configuration")
		opts := factory.InformerOptions{ObjectTransform: label("options"), TransformName: "label"}
		for want, config := range map[string]informer.InformerConfig{"options": sharedConfig(t, s), "configuration": own} {
			lease, err := f.AcquireSharedResourceVersion(pods, opts, config)
			require.NoError(t, err)
			var by []string
			_, err = lease.Informer.AddEventHandler(informer.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
				by = append(by, obj.(metav1.Object).GetLabels()["by"])
			}})
			require.NoError(t, err)
			require.NoError(t, lease.Start())
			require.True(t, f.WaitForCacheSync(nil))
			require.Equal(t, []string{want}, by)
			ends(t, lease.Release(), "the release")
		}
	})
}

func TestBadAsksForASharedInformer(t *testing.T) {
	server := informertest.NewServer(informertest.Options{})
	defer server.Close()
	f := factory.New()
	good := sharedConfig(t, server)
	handled := good
	handled.Handler = informer.ResourceEventHandlerFuncs{}
	odd := good
	odd.ListMode = 99
	selected := factory.InformerOptions{LabelSelector: "a=("}
	for want, ask := range map[string]func(){
		"v1/pods, shared resource-version: the configuration has no ListerWatcher": func() {
			f.ResourceVersionInformerFor(pods, factory.InformerOptions{}, informer.InformerConfig{})
		},
		"v1/pods, shared resource-version: the configuration has a handler": func() {
			f.ResourceVersionInformerFor(pods, factory.InformerOptions{}, handled)
		},
		`label selector "a=("`: func() { f.ResourceVersionInformerFor(pods, selected, good) },
		"unknown ListMode 99":  func() { f.ResourceVersionInformerFor(pods, factory.InformerOptions{}, odd) },
	} {
		require.Contains(t, panicOf(ask), want)
		require.Empty(t, f.Statuses())
	}
	var request *factory.RequestError
	_, err := f.AcquireSharedResourceVersion(pods, factory.InformerOptions{}, handled)
	require.ErrorAs(t, err, &request)
	require.Equal(t, pods, request.Key.Resource)

	_, err = f.Acquire(pods, factory.InformerOptions{InformerType: factory.SharedResourceVersionInformer}, newStubFunc)
	require.ErrorContains(t, err, "ResourceVersionInformerFor")
	transformed := factory.InformerOptions{ObjectTransform: func(obj any) (any, error) { return obj, nil }, TransformName: "one"}
	_, err = f.AcquireSharedResourceVersion(pods, transformed, good)
	require.NoError(t, err)
	var conflict *factory.TransformConflictError
	_, err = f.AcquireSharedResourceVersion(pods, factory.InformerOptions{}, good)
	require.ErrorAs(t, err, &conflict)
	require.NotNil(t, f.ResourceVersionInformerFor(pods, factory.InformerOptions{}, good).Informer)
	factory.StartableResourceVersionInformer{}.Start(nil)
}

// panicOf is what f panics with, as text.
func panicOf(f func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	f()
	return ""
}
