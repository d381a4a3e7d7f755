package known_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/known"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// A store may find damage by itself, behind a checkpoint whose own checksum is right. That is no
// journal that was torn: nothing of it is believed.
func TestDamageThatTheStoreFindsIsNotBelieved(t *testing.T) {
	forged := fmt.Errorf("wrong signature: %w", api.ErrCheckpointDamaged)
	for name, begin := range map[string]func(io.Writer) *checkpoint.Writer{"alone": checkpoint.NewWriter, "with a journal": checkpoint.NewJournaledWriter} {
		var b bytes.Buffer
		w := begin(&b)
		version := keytable.Version{ResourceVersion: "7"}.Binary()
		require.NoError(t, w.Entry("a/1", &version))
		require.NoError(t, w.Close())
		from := func() io.Reader { return io.MultiReader(bytes.NewReader(b.Bytes()), iotest.ErrReader(forged)) }
		var v known.Versions
		_, err := v.ReadSaved(from())
		require.ErrorIs(t, err, forged, name)
		if name == "with a journal" {
			_, err = v.ReadFrom(from())
			require.ErrorIs(t, err, forged, name)
			require.Zero(t, v.Len())
		}
	}
}
