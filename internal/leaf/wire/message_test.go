package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FieldAt and Message read the same fields, and of a cut message the same whole ones.
func TestFieldAtReadsWhatMessageReads(t *testing.T) {
	pod := generatedList(1).Items[0]
	message, err := pod.Marshal()
	require.NoError(t, err)
	message = append(message, "\x7d1234\x7912345678\xf8\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x82\x01\x81\x00x"...)
	for cut := range len(message) + 1 {
		m := NewMessage(message[:cut])
		end := 0
		for m.Next() {
			from, to := m.Span()
			require.Equal(t, end, from)
			tag, value, data, behind := FieldAt(message[:cut], from)
			require.Equal(t, to, behind)
			require.Equal(t, m.num, int32(tag>>3))
			require.Equal(t, m.typ, wireType(tag&7))
			require.Equal(t, string(m.data), string(data))
			if m.typ == varint {
				require.Equal(t, m.n, value)
			}
			end = to
		}
		_, _, _, behind := FieldAt(message[:cut], end)
		require.Zero(t, behind, "there is no field behind the last one")
		require.Equal(t, end < cut, m.Err() != nil)
	}
	for _, none := range []string{"\x00", "\x02\x00", "\x0b\x0c", "\x0c", "\x0e", "\x08", "\x08" + "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		_, _, _, end := FieldAt([]byte(none), 0)
		require.Zero(t, end, "%q", none)
	}
}

func TestRunOf(t *testing.T) {
	for fields, want := range map[string][2]int{
		"":                               {0, 0},
		"\x0a\x01a":                      {1, 3},
		"\x0a\x01a\x0a\x00\x0a\x81\x00b": {3, 9},
		"\x0a\x01a\x12\x00\x0a\x00":      {1, 3},
		"\x0a\x01a\x08\x01":              {1, 3},
		"\x0a\x01a\x0a\x02b":             {1, 3},
		"\x0a\x01a\x0a":                  {1, 3},
	} {
		n, end := RunOf(0x0a, []byte(fields))
		require.Equal(t, want, [2]int{n, end}, "%q", fields)
	}
}
