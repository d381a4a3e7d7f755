package informertest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/informertest"
)

// get asks for the config maps, and reports whether the connection was used before.
func get(t *testing.T, client *http.Client, s *informertest.Server, query string) (resp *http.Response, reused bool) {
	t.Helper()
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+configMapsPath+query, nil)
	require.NoError(t, err)
	resp, err = client.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { resp.Body.Close() })
	return resp, reused
}

func readAll(t *testing.T, resp *http.Response) {
	t.Helper()
	_, err := io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
}

func TestFaultGoAway(t *testing.T) {
	for _, protocol := range []string{"h2", "http/1.1"} {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(t, informertest.Options{TLS: true, InMemory: true})
				create(t, s, fiveObjects()...)
				config := s.Config()
				config.NextProtos = []string{protocol}
				client, err := rest.HTTPClientFor(config)
				require.NoError(t, err)
				t.Cleanup(client.CloseIdleConnections)

				ask := func(query string) (reused bool) {
					resp, reused := get(t, client, s, query)
					require.Equal(t, http.StatusOK, resp.StatusCode)
					readAll(t, resp)
					synctest.Wait()
					return reused
				}
				ask("")
				require.True(t, ask(""))
				watched, reused := get(t, client, s, "?watch=1&resourceVersion=6&timeoutSeconds=60")
				require.True(t, reused)
				heal := inject(t, s, "list goaway times=1")
				defer heal()
				ask("")
				require.False(t, ask(""), "the next request has a connection of its own")
				require.True(t, ask(""))

				begin := time.Now()
				readAll(t, watched)
				require.Equal(t, time.Minute, time.Since(begin), "what was under way goes on")
			})
		})
	}
}

func TestFaultGoAwayIsSaidOfErrorsAndWatches(t *testing.T) {
	for query, code := range map[string]int{"?limit=-1&resourceVersion=x": http.StatusBadRequest, "?watch=1&timeoutSeconds=1": http.StatusOK} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, informertest.Options{TLS: true, InMemory: true})
			client := httpClient(t, s)
			inject(t, s, "goaway")
			resp, _ := get(t, client, s, query)
			require.Equal(t, code, resp.StatusCode)
			readAll(t, resp)
			synctest.Wait()
			_, reused := get(t, client, s, "")
			require.False(t, reused)
		})
	}
}

func TestFaultGoAwayAndCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, informertest.Options{TLS: true, InMemory: true})
		create(t, s, fiveObjects()...)
		client := httpClient(t, s)
		watched, _ := get(t, client, s, "?watch=1&resourceVersion=6&timeoutSeconds=60")
		inject(t, s, "goaway=5s times=1")
		begin := time.Now()
		resp, reused := get(t, client, s, "")
		require.True(t, reused)
		readAll(t, resp)
		_, err := io.Copy(io.Discard, watched.Body)
		require.Error(t, err)
		require.Equal(t, fmt.Sprint(http2.GoAwayError{LastStreamID: 3}), fmt.Sprint(err))
		require.Equal(t, 5*time.Second, time.Since(begin))
	})
}
