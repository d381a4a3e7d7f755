package checkpoint_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
)

var exampleStrings = []string{"", "an object", strings.Repeat("a large one, ", 20_000), "and a last one"}

// writeSnapshot writes the example of a checkpoint with a payload of numbers and strings.
func writeSnapshot(t testing.TB) []byte {
	var b bytes.Buffer
	w := checkpoint.NewSnapshotWriter(&b)
	require.NoError(t, w.AllMetadata(exampleMetadata))
	for _, e := range exampleEntries {
		require.NoError(t, e.write(w))
	}
	p := w.Payload()
	p.Number(uint64(len(exampleStrings)))
	for _, s := range exampleStrings {
		p.Bytes([]byte(s))
	}
	p.Write([]byte{7})
	p.Number(1 << 63)
	require.NoError(t, p.Close())
	require.EqualValues(t, b.Len(), w.Written())
	return b.Bytes()
}

// readSnapshot reads what writeSnapshot has written.
func readSnapshot(t testing.TB, from io.Reader) error {
	r := checkpoint.NewSnapshotReader(from)
	entries, err := read(r)
	if err != nil {
		return err
	}
	require.Equal(t, exampleEntries, entries)
	require.Equal(t, exampleMetadata, r.Metadata())
	in := r.Payload()
	in.Each(func(k int) {
		got := in.Bytes()
		require.Equal(t, len(got), cap(got))
		require.True(t, in.Err() != nil || exampleStrings[k] == string(got), "nothing is returned before its checksum is right")
	})
	one := in.Byte()
	number := in.Number()
	if in.End(); in.Err() == nil {
		require.EqualValues(t, 7, one)
		require.Equal(t, uint64(1<<63), number)
	}
	return in.Err()
}

// A snapshot is read to its end and no further.
func TestSnapshotIsReadBack(t *testing.T) {
	for name, reader := range map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "halves": iotest.HalfReader,
	} {
		r := bytes.NewReader(append(writeSnapshot(t), "what follows"...))
		require.NoError(t, readSnapshot(t, reader(r)), name)
		rest, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, "what follows", string(rest))
	}
}

// Places are all that are in the head, and at the ends of blocks of payload, and some others.
func TestDamagedSnapshotIsRefused(t *testing.T) {
	text, broken := writeSnapshot(t), errors.New("broken pipe")
	for n := range text {
		if n > 400 && n < len(text)-100 && n%(64<<10) > 400 && n%1000 > 0 {
			continue
		}
		require.ErrorIs(t, readSnapshot(t, bytes.NewReader(text[:n])), io.ErrUnexpectedEOF, "cut at %d", n)
		require.ErrorIs(t, readSnapshot(t, io.MultiReader(bytes.NewReader(text[:n]), iotest.ErrReader(broken))), broken, "at %d", n)
		damaged := bytes.Clone(text)
		damaged[n] ^= 1
		err := readSnapshot(t, bytes.NewReader(damaged))
		require.Error(t, err, "another byte at %d", n)
		if n >= 10 { // behind magic and version, it begins as a snapshot does: it may be replaced
			require.NotErrorIs(t, err, api.ErrCheckpointFormat, "another byte at %d", n)
			require.NotErrorIs(t, err, api.ErrCheckpointVersion, "another byte at %d", n)
		}
	}
	p := checkpoint.NewSnapshotWriter(&full{room: 100_000, err: broken}).Payload()
	p.Bytes(make([]byte, 1<<20))
	require.Equal(t, broken, p.Close())
}

// The checksum of a block of payload is also of those before it, so that none can be lost.
func TestBlocksOfPayloadHaveAnOrder(t *testing.T) {
	var b bytes.Buffer
	p := checkpoint.NewSnapshotWriter(&b).Payload()
	p.Write(bytes.Repeat([]byte{1}, 3*64<<10))
	require.NoError(t, p.Close())
	const head, block = 10 + 5 + 12, 5 + 64<<10 + 4
	text := b.Bytes()
	require.Len(t, text, head+3*block+9)
	require.ErrorIs(t, readPayload(text), errEnded)
	require.ErrorIs(t, readPayload(append(bytes.Clone(text[:head+block]), text[head+2*block:]...)), api.ErrCheckpointDamaged)
	require.ErrorIs(t, readPayload(append(bytes.Clone(text[:head]), text[head+block:]...)), api.ErrCheckpointDamaged)
}

var errEnded = errors.New("the payload has ended")

// readPayload reads bytes until there are no more.
func readPayload(text []byte) error {
	_, _, err := readContent(bytes.NewReader(text), true)
	if err == nil {
		return errEnded
	}
	return err
}

// What is in the payload is not what is asked for.
func TestPayloadThatIsSomethingElse(t *testing.T) {
	long := binary.AppendUvarint(nil, 1<<40)
	for name, c := range map[string]struct {
		payload []byte
		read    func(in *checkpoint.PayloadReader)
	}{
		"nothing":                 {nil, func(in *checkpoint.PayloadReader) { in.Byte() }},
		"more than is read":       {[]byte{1, 2}, func(in *checkpoint.PayloadReader) { in.Byte() }},
		"half a number":           {[]byte{0x80}, func(in *checkpoint.PayloadReader) { in.Number() }},
		"a number over 64 bits":   {bytes.Repeat([]byte{0xff}, 11), func(in *checkpoint.PayloadReader) { in.Number() }},
		"a number that is larger": {[]byte{3}, func(in *checkpoint.PayloadReader) { in.Below(3) }},
		"a string of a terabyte":  {append(long, "short"...), func(in *checkpoint.PayloadReader) { in.Bytes() }},
		"a trillion strings":      {append(long, 0, 0), func(in *checkpoint.PayloadReader) { in.Each(func(int) { in.Bytes() }) }},
		"half of a filled buffer": {[]byte{1}, func(in *checkpoint.PayloadReader) { in.Fill(make([]byte, 2)) }},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			out := checkpoint.NewSnapshotWriter(&b).Payload()
			out.Write(c.payload)
			require.NoError(t, out.Close())
			r := checkpoint.NewSnapshotReader(&b)
			_, err := read(r)
			require.NoError(t, err)
			in := r.Payload()
			before := allocated()
			c.read(in)
			require.Less(t, allocated()-before, uint64(256<<10))
			in.End()
			err = in.Err()
			require.ErrorIs(t, err, api.ErrCheckpointDamaged)
			require.Zero(t, in.Byte())
			require.Zero(t, in.Number())
			require.Zero(t, in.Below(1000))
			require.Empty(t, in.Bytes())
			in.Fail("something else")
			require.Equal(t, err, in.Err(), "the first error stays")
		})
	}
}

// Neither a checkpoint nor a snapshot is taken for the other, nor another version for this one.
func TestSnapshotIsNoCheckpoint(t *testing.T) {
	_, err := read(checkpoint.NewReader(bytes.NewReader(writeSnapshot(t))))
	require.ErrorIs(t, err, api.ErrCheckpointFormat)
	require.ErrorContains(t, err, "keeps no objects")

	_, err = read(checkpoint.NewSnapshotReader(bytes.NewReader(write(t, nil))))
	require.ErrorIs(t, err, api.ErrCheckpointFormat)
	require.ErrorContains(t, err, "one of an informer that keeps none")

	for version, want := range []error{api.ErrCheckpointDamaged, checkpoint.ErrEarlier, nil, api.ErrCheckpointVersion} {
		text := writeSnapshot(t)
		text[9] = byte(version)
		if want != nil {
			require.ErrorIs(t, readSnapshot(t, bytes.NewReader(text)), want)
		}
	}
}
