package pack_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"maps"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/internal/pack"
)

func saved(t require.TestingT, s *pack.Snapshot) []byte {
	var b bytes.Buffer
	n, err := s.WriteTo(&b)
	require.NoError(t, err)
	require.EqualValues(t, b.Len(), n)
	return b.Bytes()
}

func reread(t require.TestingT, s *pack.Snapshot) *pack.Pack {
	p, err := pack.Read(bytes.NewReader(saved(t, s)))
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

func TestReadNamesWhatIsWrong(t *testing.T) {
	p := pack.New()
	fill(p, pods(50, 0))
	good := saved(t, p.Snapshot())
	for _, at := range []int{0, 9, 40, len(good) / 2, len(good) - 1} {
		bad := bytes.Clone(good)
		bad[at] ^= 4
		_, err := pack.Read(bytes.NewReader(bad))
		require.ErrorIs(t, err, pack.ErrSnapshot, "byte %d", at)
		_, err = pack.Read(iotest.OneByteReader(bytes.NewReader(good[:at])))
		require.ErrorIs(t, err, pack.ErrSnapshot, "the first %d bytes", at)
	}
	broken := errors.New("broken pipe")
	_, err := pack.Read(io.MultiReader(bytes.NewReader(good[:100]), iotest.ErrReader(broken)))
	require.ErrorIs(t, err, broken)
	_, err = p.Snapshot().WriteTo(brokenWriter{broken})
	require.ErrorIs(t, err, broken)
}

func TestReadTakesNoMoreThanTheSnapshot(t *testing.T) {
	p := pack.New()
	fill(p, pods(50, 0))
	r := bytes.NewReader(append(saved(t, p.Snapshot()), "what follows"...))
	_, err := pack.Read(r)
	require.NoError(t, err)
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "what follows", string(rest))
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

// FuzzRead gives Read any bytes, with the right checksum behind them. What it takes can be used
// like any other pack.
func FuzzRead(f *testing.F) {
	objects := pods(60, 0)
	small := pack.New()
	refs := fill(small, objects[:12])
	small.Drop(refs[1])
	small.Drop(refs[0])
	whole := pack.New()
	fill(whole, objects)
	for _, p := range []*pack.Pack{pack.New(), small, whole} {
		b := saved(f, p.Snapshot())
		f.Add(b[:len(b)-4])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = binary.LittleEndian.AppendUint32(bytes.Clone(b), crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
		p, err := pack.Read(bytes.NewReader(b))
		if err != nil {
			require.ErrorIs(t, err, pack.ErrSnapshot)
			return
		}
		all := maps.Collect(p.All())
		for owner, ref := range all {
			if _, err := p.Record(ref).Append(nil); err != nil {
				require.ErrorIs(t, err, pack.ErrDamaged)
			}
			d := p.Prepare("some", ref, objects[0].data)
			all[owner] = p.Add(p.Head(ref), owner, d)
			p.Drop(ref)
			p.Tidy(func(owner uint32, to pack.Ref) { all[owner] = to })
		}
		p.Snapshot()
	})
}

func TestReadRefusesPartsThatDoNotFitTogether(t *testing.T) {
	p := pack.New()
	fill(p, pods(400, 0))
	for name, damage := range pack.Faults {
		t.Run(name, func(t *testing.T) {
			s := p.Snapshot()
			damage(s)
			_, err := pack.Read(bytes.NewReader(saved(t, s)))
			require.ErrorIs(t, err, pack.ErrSnapshot)
		})
	}
	reread(t, p.Snapshot())
}
