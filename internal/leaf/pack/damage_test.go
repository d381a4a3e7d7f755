package pack_test

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/internal/leaf/pack"
)

// FuzzDamagedRecord changes the bytes of a record and of its base: Append returns something that is
// not much longer than these bytes allow, or ErrDamaged.
func FuzzDamagedRecord(f *testing.F) {
	objects := pods(300, 0)
	p := pack.New()
	refs := fill(p, objects)
	f.Add(uint16(3), false, uint16(0), uint16(1), []byte{0xff, 0xff, 0xff, 0xff})
	f.Add(uint16(4), true, uint16(7), uint16(90), []byte{})
	f.Add(uint16(5), true, uint16(0), uint16(0xffff), []byte{})
	f.Fuzz(func(t *testing.T, which uint16, inBase bool, at, cut uint16, put []byte) {
		r := p.Record(refs[int(which)%len(refs)])
		own, base := r.Payloads()
		damage := func(b []byte) []byte {
			from := min(int(at), len(b))
			return slices.Concat(b[:from], put, b[min(from+int(cut), len(b)):])
		}
		if inBase {
			base = damage(base)
		} else {
			own = damage(own)
		}
		got, err := r.WithPayloads(own, base).Append([]byte("kept"))
		if err != nil {
			require.ErrorIs(t, err, pack.ErrDamaged)
		}
		require.Equal(t, "kept", string(got[:4]))
		most := max(64<<10, 8*256*max(len(own), len(base)))
		require.LessOrEqual(t, len(got), 4+most)
		require.Less(t, cap(got), 2*most)
	})
}

// A record of a few bytes that claims to be 512 MiB takes no memory.
func TestClaimedLengthTakesNoMemory(t *testing.T) {
	p := pack.New()
	refs := fill(p, []object{{name: "a", data: bytes.Repeat([]byte("text "), 100)}})
	own, _ := p.Record(refs[0]).Payloads()
	claim := append(binary.AppendUvarint(nil, 512<<20), own[2:]...)
	r := p.Record(refs[0]).WithPayloads(claim, nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := r.Append(nil)
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, pack.ErrDamaged)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

// An object that is almost nothing when compressed is read back, though its payload is not believed
// to be so long.
func TestLongMonotonousObjectsAreReadBack(t *testing.T) {
	var objects []object
	for _, n := range []int{60 << 10, 64 << 10, 1 << 20, 5 << 20} {
		objects = append(objects, object{name: strconv.Itoa(n), data: make([]byte, n)})
	}
	p := pack.New()
	refs := fill(p, objects)
	requireHas(t, p, refs, objects)
	requireHas(t, reread(t, p.Snapshot()), refs, objects)
}
