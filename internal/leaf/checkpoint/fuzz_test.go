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

	"github.com/rvinformer/informer/internal/leaf/checkpoint"
)

// content is what a checkpoint says.
type content struct {
	Entries  []entry
	Metadata map[string]string
	Payload  []byte
}

func isSnapshot(b []byte) bool { return bytes.HasPrefix(b, []byte("\x89RVS")) }

// readContent reads a checkpoint or a snapshot with the Reader.
func readContent(r io.Reader, snapshot bool) (c content, read int64, err error) {
	cr := checkpoint.NewReader(r)
	if snapshot {
		cr = checkpoint.NewSnapshotReader(r)
	}
	for {
		key, lent, err := cr.Next()
		if err == io.EOF {
			err = nil
			if c.Metadata = cr.Metadata(); snapshot {
				c.Payload, err = readAll(cr.Payload())
			}
			return c, cr.Read(), err
		}
		if err != nil {
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

// readAll reads the payload to its end, which no other reader needs to find.
func readAll(p *checkpoint.PayloadReader) (b []byte, err error) {
	for {
		one, err := p.ReadByte()
		if err != nil && strings.Contains(err.Error(), "the payload ends too early") {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
		b = append(b, one)
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
	snapshot := isSnapshot(b)
	if begin := string(take(8)); begin != "\x89RVC\r\n\x1a\n" && begin != "\x89RVS\r\n\x1a\n" {
		return c, 0, false
	}
	if version := binary.BigEndian.Uint16(take(2)); version != 1 && version != 2 || snapshot && version != 2 {
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
			sum := crc32.Checksum(all[:len(all)-len(b)-4], castagnoli)
			ok = size == 12 && binary.BigEndian.Uint64(block.b) == uint64(len(c.Entries)) && binary.BigEndian.Uint32(block.b[8:]) == sum
			for more := snapshot && ok; more; {
				more = b[1]|b[2]|b[3]|b[4] != 0
				size := binary.BigEndian.Uint32(b[1:])
				ok = ok && b[0] == 5 && size <= 4_194_304
				sum = crc32.Update(sum, castagnoli, b[:5+size])
				c.Payload = append(c.Payload, take(uint64(5 + size))[5:]...)
				ok = ok && binary.BigEndian.Uint32(take(4)) == sum
			}
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

// FuzzReader reads anything as the document of the format reads it: as it is, with an end that is
// right for it, and as a journal. What can be read is read back after it was written. No memory is
// asked for that what is read does not fill.
func FuzzReader(f *testing.F) {
	whole := write(f, exampleMetadata, exampleEntries...)
	f.Add(whole)
	f.Add(write(f, nil))
	f.Add(append(slices.Clone(whole), whole...))
	f.Add(withPayload(whole[:len(whole)-17], []byte("objects")))
	f.Add(withPayload(whole[:len(whole)-17], nil, []byte("behind the end")))
	for n := range exampleRecords {
		f.Add(append(frame(exampleRecords[:n]...), frame(exampleRecords[n:]...)...))
	}
	f.Add([]byte{4, 0, 0, 0, 0, 0, 0, 0, 0})
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
		checkReader(t, withPayload(b, b[len(b)/2:], b[len(b)/3:]))
		checkJournal(t, b)
	})
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// withPayload is b as a snapshot, with an end and blocks of payload that are right for it.
func withPayload(b []byte, blocks ...[]byte) []byte {
	b = slices.Clone(b)
	copy(b, "\x89RVS\r\n\x1a\n\x00\x02")
	b = withEnd(b)
	sum := crc32.Checksum(b[:len(b)-4], castagnoli)
	for _, of := range append(blocks, nil) {
		of = block(5, of...)
		sum = crc32.Update(sum, castagnoli, of)
		b = binary.BigEndian.AppendUint32(append(b, of...), sum)
	}
	return b
}

// withEnd is b with an end that is right for it, if there is one.
func withEnd(b []byte) []byte {
	c, _, _ := readContent(bytes.NewReader(b), isSnapshot(b))
	b = append(slices.Clone(b), 3, 0, 0, 0, 12)
	b = binary.BigEndian.AppendUint64(b, uint64(len(c.Entries)))
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func checkReader(t *testing.T, b []byte) {
	before := allocated()
	got, read, err := readContent(iotest.HalfReader(bytes.NewReader(b)), isSnapshot(b))
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
		_, _, err := readContent(bytes.NewReader(b[:cut]), isSnapshot(b))
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "cut at %d", cut)
	}
	again := want.write(t, isSnapshot(b))
	got, read, err = readContent(bytes.NewReader(again), isSnapshot(b))
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.EqualValues(t, len(again), read)
	got, _, ok = plainly(again)
	require.True(t, ok)
	require.Equal(t, want, got)
}

// write writes the content with the Writer.
func (c content) write(t *testing.T, snapshot bool) []byte {
	var b bytes.Buffer
	w := checkpoint.NewWriter(&b)
	if snapshot {
		w = checkpoint.NewSnapshotWriter(&b)
	}
	require.NoError(t, w.AllMetadata(c.Metadata))
	for _, e := range c.Entries {
		require.NoError(t, e.write(w))
		require.NoError(t, w.Push())
	}
	if snapshot {
		p := w.Payload()
		p.Write(c.Payload)
		require.NoError(t, p.Close())
	} else {
		require.NoError(t, w.Close())
	}
	require.EqualValues(t, b.Len(), w.Written())
	return b.Bytes()
}

// checkJournal reads b as a journal: it ends where a frame is not right, and what was read up to
// there is written again as the same frames.
func checkJournal(t *testing.T, journal []byte) {
	base := journaled(t)
	records, r, err := readJournal(append(base, journal...))
	require.Equal(t, io.EOF, err)
	require.LessOrEqual(t, r.Whole(), int64(len(base)+len(journal)))
	require.Equal(t, r.Torn() == nil, r.Whole() == int64(len(base)+len(journal)))
	again, r, err := readJournal(append(journaled(t), frame(records...)...))
	require.Equal(t, io.EOF, err)
	require.NoError(t, r.Torn())
	require.Equal(t, records, again)
}

// allocated is how many bytes the process has allocated so far. The metrics of the runtime count
// small objects late, some at the next collection of garbage.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
