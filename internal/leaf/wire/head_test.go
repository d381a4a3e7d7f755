package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/api"
)

// A watch that waits does not hold the beginning of its body, which only the error of a body that
// is no watch quotes.
func TestWatchLetsTheBeginningOfItsBodyGo(t *testing.T) {
	const event = `{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"a","name":"b","uid":"u","resourceVersion":"1"}}}`
	options := Options{BufferBytes: minBufferBytes}
	r := NewWatchReader(strings.NewReader(event+"\n"+event+"\n[]"), JSON, options).(*jsonWatch)
	for range 2 {
		_, err := r.Next()
		require.NoError(t, err)
		require.Nil(t, r.head)
	}
	_, err := r.Next()
	require.ErrorIs(t, err, api.ErrMalformed)
	_, err = NewWatchReader(strings.NewReader("<html>no watch</html>"), JSON, options).Next()
	var fault *api.BodyError
	require.ErrorAs(t, err, &fault)
	require.ErrorIs(t, err, api.ErrNotWatch)
	require.Equal(t, "<html>no watch</html>", string(fault.Head))
}
