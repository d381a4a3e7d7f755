package pack_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/internal/pack"
)

// FuzzDamagedRecord changes the bytes of a record and of its base: Append returns something no longer than the longest object, or
// ErrDamaged.
func FuzzDamagedRecord(f *testing.F) {
	objects := pods(300, 0)
	p := pack.New()
	refs := fill(p, objects)
	longest := 0
	for _, o := range objects {
		longest = max(longest, len(o.data))
	}
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
		require.LessOrEqual(t, len(got), 4+longest)
		require.Less(t, cap(got), 4*longest+4096)
	})
}
