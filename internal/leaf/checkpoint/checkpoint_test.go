package checkpoint_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

const uuid = "6f1c2a9e-0b5d-4c3e-8f77-0123456789ab"

// entry is one object, in strings.
type entry struct{ Key, ResourceVersion, UID string }

func (e entry) write(w *checkpoint.Writer) error {
	version := keytable.Version{ResourceVersion: e.ResourceVersion, UID: types.UID(e.UID)}.Binary()
	return w.Entry(e.Key, &version)
}

// exampleEntries and exampleMetadata are those of docs/checkpoint-format.md.
var (
	exampleEntries = []entry{
		{Key: "default/web-7d9f-2xk4z", ResourceVersion: "1691", UID: uuid},
		{Key: "default/web-7d9f-x2x4z", ResourceVersion: "18446744073709551615"},
		{Key: "kube-system/dns", ResourceVersion: "opaque-17", UID: "not-a-uuid"},
		{Key: "node-1"},
	}
	exampleMetadata = map[string]string{"resourceVersion": "1700", "source": "v1/pods"}
)

func write(t testing.TB, metadata map[string]string, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := checkpoint.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		require.NoError(t, w.Metadata(name, metadata[name]))
	}
	for _, e := range entries {
		require.NoError(t, e.write(w))
		require.NoError(t, w.Push())
	}
	require.NoError(t, w.Close())
	require.EqualValues(t, b.Len(), w.Written())
	return b.Bytes()
}

// read returns what is lent, kept.
func read(r *checkpoint.Reader) (entries []entry, err error) {
	for {
		key, version, err := r.Next()
		if err != nil {
			if _, _, again := r.Next(); again != err {
				return entries, fmt.Errorf("error is not final: %w, then %w", err, again)
			}
			if err == io.EOF {
				err = nil
			}
			return entries, err
		}
		v := version.Version()
		entries = append(entries, entry{
			Key: strings.Clone(key), ResourceVersion: strings.Clone(v.ResourceVersion), UID: strings.Clone(string(v.UID)),
		})
	}
}

// signed is a checkpoint of body with a count and the right checksum.
func signed(body []byte, count uint64) []byte {
	b := append([]byte("\x89RVC\r\n\x1a\n\x00\x01"), body...)
	b = append(b, 3, 0, 0, 0, 12)
	return sign(binary.BigEndian.AppendUint64(b, count))
}

func sign(b []byte) []byte {
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// block is one with a right size.
func block(kind byte, body ...byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body))), body...)
}

// TestFormatExample holds writer and reader to the example of the document.
func TestFormatExample(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/checkpoint-format.md")
	require.NoError(t, err)
	_, dump, found := strings.Cut(string(doc), "```text\n")
	require.True(t, found)
	dump, _, found = strings.Cut(dump, "```")
	require.True(t, found)
	var want []byte
	for line := range strings.Lines(dump) {
		parts := strings.Split(line, "|")
		require.Len(t, parts, 3, line)
		at, err := strconv.ParseInt(strings.TrimSpace(parts[0]), 16, 32)
		require.NoError(t, err)
		require.EqualValues(t, len(want), at, line)
		b, err := hex.DecodeString(strings.ReplaceAll(parts[1], " ", ""))
		require.NoError(t, err, line)
		want = append(want, b...)
	}
	got := write(t, exampleMetadata, exampleEntries...)
	require.Equal(t, hex.Dump(want), hex.Dump(got))

	r := checkpoint.NewReader(bytes.NewReader(want))
	entries, err := read(r)
	require.NoError(t, err)
	require.Equal(t, exampleEntries, entries)
	require.Equal(t, exampleMetadata, r.Metadata())
	require.Contains(t, string(doc), fmt.Sprintf("These are versions %d and %d.", checkpoint.Version, checkpoint.VersionJournaled))
}

func TestRoundTrip(t *testing.T) {
	long := strings.Repeat("long", checkpoint.MaxString/4)
	many := make([]entry, 20_000) // several blocks
	for i := range many {
		many[i] = entry{Key: fmt.Sprintf("team/service-%06d", i), ResourceVersion: strconv.Itoa(i), UID: uuid}
	}
	for name, entries := range map[string][]entry{
		"none": nil,
		"many": many,
		"versions": {
			{Key: "0", ResourceVersion: "0"}, {Key: "00", ResourceVersion: "00"}, {Key: "01", ResourceVersion: "01"},
			{Key: "most", ResourceVersion: strconv.FormatUint(math.MaxUint64, 10)}, {Key: "more", ResourceVersion: "18446744073709551616"},
			{Key: "sign", ResourceVersion: "+1"}, {Key: "minus", ResourceVersion: "-1"}, {Key: "space", ResourceVersion: " 1"},
			{Key: "long", ResourceVersion: "340282366920938463463374607431768211455"}, {Key: "bytes", ResourceVersion: "\x00\xff"},
		},
		"uids": {
			{Key: "a", UID: uuid}, {Key: "b", UID: strings.ToUpper(uuid)}, {Key: "c", UID: uuid[:35]}, {Key: "d", UID: uuid + "a"},
			{Key: "e", UID: strings.ReplaceAll(uuid, "-", "_")}, {Key: "f", UID: strings.Replace(uuid, "a", "g", 1)}, {Key: "g", UID: "-"},
		},
		"keys": {
			{Key: ""}, {Key: "/"}, {Key: "a//b"}, {Key: "a/b/c"}, {Key: "\xff\xfe"}, {Key: "é"}, {Key: "a\n"}, {Key: "again"}, {Key: "again"},
			{Key: strings.Repeat("k", 254)}, {Key: strings.Repeat("k", 255)}, {Key: strings.Repeat("k", 256)}, {Key: strings.Repeat("k", 300)}, {Key: "k"},
		},
		"long": {{Key: long, ResourceVersion: long, UID: long}, {Key: long[:len(long)-1]}, {Key: "short"}},
	} {
		t.Run(name, func(t *testing.T) {
			written := write(t, nil, entries...)
			for name, reader := range map[string]func(io.Reader) io.Reader{
				"whole":    func(r io.Reader) io.Reader { return r },
				"halves":   iotest.HalfReader,
				"with EOF": iotest.DataErrReader,
			} {
				r := checkpoint.NewReader(reader(bytes.NewReader(written)))
				got, err := read(r)
				require.NoError(t, err, name)
				require.Equal(t, entries, got)
				require.Empty(t, r.Metadata())
				require.EqualValues(t, len(written), r.Read())
			}
		})
	}
}

func TestMetadata(t *testing.T) {
	var b bytes.Buffer
	w := checkpoint.NewWriter(&b)
	require.NoError(t, w.Metadata("source", "v1/pods"))
	require.NoError(t, w.Metadata("resourceVersion", "1"))
	require.NoError(t, entry{Key: "a/1"}.write(w))
	require.NoError(t, w.Metadata("", ""))
	require.NoError(t, entry{Key: "a/2"}.write(w))
	require.NoError(t, w.Metadata("resourceVersion", "2"), "also at the end")
	require.NoError(t, w.Close())
	r := checkpoint.NewReader(&b)
	entries, err := read(r)
	require.NoError(t, err)
	require.Equal(t, []entry{{Key: "a/1"}, {Key: "a/2"}}, entries)
	require.Equal(t, map[string]string{"source": "v1/pods", "resourceVersion": "2", "": ""}, r.Metadata())
}

// TestTooLong tells that what the writer writes, the reader reads.
func TestTooLong(t *testing.T) {
	var b bytes.Buffer
	w := checkpoint.NewWriter(&b)
	most := strings.Repeat("x", checkpoint.MaxMetadata-len("n")-1-3)
	require.ErrorIs(t, w.Metadata("n", most+"x"), checkpoint.ErrTooLong)
	require.NoError(t, w.Metadata("n", most))
	require.ErrorIs(t, w.Metadata("", ""), checkpoint.ErrTooLong)
	long := strings.Repeat("x", checkpoint.MaxString+1)
	for _, e := range []entry{{Key: long}, {ResourceVersion: long}, {UID: long}} {
		require.ErrorIs(t, e.write(w), checkpoint.ErrTooLong)
	}
	require.NoError(t, entry{Key: long[1:]}.write(w))
	require.NoError(t, w.Close())
	r := checkpoint.NewReader(&b)
	entries, err := read(r)
	require.NoError(t, err)
	require.Equal(t, []entry{{Key: long[1:]}}, entries)
	require.Equal(t, map[string]string{"n": most}, r.Metadata())
}

// TestDamage is of checkpoints whose checksum is right.
func TestDamage(t *testing.T) {
	entry := []byte{1, 0, 1, 'a', 7}
	for name, c := range map[string]struct {
		bytes  []byte
		offset int64
		entry  int
	}{
		"too few entries":         {signed(block(2, entry...), 2), 25, 1},
		"too many entries":        {signed(block(2, entry...), 0), 25, 1},
		"unknown kind of block":   {signed(block(4), 0), 10, 0},
		"kind 0":                  {signed(block(0), 0), 10, 0},
		"block of 4 MiB and one":  {signed([]byte{2, 0, 0x40, 0, 1}, 0), 10, 0},
		"block of 4 GiB":          {signed([]byte{2, 0xff, 0xff, 0xff, 0xff}, 0), 10, 0},
		"entry of a byte":         {signed(block(2, 0), 1), 15, 0},
		"second entry":            {signed(block(2, append(slices.Clone(entry), 0)...), 1), 20, 1},
		"shared with nothing":     {signed(block(2, 0, 1, 0), 1), 15, 0},
		"shared too much":         {signed(block(2, 0, 0, 1, 'a', 0, 2, 0), 2), 19, 1},
		"shared across blocks":    {signed(append(block(2, 0, 0, 1, 'a'), block(2, 0, 1, 0)...), 2), 24, 1},
		"bit 4 of kinds":          {signed(block(2, 0x10, 0, 1, 'a'), 1), 15, 0},
		"kind 3 of version":       {signed(block(2, 3, 0, 1, 'a', 1, 1), 1), 15, 0},
		"kind 3 of UID":           {signed(block(2, 0xc, 0, 1, 'a', 1, 1), 1), 15, 0},
		"no length":               {signed(block(2, 0, 0), 1), 15, 0},
		"key past the block":      {signed(block(2, 0, 0, 2, 'a'), 1), 15, 0},
		"huge key":                {signed(block(2, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 'a'), 1), 15, 0},
		"length over 64 bits":     {signed(block(2, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 'a'), 1), 15, 0},
		"shared and too long":     {signed(block(2, append([]byte{0, 0, 1, 'a', 0, 1, 0x80, 0x80, 0x40}, make([]byte, 1<<20)...)...), 2), 19, 1},
		"no number":               {signed(block(2, 1, 0, 1, 'a'), 1), 15, 0},
		"number over 64 bits":     {signed(block(2, 1, 0, 1, 'a', 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2), 1), 15, 0},
		"version past the block":  {signed(block(2, 2, 0, 1, 'a', 2, 'b'), 1), 15, 0},
		"15 bytes of UUID":        {signed(block(2, append([]byte{4, 0, 1, 'a'}, make([]byte, 15)...)...), 1), 15, 0},
		"UID past the block":      {signed(block(2, 8, 0, 1, 'a', 2, 'b'), 1), 15, 0},
		"name past the block":     {signed(block(1, 2, 'a'), 0), 15, 0},
		"no value":                {signed(block(1, 1, 'a'), 0), 15, 0},
		"second value":            {signed(block(1, 0, 0, 0, 1), 0), 17, 0},
		"too much metadata":       {signed(block(1, make([]byte, checkpoint.MaxMetadata+2)...), 0), 15, 0},
		"metadata in many blocks": {signed(bytes.Repeat(block(1, make([]byte, 1024)...), 65), 0), 10 + 64*1029 + 5, 0},
		"end of 9 bytes":          {sign(append([]byte("\x89RVC\r\n\x1a\n\x00\x01"), block(3, make([]byte, 9)...)...)), 15, 0},
		"version 0":               {sign(append([]byte("\x89RVC\r\n\x1a\n\x00\x00"), block(3, make([]byte, 8)...)...)), 8, 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(checkpoint.NewReader(bytes.NewReader(c.bytes)))
			var e *api.CheckpointError
			require.ErrorAs(t, err, &e)
			require.ErrorIs(t, err, api.ErrCheckpointDamaged)
			require.Equal(t, c.offset, e.Offset, err)
			require.Equal(t, c.entry, e.Entry, err)
		})
	}
	_, err := read(checkpoint.NewReader(bytes.NewReader(signed(append(block(2, entry...), block(2)...), 1))))
	require.NoError(t, err, "what the cases are made of, and an empty block")
}

func TestErrorsOfOthers(t *testing.T) {
	written := write(t, exampleMetadata, exampleEntries...)
	boom := errors.New("boom")
	for cut := range written {
		r := checkpoint.NewReader(io.MultiReader(bytes.NewReader(written[:cut]), iotest.ErrReader(boom)))
		_, err := read(r)
		require.ErrorIs(t, err, boom)
		require.EqualValues(t, cut, r.Read())

		w := checkpoint.NewWriter(&full{room: cut, err: boom})
		for _, name := range slices.Sorted(maps.Keys(exampleMetadata)) {
			require.NoError(t, w.Metadata(name, exampleMetadata[name]), "buffered")
		}
		for _, e := range exampleEntries {
			require.NoError(t, e.write(w), "buffered")
		}
		require.Equal(t, boom, w.Close())
		require.EqualValues(t, cut, w.Written())
		require.Equal(t, boom, entry{}.write(w))
		require.Equal(t, boom, w.Metadata("", ""))
	}
	w := checkpoint.NewWriter(&full{room: 20})
	require.Equal(t, io.ErrShortWrite, w.Close())
}

// full takes room bytes, and returns err then.
type full struct {
	room int
	err  error
}

func (f *full) Write(b []byte) (int, error) {
	n := min(f.room, len(b))
	f.room -= n
	if n < len(b) {
		return n, f.err
	}
	return n, nil
}

// failingOnce fails when it is read for the first time, and then ends.
type failingOnce struct{ err error }

func (f *failingOnce) Read([]byte) (int, error) {
	err := f.err
	f.err = io.EOF
	return 0, err
}

// A reader that fails, wherever in a checkpoint, fails it, also if it could go on.
func TestReaderThatFailsOnce(t *testing.T) {
	content, boom := write(t, exampleMetadata, exampleEntries...), errors.New("boom")
	for at := range content {
		_, err := read(checkpoint.NewReader(io.MultiReader(bytes.NewReader(content[:at]), &failingOnce{boom}, bytes.NewReader(content[at:]))))
		require.ErrorIs(t, err, boom, "at byte %d", at)
	}
}
