package informertest_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/informertest"
)

// Virtual time goes on while the body of a watch is closed that is being read, as client-go closes
// it. With Go 1.27, it stood still.
func TestBodyIsClosedWhileItIsRead(t *testing.T) {
	for _, secure := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, informertest.Options{InMemory: true, TLS: secure})
			client, err := rest.HTTPClientFor(s.Config())
			require.NoError(t, err)
			defer client.CloseIdleConnections()
			request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.URL()+"/api/v1/pods?watch=true", nil)
			require.NoError(t, err)
			response, err := client.Do(request)
			require.NoError(t, err)
			read := make(chan error, 1)
			go func() {
				_, err := response.Body.Read(make([]byte, 1))
				read <- err
			}()
			synctest.Wait()
			began := time.Now()
			require.NoError(t, response.Body.Close())
			require.Error(t, <-read)
			require.NoError(t, response.Body.Close())
			time.Sleep(time.Minute)
			require.Equal(t, time.Minute, time.Since(began))
		})
	}
}
