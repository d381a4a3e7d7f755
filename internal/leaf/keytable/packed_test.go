package keytable

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const packable = "-./0123456789:abcdefghijklmnopqrstuvwxyz"

// TestPacked packs every character, at every place of texts of every length.
func TestPacked(t *testing.T) {
	for n := range 40 {
		for at := range n {
			for c := range 256 {
				text := strings.Repeat("a-z9", 10)[:at] + string([]byte{byte(c)}) + strings.Repeat(":0/.", 10)[at+1:n]
				packed, ok := appendPacked([]byte("before"), text)
				require.Equal(t, strings.IndexByte(packable, byte(c)) >= 0, ok, text)
				if !ok {
					continue
				}
				require.Len(t, packed, len("before")+packedSize(n))
				packed = packed[len("before"):]
				require.Equal(t, text, string(appendUnpacked(nil, packed, n)))
				noise := append(packed, 0xff, 0x5a, 0, 0xff, 0xff, 0xff, 0xff, 0xff)
				require.Equal(t, text, string(appendUnpacked(nil, noise, n)), "something follows")
				require.True(t, packedEqual(packed, text) && packedEqual(noise, text))
				for _, other := range []byte{0, '-', 'b', 'A', 0x80 | byte(c), byte(c) ^ 0x20, byte(c) + 1} {
					if other != byte(c) {
						require.False(t, packedEqual(noise, text[:at]+string([]byte{other})+text[at+1:]), "%q is %q with another", text, other)
					}
				}
			}
		}
	}
}

// TestGenerated has the codes of five letters be different.
func TestGenerated(t *testing.T) {
	codes := map[uint32]bool{}
	for a := range 27 {
		for b := range 27 {
			text := generatedAlphabet[a:a+1] + generatedAlphabet[b:b+1] + generatedAlphabet[26-a:27-a] + generatedAlphabet[26-b:27-b] + "x"
			code, ok := generatedCode(text)
			require.True(t, ok)
			require.Less(t, code, uint32(1<<24))
			require.Equal(t, text, string(appendGenerated(nil, code)))
			codes[code] = true
		}
	}
	require.Len(t, codes, 27*27)
	for _, text := range []string{"", "bbbb", "bbbbbb", "bbbba", "abbbb", "bb-bb", "bbb\xffb", "bBbbb"} {
		_, ok := generatedCode(text)
		require.False(t, ok, text)
	}
}

// TestParseUUID has every character at every place of a UUID.
func TestParseUUID(t *testing.T) {
	const uuid = "3b0a6d1e-f29c-4785-a0b1-c2d3e4f56789"
	want, err := hex.DecodeString(strings.ReplaceAll(uuid, "-", ""))
	require.NoError(t, err)
	for at := range uuid {
		for c := range 256 {
			text := uuid[:at] + string([]byte{byte(c)}) + uuid[at+1:]
			parsed, ok := parseUUID(text)
			if uuid[at] == '-' {
				require.Equal(t, c == '-', ok, text)
				continue
			}
			require.Equal(t, strings.IndexByte("0123456789abcdef", byte(c)) >= 0, ok, text)
			if ok {
				require.Equal(t, text, string(appendUUID(nil, parsed[:])))
			}
		}
	}
	parsed, ok := parseUUID(uuid)
	require.True(t, ok)
	require.Equal(t, want, parsed[:])
}
