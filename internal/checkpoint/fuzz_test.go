package checkpoint_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/internal/checkpoint"
)

// content is what a checkpoint says.
type content struct {
	Entries  []entry
	Metadata map[string]string
}

// readContent reads a checkpoint with the Reader.
func readContent(r io.Reader) (c content, read int64, err error) {
	cr := checkpoint.NewReader(r)
	for {
		key, lent, err := cr.Next()
		if err != nil {
			c.Metadata = cr.Metadata()
			if err == io.EOF {
				err = nil
			}
			return c, cr.Read(), err
		}
		version := lent.Version()
		c.Entries = append(c.Entries, entry{
			Key:             strings.Clone(key),
			ResourceVersion: strings.Clone(version.ResourceVersion),
			UID:             strings.Clone(string(version.UID)),
		})
	}
}

// plainly reads a checkpoint that is held whole as docs/checkpoint-format.md says it, line by line.
// It is false where that does not hold.
func plainly(b []byte) (c content, read int64, ok bool) {
	defer func() { // it slices without looking
		if recover() != nil {
			ok = false
		}
	}()
	all := b
	take := func(n uint64) []byte {
		taken := b[:n]
		b = b[n:]
		return taken
	}
	if string(take(8)) != "\x89RVC\r\n\x1a\n" {
		return c, 0, false
	}
	if version := binary.BigEndian.Uint16(take(2)); version != 1 && version != 2 {
		return c, 0, false
	}
	c.Metadata = map[string]string{}
	metadata := 0
	for {
		kind, size := take(1)[0], binary.BigEndian.Uint32(take(4))
		if size > 4_194_304 {
			return c, 0, false
		}
		block := &plainBlock{take(uint64(size))}
		switch kind {
		case 1:
			if metadata += int(size); metadata > 65_536 {
				return c, 0, false
			}
			for len(block.b) > 0 {
				name := block.string()
				c.Metadata[name] = block.string()
			}
		case 2:
			for before := ""; len(block.b) > 0; {
				e := block.entry(before)
				before = e.Key
				c.Entries = append(c.Entries, e)
			}
		case 3:
			sum := crc32.Checksum(all[:len(all)-len(b)-4], crc32.MakeTable(crc32.Castagnoli))
			ok = size == 12 && binary.BigEndian.Uint64(block.b) == uint64(len(c.Entries)) && binary.BigEndian.Uint32(block.b[8:]) == sum
			return c, int64(len(all) - len(b)), ok
		default:
			return c, 0, false
		}
	}
}

// plainBlock panics where it is malformed.
type plainBlock struct{ b []byte }

func (p *plainBlock) bytes(n uint64) []byte {
	taken := p.b[:n]
	p.b = p.b[n:]
	return taken
}

func (p *plainBlock) uvarint() uint64 {
	v, n := binary.Uvarint(p.b)
	if n <= 0 {
		panic("uvarint")
	}
	p.bytes(uint64(n))
	return v
}

func (p *plainBlock) string() string {
	n := p.uvarint()
	if n > 1_048_576 {
		panic("length")
	}
	return string(p.bytes(n))
}

func (p *plainBlock) entry(before string) (e entry) {
	kinds, shared := p.bytes(1)[0], p.bytes(1)[0]
	e.Key = before[:shared] + p.string()
	if len(e.Key) > 1_048_576 {
		panic("length")
	}
	switch kinds & 3 {
	case 0:
	case 1:
		e.ResourceVersion = strconv.FormatUint(p.uvarint(), 10)
	case 2:
		e.ResourceVersion = p.string()
	default:
		panic("kind")
	}
	switch kinds >> 2 {
	case 0:
	case 1:
		h := hex.EncodeToString(p.bytes(16))
		e.UID = fmt.Sprintf("%s-%s-%s-%s-%s", h[:8], h[8:12], h[12:16], h[16:20], h[20:])
	case 2:
		e.UID = p.string()
	default:
		panic("kind")
	}
	return e
}

// FuzzReader reads anything as the document of the format reads it: as it is, and with an end that
// is right for it. It asks for no memory that what it reads does not fill.
func FuzzReader(f *testing.F) {
	whole := write(f, exampleMetadata, exampleEntries...)
	f.Add(whole)
	f.Add(write(f, nil))
	f.Add(append(slices.Clone(whole), whole...))
	head := whole[:10]
	for _, blocks := range []string{
		"\x02\x00\x40\x00\x00\x00\x00\x80\x80\x40",               // a block and a string that are as large as may be, and are not there
		"\x02\x00\x40\x00\x01",                                   // a block that is larger
		"\x02\xff\xff\xff\xff",                                   // the largest
		"\x02\x00\x00\x00\x03\x00\x01\x00",                       // the first key shares something
		"\x02\x00\x00\x00\x04\x00\x00\x01a\x02\x00\x00\x00\x00",  // blocks without an end
		"\x02\x00\x00\x00\x03\x03\x00\x00\x02\x00\x00\x00\x00",   // kind 3 of a version
		"\x02\x00\x00\x00\x03\x10\x00\x00",                       // an unknown bit
		"\x02\x00\x00\x00\x05\x02\x00\x00\x0207",                 // a number as a string
		"\x02\x00\x00\x00\x05\x01\x00\x00\x80\x00",               // a number in more bytes than it needs
		"\x01\x00\x00\x00\x04\x01a\x01b\x01\x00\x00\x00\x02\x00", // metadata that is cut
		"\x01\x00\x01\x00\x00",                                   // as much metadata as may be
		"\x04\x00\x00\x00\x00",                                   // an unknown kind of block
	} {
		f.Add(append(slices.Clone(head), blocks...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<14 {
			return
		}
		checkReader(t, b)
		checkReader(t, withEnd(b[:max(0, len(b)-17)]))
		checkReader(t, withEnd(b))
	})
}

// withEnd is b with an end that is right for it, if there is one.
func withEnd(b []byte) []byte {
	c, _, _ := readContent(bytes.NewReader(b))
	b = append(slices.Clone(b), 3, 0, 0, 0, 12)
	b = binary.BigEndian.AppendUint64(b, uint64(len(c.Entries)))
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

func checkReader(t *testing.T, b []byte) {
	before := allocated()
	got, read, err := readContent(iotest.HalfReader(bytes.NewReader(b)))
	// A block as large as may be would be 4 MiB.
	require.Less(t, allocated()-before, uint64(3<<20+2000*len(b)))
	want, end, ok := plainly(b)
	require.Equal(t, ok, err == nil, "%v", err)
	if !ok {
		return
	}
	require.Equal(t, want, got)
	require.Equal(t, end, read, "and not a byte more")
	for cut := range min(read, 300) {
		_, _, err := readContent(bytes.NewReader(b[:cut]))
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "cut at %d", cut)
	}
}

// FuzzWriter writes entries and metadata that the lines of a text make up, which are read back.
func FuzzWriter(f *testing.F) {
	f.Add("default/a\t1\t" + uuid + "\ndefault/b\t18446744073709551616\tu\n=name\tvalue\ndefault/bc\t007\t" + strings.ToUpper(uuid))
	f.Add("")
	f.Add("\n\t\t\n=\t")
	f.Add(strings.Repeat("a", 300) + "\t1\n" + strings.Repeat("a", 301) + "\t+2\n" + strings.Repeat("a", 255) + "b\t-0")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<13 {
			return
		}
		want := content{Metadata: map[string]string{}}
		var b bytes.Buffer
		w := checkpoint.NewWriter(&b)
		for line := range strings.SplitSeq(text, "\n") {
			first, rest, _ := strings.Cut(line, "\t")
			second, third, _ := strings.Cut(rest, "\t")
			if name, ok := strings.CutPrefix(first, "="); ok {
				want.Metadata[name] = rest
				require.NoError(t, w.Metadata(name, rest))
				continue
			}
			e := entry{Key: first, ResourceVersion: second, UID: third}
			want.Entries = append(want.Entries, e)
			require.NoError(t, e.write(w))
			require.NoError(t, w.Push())
		}
		require.NoError(t, w.Close())
		require.EqualValues(t, b.Len(), w.Written())
		got, read, err := readContent(bytes.NewReader(b.Bytes()))
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, w.Written(), read)
		got, _, ok := plainly(b.Bytes())
		require.True(t, ok)
		require.Equal(t, want, got)
	})
}

// allocated is how many bytes the process has allocated so far. The metrics of the runtime count
// small objects late, some at the next collection of garbage.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
