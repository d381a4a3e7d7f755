package known

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// FuzzIncludes compares a storage with a checkpoint, line for line a key and the two versions of
// it: what is held includes it where a map says so.
func FuzzIncludes(f *testing.F) {
	for _, seed := range []string{"a\t1\t1\nb\t3\t2", "a\t1\t2", "a\t\t1", "a\t1\t", "a\t\t1\nb\t7\t", "a\tx\tx", "a\tx\ty", "a\t5\t5\na\t6\t5", "\t1\t1", ""} {
		f.Add(seed, "5")
		f.Add(seed, "")
	}
	f.Fuzz(func(t *testing.T, text, resume string) {
		if len(text) > 1<<12 || len(resume) > 1<<12 {
			return
		}
		held, saved := map[string]interface{}{}, map[string]string{}
		for line := range strings.SplitSeq(text, "\n") {
			key, versions, _ := strings.Cut(line, "\t")
			now, before, _ := strings.Cut(versions, "\t")
			if key == "" {
				continue
			}
			if delete(held, key); now != "" {
				held[key] = now
			}
			if delete(saved, key); before != "" {
				saved[key] = before
			}
		}
		storage := &Versions{}
		require.NoError(t, storage.Replace(held))
		var b bytes.Buffer
		w := checkpoint.NewWriter(&b)
		require.NoError(t, w.Metadata(checkpoint.MetadataResourceVersion, resume))
		for key, before := range saved {
			version := keytable.Version{ResourceVersion: before}.Binary()
			require.NoError(t, w.Entry(key, &version))
		}
		require.NoError(t, w.Close())

		want := true
		for key, before := range saved {
			now, exists := held[key]
			want = want && exists && (now == before || rv.Compare(now.(string), before) == rv.Newer)
		}
		for key, now := range held {
			_, was := saved[key]
			want = want && (was || rv.Compare(now.(string), resume) == rv.Newer)
		}
		state, err := storage.ReadSaved(bytes.NewReader(b.Bytes()))
		require.NoError(t, err)
		require.Equal(t, resume, state.Metadata[checkpoint.MetadataResourceVersion])
		require.Equal(t, want, storage.Includes(state), "%q has %q", held, saved)
		for cut := range b.Bytes() {
			_, err := storage.ReadSaved(bytes.NewReader(b.Bytes()[:cut]))
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		}
	})
}
