package pack_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/internal/leaf/pack"
)

// TestCopiesOfSiblingsShareTheirBase copies records one by one: the first of a group has a copy of
// the base made, which stays for as long as another copy needs it.
func TestCopiesOfSiblingsShareTheirBase(t *testing.T) {
	objects := pods(2000, 0)
	p := pack.New()
	refs := fill(p, objects)
	var c pack.Copies
	copyAll := func() (copies []pack.Record, bytes int) {
		for _, ref := range refs {
			r, size := c.Copy(p.Record(ref))
			copies = append(copies, r)
			bytes += size
		}
		return copies, bytes
	}
	first, withBases := copyAll()
	_, without := copyAll()
	require.Less(t, without, withBases)
	require.Less(t, withBases, 500*len(objects))
	_, other := new(pack.Copies).Copy(p.Record(refs[1]))
	_, again := c.Copy(p.Record(refs[1]))
	require.Less(t, again, other, "the base is there")
	runtime.KeepAlive(first)

	first = nil
	runtime.GC()
	first, bytes := copyAll()
	require.InEpsilon(t, withBases, bytes, 0.05, "bases that nothing needs are not kept")

	for _, ref := range refs {
		p.Drop(ref)
	}
	for i, o := range objects {
		b, err := first[i].Append(nil)
		require.NoError(t, err)
		require.Equal(t, o.data, b)
		require.Equal(t, o.name, string(first[i].Head()))
	}
	empty, size := c.Copy(pack.Record{})
	require.Equal(t, pack.Record{}, empty)
	require.Zero(t, size)
}
