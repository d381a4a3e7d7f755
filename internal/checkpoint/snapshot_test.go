package checkpoint_test

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/checkpoint"
	"github.com/rvinformer/informer/internal/keytable"
)

func snapshotHead(t *testing.T) (checkpoint.SnapshotHead, []byte) {
	h := checkpoint.SnapshotHead{
		Metadata: map[string]string{"resource": "v1/pods", "resourceVersion": "12"},
		Sample: map[string]keytable.Version{
			"a/1": {ResourceVersion: "7", UID: "6f1c2a9e-0b5d-4c3e-8f77-0123456789ab"}, "b/2": {ResourceVersion: "opaque"},
		},
	}
	var b bytes.Buffer
	require.NoError(t, h.Write(&b))
	return h, b.Bytes()
}

// A head is read to its end and no further.
func TestSnapshotHeadIsReadBack(t *testing.T) {
	want, text := snapshotHead(t)
	r := bytes.NewReader(append(text, "objects"...))
	got, err := checkpoint.ReadSnapshotHead(iotest.OneByteReader(r))
	require.NoError(t, err)
	require.Equal(t, want, got)
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "objects", string(rest))
}

func TestDamagedSnapshotHeadIsRefused(t *testing.T) {
	_, text := snapshotHead(t)
	for n := range text {
		_, err := checkpoint.ReadSnapshotHead(bytes.NewReader(text[:n]))
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "cut at %d", n)
	}
	for n := range text {
		damaged := bytes.Clone(text)
		damaged[n] ^= 1
		_, err := checkpoint.ReadSnapshotHead(bytes.NewReader(damaged))
		require.Error(t, err, "another byte at %d", n)
		if n >= 10 { // behind magic and version, it begins as a snapshot does: it may be replaced
			require.NotErrorIs(t, err, api.ErrCheckpointFormat, "another byte at %d", n)
			require.NotErrorIs(t, err, api.ErrCheckpointVersion, "another byte at %d", n)
		}
	}
}

// Neither a checkpoint nor a snapshot is taken for the other.
func TestSnapshotIsNoCheckpoint(t *testing.T) {
	_, text := snapshotHead(t)
	_, _, err := checkpoint.NewReader(bytes.NewReader(text)).Next()
	require.ErrorIs(t, err, api.ErrCheckpointFormat)
	require.ErrorContains(t, err, "keeps no objects")

	var b bytes.Buffer
	require.NoError(t, checkpoint.NewWriter(&b).Close())
	_, err = checkpoint.ReadSnapshotHead(&b)
	require.ErrorIs(t, err, api.ErrCheckpointFormat)
	require.ErrorContains(t, err, "one of an informer that keeps none")
}
