package typed_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/factory/typed"
)

// Informers of all accessors, of later groups too, are started, synced and shut down by the factory.
func TestInformersOfAllAccessorsSync(t *testing.T) {
	for name, start := range map[string]func(ctx context.Context, f *typed.Factory){
		"context":     func(ctx context.Context, f *typed.Factory) { f.StartWithContext(ctx) },
		"nil channel": func(_ context.Context, f *typed.Factory) { f.Start(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			f := typed.New(fake.NewClientset(), 0)
			asked := map[string]cache.SharedIndexInformer{}
			for _, a := range accessors(f) {
				asked[a.name] = a.informer()
			}
			ctx, cancel := context.WithCancel(t.Context())
			start(ctx, f)
			result := f.WaitForCacheSyncWithContext(t.Context())
			require.NoError(t, result.Err)
			require.Len(t, result.Synced, len(asked))
			for name, informer := range asked {
				require.True(t, informer.HasSynced(), name)
			}
			cancel()
			f.Shutdown()
			for name, informer := range asked {
				require.True(t, informer.IsStopped(), name)
			}
		})
	}
}

// laterOnes returns the accessors of later groups.
func laterOnes(t *testing.T, f *typed.Factory) []accessor {
	all := slices.DeleteFunc(accessors(f), func(a accessor) bool { return !a.later })
	require.NotEmpty(t, all)
	return all
}

// A wait tells that an informer of a later group has not synced.
func TestInformerOfALaterGroupDoesNotSync(t *testing.T) {
	needs037(t)
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("not now") })
		f := typed.New(client, 0)
		defer f.Shutdown()
		for _, a := range laterOnes(t, f) {
			a.informer()
		}
		f.Start(nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		result := f.WaitForCacheSyncWithContext(ctx)
		require.ErrorIs(t, result.Err, context.DeadlineExceeded)
		require.NotEmpty(t, result.Synced)
		for goType, synced := range result.Synced {
			require.False(t, synced, goType)
		}
	})
}

// Informers of later groups are client-go's, and need the client.
func TestInformerOfALaterGroupNeedsTheClient(t *testing.T) {
	needs037(t)
	f := typed.New(nil, 0, typed.WithRESTConfig(&rest.Config{Host: "http://server"}))
	defer f.Shutdown()
	for _, a := range laterOnes(t, f) {
		require.PanicsWithError(t, "typed: the accessor of a group that client-go has added after 0.36 needs the client, which is nil: ForResource does not",
			func() { a.value.MethodByName("Informer").Call(nil) }, a.name)
	}
}
