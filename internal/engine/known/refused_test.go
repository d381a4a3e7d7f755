package known_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/known"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// The dead letter of a deletion also stands for the object that came in its place, and had to wait. One
// that a library has written which knew no Newest stands for its own version.
func TestDeadLettersOfACheckpointAreRefused(t *testing.T) {
	var b bytes.Buffer
	w := checkpoint.NewJournaledWriter(&b)
	require.NoError(t, w.Metadata(checkpoint.MetadataResourceVersion, "6"))
	old := keytable.Version{ResourceVersion: "5", UID: "one"}.Binary()
	require.NoError(t, w.Entry("a/1", &old))
	require.NoError(t, w.Close())
	var j checkpoint.Journal
	j.AddDeadLetter(api.DeadLetter{Key: "a/1", ResourceVersion: "5", Newest: "8", UID: "one", Type: api.Deleted})
	j.AddDeadLetter(api.DeadLetter{Key: "a/2", ResourceVersion: "12", UID: "two", Type: api.Added})
	resume := keytable.Version{ResourceVersion: "9"}.Binary()
	j.Add(checkpoint.Resume, "", &resume)
	b.Write(j.Take(nil))

	for name, load := range map[string]func(v *known.Versions, s known.Saved){
		"alone":            func(v *known.Versions, s known.Saved) { v.Adopt(s) },
		"beside a storage": func(v *known.Versions, s known.Saved) { v.AdoptDeadLetters(s) },
	} {
		var v known.Versions
		saved, err := v.ReadSaved(bytes.NewReader(b.Bytes()))
		require.NoError(t, err)
		load(&v, saved)
		for key, refused := range map[string]string{"a/1": "8", "a/2": "12"} {
			resourceVersion, generation, exists := v.Refused(key)
			require.True(t, exists, name)
			require.Equal(t, refused, resourceVersion, name)
			require.Zero(t, generation, name)
		}
		_, _, exists := v.Refused("a/3")
		require.False(t, exists, name)
		v.Settle("a/1", true)
		_, _, exists = v.Refused("a/1")
		require.False(t, exists, name)
		require.Len(t, v.DeadLetters(), 1, name)
	}
}
