package informer

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

type nilResponses struct{}

func (nilResponses) RoundTrip(*http.Request) (*http.Response, error) { return nil, nil }

// A transport of the user's that returns nothing is an error of the request, as it
// is for every http.Client, and does not crash the process.
func TestBreakATransportThatReturnsNothing(t *testing.T) {
	ctx, _ := withHeading(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/", nil)
	require.NoError(t, err)
	require.NotPanics(t, func() {
		_, err := telling(&http.Client{Transport: nilResponses{}}).Do(request)
		require.Error(t, err)
	})
}
