package pack_test

import (
	"bytes"
	"io"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/leaf/pack"
)

// saved is a snapshot of a pack only.
func saved(t require.TestingT, s *pack.Snapshot) []byte {
	var b bytes.Buffer
	out := checkpoint.NewSnapshotWriter(&b).Payload()
	s.Write(out)
	require.NoError(t, out.Close())
	return b.Bytes()
}

func read(t require.TestingT, text []byte) (*pack.Pack, error) {
	r := checkpoint.NewSnapshotReader(bytes.NewReader(text))
	_, _, err := r.Next()
	require.Equal(t, io.EOF, err)
	in := r.Payload()
	p, err := pack.Read(in)
	if err == nil {
		in.End()
		require.NoError(t, in.Err())
	}
	return p, err
}

func reread(t require.TestingT, s *pack.Snapshot) *pack.Pack {
	p, err := read(t, saved(t, s))
	require.NoError(t, err)
	return p
}

func TestSnapshotIsTheStateOfItsMoment(t *testing.T) {
	objects := pods(600, 0)
	p := pack.New()
	refs := fill(p, objects)
	for _, k := range inRandomOrder(300, 2) { // leaves dropped records and bases
		objects[k].update()
		replace(p, refs, k, objects[k])
	}
	s := p.Snapshot()
	then := map[uint32]pack.Ref{}
	for k, ref := range refs {
		then[uint32(k)] = ref
	}
	size := p.SizeBytes()
	for k := range objects { // as others write while it is saved
		if k%3 == 0 {
			replace(p, refs, k, object{name: objects[k].name, data: []byte("something else")})
		}
	}
	read := reread(t, s)
	require.Equal(t, then, maps.Collect(read.All()))
	for k, o := range objects {
		requireHas(t, read, []pack.Ref{then[uint32(k)]}, []object{o})
	}
	require.LessOrEqual(t, read.SizeBytes(), size)
}

func TestReadPackGoesOn(t *testing.T) {
	objects := pods(600, 0)
	p := pack.New()
	fill(p, objects[:300])
	read := reread(t, p.Snapshot())
	refs := make([]pack.Ref, 600)
	for owner, ref := range read.All() {
		refs[owner] = ref
	}
	for k := 300; k < 600; k++ {
		refs[k] = read.Add([]byte(objects[k].name), uint32(k), read.Prepare(objects[k].like, 0, objects[k].data))
	}
	requireHas(t, read, refs, objects)
	whole := pack.New()
	fill(whole, objects)
	require.InEpsilon(t, whole.SizeBytes(), read.SizeBytes(), 0.1, "it knows the groups and codes of the first half")
}

func TestEmptySnapshot(t *testing.T) {
	p := reread(t, pack.New().Snapshot())
	require.Empty(t, maps.Collect(p.All()))
	objects := pods(20, 0)
	requireHas(t, p, fill(p, objects), objects)
}

// A snapshot that is cut is no pack: its reader says why.
func TestReadReturnsTheErrorOfTheReader(t *testing.T) {
	p := pack.New()
	fill(p, pods(50, 0))
	good := saved(t, p.Snapshot())
	_, err := read(t, good[:len(good)/2])
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestReadRefusesPartsThatDoNotFitTogether(t *testing.T) {
	p := pack.New()
	fill(p, pods(400, 0))
	for name, damage := range pack.Faults {
		t.Run(name, func(t *testing.T) {
			s := p.Snapshot()
			damage(s)
			_, err := read(t, saved(t, s))
			require.ErrorIs(t, err, api.ErrCheckpointDamaged)
		})
	}
	reread(t, p.Snapshot())
}
