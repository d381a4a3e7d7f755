package server

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// A member that is cut anywhere, also within the names in its header, is no end of the body.
func TestCutMember(t *testing.T) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Name, w.Comment, w.Extra = "name", "comment", []byte("extra")
	_, err := io.WriteString(w, "data")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	whole := b.Bytes()
	for cut := 1; cut < len(whole); cut++ {
		_, err := io.ReadAll(&Zipped{Body: io.NopCloser(bytes.NewReader(whole[:cut]))})
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "cut at %d", cut)
	}
	text, err := io.ReadAll(&Zipped{Body: io.NopCloser(bytes.NewReader(append(bytes.Clone(whole), whole...)))})
	require.NoError(t, err)
	require.Equal(t, "datadata", string(text))
}
