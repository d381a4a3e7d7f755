package typed_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/sharding"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/factory/typed"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
)

// halves are selectors as client-go makes them.
func halves() (selectors []sharding.Selector) {
	middle := "0x8000000000000000"
	for _, r := range []sharding.ShardRangeRequirement{{Start: "0x0000000000000000", End: middle}, {Start: middle, End: "0x10000000000000000"}} {
		r.Key = string(informer.ShardByUID)
		selectors = append(selectors, sharding.NewSelector(r))
	}
	return selectors
}

// keysIn returns the names of the server's pods that a selector selects.
func keysIn(t *testing.T, s *informertest.Server, selector sharding.Selector) (keys []string) {
	all, err := s.List(pods, "")
	require.NoError(t, err)
	for _, pod := range all {
		in, err := selector.Matches(pod)
		require.NoError(t, err)
		if in {
			keys = append(keys, pod.GetName())
		}
	}
	return keys
}

// divided returns the informer of pods with the method that client-go has from 0.38 on. Accessors of
// 0.37 hide it.
func divided(t *testing.T, f *typed.Factory) interface {
	SetShardSelector(selector sharding.Selector) error
} {
	generic, err := f.ForResource(pods)
	require.NoError(t, err)
	return generic.Informer().(interface {
		SetShardSelector(selector sharding.Selector) error
	})
}

// Listers of factories with a shard have its objects only, decoded and encoded, whether the server
// divides the set or not. Factories of one registry share the informers of one shard.
func TestListersOfAShard(t *testing.T) {
	for _, divides := range []bool{false, true} {
		for _, encoded := range []bool{false, true} {
			opts := informertest.Options{ShardedListAndWatch: divides}
			bubbleRun(t, fmt.Sprintf("the server divides: %v, encoded: %v", divides, encoded), opts, func(t *testing.T, s *informertest.Server) {
				for n := range 20 {
					create(t, s, fmt.Sprint("pod-", n))
				}
				registry := factory.New()
				var informers []*objectcache.Informer
				for _, selector := range slices.Concat(halves(), halves()) {
					options := []typed.SharedInformerOption{typed.WithFactory(registry), typed.WithShardSelector(selector)}
					if encoded {
						options = append(options, typed.WithObjectCache(objectcache.Options{}))
					}
					f := over(s, options...)
					i := f.Core().V1().Pods().Informer()
					informers = append(informers, typed.ObjectCache(i))
					lister := f.Core().V1().Pods().Lister()
					defer started(t, f)()
					here, err := lister.List(labels.Everything())
					require.NoError(t, err)
					require.ElementsMatch(t, keysIn(t, s, selector), names(here))
					for n := range 20 {
						name := fmt.Sprint("pod-", n)
						_, err := lister.Pods("default").Get(name)
						require.Equal(t, !slices.Contains(names(here), name), apierrors.IsNotFound(err), name)
					}
					require.ErrorContains(t, divided(t, f).SetShardSelector(selector), "its shard is set with WithShardSelector")
				}
				require.Same(t, informers[0], informers[2])
				require.Same(t, informers[1], informers[3])
				require.NotSame(t, informers[0], informers[1])
			})
		}
	}
}

// The informer of a factory that shares nothing takes a selector until it has started.
func TestShardOfAnInformerOfItsOwn(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		for n := range 10 {
			create(t, s, fmt.Sprint("pod-", n))
		}
		f := over(s)
		set := divided(t, f)
		require.NoError(t, set.SetShardSelector(halves()[0]))
		defer started(t, f)()
		synctest.Wait()
		here, err := f.Core().V1().Pods().Lister().List(labels.Everything())
		require.NoError(t, err)
		require.ElementsMatch(t, keysIn(t, s, halves()[0]), names(here))
		require.ErrorContains(t, set.SetShardSelector(halves()[1]), "informer has already started")
	})
}

// What cannot follow the shard is refused, because it would have the objects of others.
func TestShardThatCannotBeFollowedIsRefused(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		half := typed.WithShardSelector(halves()[0])
		uneven := sharding.NewSelector(
			sharding.ShardRangeRequirement{Key: string(informer.ShardByUID), Start: "0x0000000000000000", End: "0x2000000000000000"},
			sharding.ShardRangeRequirement{Key: string(informer.ShardByUID), Start: "0x4000000000000000", End: "0x6000000000000000"},
		)
		requirePanics(t, "ranges that do not meet", func() { over(s, typed.WithShardSelector(uneven)) })
		requirePanics(t, "a Shard beside WithShardSelector", func() {
			over(s, half, typed.WithObjectCache(objectcache.Options{Shard: informer.Shard{Key: informer.ShardByUID, End: 1}}))
		})
		f := typed.New(fake.NewClientset(), 0, half)
		if _, can := reflect.TypeFor[cache.SharedInformer]().MethodByName("SetShardSelector"); can {
			f.Core().V1().Pods().Informer()
		} else { // client-go is older than 0.38
			requirePanics(t, "cannot follow a shard", func() { f.Core().V1().Pods().Informer() })
			requirePanics(t, "cannot follow a shard", func() {
				f.InformerFor(&corev1.Secret{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
					return coreinformers.NewSecretInformer(client, "", resync, nil)
				})
			})
		}
		for _, selector := range []sharding.Selector{nil, sharding.Everything()} {
			typed.New(fake.NewClientset(), 0, typed.WithShardSelector(selector)).Core().V1().Pods().Informer()
		}
	})
}

// The accessor of a later group has no shard, and ForResource has.
func TestShardOfALaterGroup(t *testing.T) {
	needs037(t)
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server) {
		f := over(s, typed.WithShardSelector(halves()[0]))
		for _, a := range laterOnes(t, f) {
			requirePanics(t, "cannot follow a shard: ForResource can", func() { a.informer() })
		}
		_, err := f.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "pods"})
		require.NoError(t, err)
	})
}

// requirePanics fails unless does panics with a text.
func requirePanics(t *testing.T, text string, does func()) {
	t.Helper()
	defer func() {
		t.Helper()
		require.Contains(t, fmt.Sprint(recover()), text)
	}()
	does()
}
