package claims

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

func newInformer() cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(&cache.ListWatch{}, &corev1.Pod{}, 0, cache.Indexers{})
}

// An informer is claimed until the last claim is dropped, whoever wraps it, and is none other.
func TestClaims(t *testing.T) {
	informer := newInformer()
	typed := wrapper{informer}
	id, other := IdentityOf(informer), IdentityOf(newInformer())
	require.Equal(t, id, IdentityOf(typed))
	require.NotEqual(t, id, other)
	require.False(t, Claimed(id))
	Claim(id)
	Claim(IdentityOf(typed))
	require.True(t, Claimed(id))
	require.False(t, Claimed(other))
	Drop(id)
	require.True(t, Claimed(id))
	Drop(id)
	require.False(t, Claimed(id))
	require.Empty(t, claimed.of)
}

// wrapper is an informer around another one.
type wrapper struct{ cache.SharedIndexInformer }

// strange is an informer whose store cannot be compared.
type strange struct{ cache.SharedIndexInformer }

type uncomparable struct {
	cache.Indexer
	_ []int
}

func (s strange) GetIndexer() cache.Indexer {
	return uncomparable{Indexer: s.SharedIndexInformer.GetIndexer()}
}

func TestAnInformerWithAStrangeStoreIsOnItsOwn(t *testing.T) {
	i := strange{newInformer()}
	id := IdentityOf(i)
	require.NotPanics(t, func() {
		Claim(id)
		defer Drop(id)
		require.False(t, Claimed(IdentityOf(strange{newInformer()})))
	})
}

func TestTakenThingIsRefusedUntilReleased(t *testing.T) {
	thing := new(int)
	release, _, ok := Take(thing, "first")
	require.True(t, ok)
	_, other, ok := Take(thing, "second")
	require.False(t, ok)
	require.Equal(t, "first", other)
	release()
	release, _, ok = Take(thing, "second")
	require.True(t, ok)
	release()

	for range 2 { // what cannot be compared cannot be told from others
		release, _, ok := Take([]int{}, "anybody")
		require.True(t, ok)
		release()
	}
}
