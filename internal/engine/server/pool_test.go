//go:build clientgo038

package server

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// The connection of idle watches has a narrow window, also if the configuration asks for a pool of
// connections: all members of a pool but one had a wide one.
func TestNarrowConnectionIsNoPool(t *testing.T) {
	config := &rest.Config{Host: "https://server", MinConnectionPoolSize: 4}
	narrow := narrowed(config)
	require.Equal(t, 4, config.MinConnectionPoolSize)
	rt, err := rest.TransportFor(narrow)
	require.NoError(t, err)
	for {
		wrapper, ok := rt.(utilnet.RoundTripperWrapper)
		if !ok {
			break
		}
		require.NotContains(t, fmt.Sprintf("%T", rt), "connectionPool")
		rt = wrapper.WrappedRoundTripper()
	}
	require.Equal(t, narrowWindow, rt.(*http.Transport).HTTP2.MaxReceiveBufferPerStream)
}
