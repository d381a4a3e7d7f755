package checkpoint_test

import (
	"bytes"
	"encoding/hex"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// record is one record, in strings.
type record struct {
	Kind checkpoint.Record
	entry
}

// frame is the bytes of records that are appended at once.
func frame(records ...record) []byte {
	var j checkpoint.Journal
	for _, r := range records {
		version := keytable.Version{ResourceVersion: r.ResourceVersion, UID: types.UID(r.UID)}.Binary()
		j.Add(r.Kind, r.Key, &version)
	}
	return j.Take(nil)
}

// journaled is a checkpoint of the example's entries that frames can follow.
func journaled(t testing.TB) []byte {
	var b bytes.Buffer
	w := checkpoint.NewJournaledWriter(&b)
	for _, e := range exampleEntries {
		require.NoError(t, e.write(w))
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// readJournal reads a checkpoint to the end, and returns the records behind it.
func readJournal(content []byte) (records []record, r *checkpoint.Reader, err error) {
	r = checkpoint.NewReader(bytes.NewReader(content))
	for err == nil {
		_, _, err = r.Next()
	}
	if err != io.EOF {
		return nil, r, err
	}
	for {
		kind, key, lent, err := r.NextRecord()
		if err != nil {
			return records, r, err
		}
		version := lent.Version()
		records = append(records, record{kind, entry{
			Key: strings.Clone(key), ResourceVersion: strings.Clone(version.ResourceVersion), UID: strings.Clone(string(version.UID)),
		}})
	}
}

var exampleRecords = []record{
	{checkpoint.Begun, entry{Key: "default/web-7d9f-2xk4z"}},
	{checkpoint.Begun, entry{Key: "default/web-7d9f-x2x4z"}},
	{checkpoint.Acknowledged, entry{Key: "default/web-7d9f-2xk4z", ResourceVersion: "1702", UID: uuid}},
	{checkpoint.Gone, entry{Key: "default/web-7d9f-x2x4z"}},
	{checkpoint.Resume, entry{ResourceVersion: "1703"}},
}

// The example of docs/checkpoint-format.md.
const exampleFrame = "04 00000048" +
	" 20 00 16 64656661756c742f7765622d376439662d32786b347a" +
	" 20 11 05 783278347a" +
	" 05 11 05 32786b347a a60d 6f1c2a9e0b5d4c3e8f770123456789ab" +
	" 10 11 05 783278347a" +
	" 31 00 00 a70d"

func TestJournalExample(t *testing.T) {
	want, err := hex.DecodeString(strings.ReplaceAll(exampleFrame, " ", ""))
	require.NoError(t, err)
	got := frame(exampleRecords...)
	require.Equal(t, hex.EncodeToString(want), hex.EncodeToString(got[:len(got)-4]))
	records, r, err := readJournal(append(journaled(t), got...))
	require.Equal(t, io.EOF, err)
	require.NoError(t, r.Torn())
	require.Equal(t, exampleRecords, records)
}

// A journal that is cut or damaged at any byte is read up to the last frame before that.
func TestTornJournal(t *testing.T) {
	base := journaled(t)
	content, ends := base, []int{len(base)}
	for _, r := range exampleRecords {
		content = append(content, frame(r)...)
		ends = append(ends, len(content))
	}
	whole := func(size int) (n int) { // frames
		for n < len(exampleRecords) && ends[n+1] <= size {
			n++
		}
		return n
	}
	for cut := len(base); cut <= len(content); cut++ {
		records, r, err := readJournal(content[:cut])
		require.Equal(t, io.EOF, err)
		require.Len(t, records, whole(cut))
		require.EqualValues(t, ends[whole(cut)], r.Whole())
		if cut == ends[whole(cut)] {
			require.NoError(t, r.Torn())
		} else {
			require.ErrorIs(t, r.Torn(), io.ErrUnexpectedEOF)
		}
	}
	for at := len(base); at < len(content); at++ {
		damaged := bytes.Clone(content)
		damaged[at] ^= 0x10
		records, r, err := readJournal(damaged)
		require.Equal(t, io.EOF, err)
		require.Equal(t, exampleRecords[:whole(at)], append([]record{}, records...))
		require.Error(t, r.Torn())
	}
}

// A checkpoint without a journal has nothing behind its end.
func TestBytesBehindTheEndAreDamage(t *testing.T) {
	content := write(t, nil, exampleEntries...)
	_, _, err := readJournal(content)
	require.Equal(t, io.EOF, err)
	for _, more := range [][]byte{{0}, frame(exampleRecords...), content} {
		_, _, err := readJournal(append(bytes.Clone(content), more...))
		require.ErrorIs(t, err, api.ErrCheckpointDamaged)
	}
}
