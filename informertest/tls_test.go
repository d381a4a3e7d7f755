package informertest_test

import (
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/informertest"
)

func TestTLS(t *testing.T) {
	for _, inMemory := range []bool{false, true} {
		t.Run(fmt.Sprint("in memory ", inMemory), func(t *testing.T) {
			s := start(t, informertest.Options{TLS: true, InMemory: inMemory})
			create(t, s, configMap("a", "1", "x"))
			require.True(t, strings.HasPrefix(s.URL(), "https://"), s.URL())

			resp := open(t, s, configMapsPath, nil, "")
			require.Equal(t, http.StatusOK, resp.StatusCode)
			require.Equal(t, 2, resp.ProtoMajor)

			config := s.Config()
			config.NextProtos = []string{"http/1.1"}
			old, err := rest.HTTPClientFor(config)
			require.NoError(t, err)
			defer old.CloseIdleConnections()
			resp, err = old.Get(s.URL() + configMapsPath)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, 1, resp.ProtoMajor)

			if inMemory {
				return
			}
			client, err := dynamic.NewForConfig(s.Config())
			require.NoError(t, err)
			w, err := client.Resource(configMaps).Watch(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			defer w.Stop()
			require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
		})
	}
}

func TestTLSIsVerified(t *testing.T) {
	s := start(t, informertest.Options{TLS: true})
	other := start(t, informertest.Options{TLS: true})
	config := s.Config()
	config.CAData = other.Config().CAData
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	_, err = client.Get(s.URL())
	var unknown x509.UnknownAuthorityError
	require.ErrorAs(t, err, &unknown)
	require.Empty(t, s.Requests())
}

func TestWithoutTLSThereIsNoHTTP2(t *testing.T) {
	s := start(t, informertest.Options{})
	require.Equal(t, 1, open(t, s, configMapsPath, nil, "").ProtoMajor)
	require.Empty(t, s.Config().CAData)
}

func TestHTTP2InABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, informertest.Options{TLS: true, InMemory: true})
		create(t, s, configMap("a", "1", "x"))
		begin := time.Now()
		w := follow(t, s, configMapsPath, "timeoutSeconds", "600", "allowWatchBookmarks", "true")
		require.Equal(t, 2, w.resp.ProtoMajor)
		w.want("ADDED 1 2", "BOOKMARK 2 initial-end")
		for range 9 {
			w.want("BOOKMARK 2")
		}
		w.want("BOOKMARK 2")
		w.wantEnd()
		require.Equal(t, 10*time.Minute, time.Since(begin))
	})
}

func TestConnectionsOfHTTP2AreCut(t *testing.T) {
	for _, inMemory := range []bool{false, true} {
		s := start(t, informertest.Options{TLS: true, InMemory: inMemory})
		create(t, s, configMap("a", "1", "x"))
		w := follow(t, s, configMapsPath, "resourceVersion", "2")
		require.Equal(t, 2, w.resp.ProtoMajor)
		s.CloseClientConnections()
		_, err := w.in.ReadByte()
		require.Error(t, err)
		require.NotErrorIs(t, err, io.EOF)
		got, status := list(t, s)
		require.Nil(t, status)
		require.Len(t, got.Items, 1)
	}
}

// TestCloseWaitsForHandlersOfHTTP2 needs its own test because such a handler can outlive its
// connection.
func TestCloseWaitsForHandlersOfHTTP2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var began, ended atomic.Int32
		s := informertest.NewServer(informertest.Options{TLS: true, InMemory: true, Wrap: func(http.Handler) http.Handler {
			return http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
				began.Add(1)
				<-req.Context().Done()
				time.Sleep(time.Minute)
				ended.Add(1)
			})
		}})
		client := httpClient(t, s)
		done := make(chan error)
		for range 3 {
			go func() {
				_, err := client.Get(s.URL())
				done <- err
			}()
		}
		synctest.Wait()
		require.EqualValues(t, 3, began.Load())
		s.Close()
		require.EqualValues(t, 3, ended.Load())
		for range 3 {
			require.Error(t, <-done)
		}
	})
}

// TestCuttingDoesNotWaitForSlowReadersOfTLS would take 5 seconds if the server said farewell, as
// TLS does.
func TestCuttingDoesNotWaitForSlowReadersOfTLS(t *testing.T) {
	for _, protocol := range []string{"h2", "http/1.1"} {
		for _, writing := range []bool{false, true} {
			t.Run(fmt.Sprint(protocol, " writing ", writing), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { cutSlowReader(t, protocol, writing) })
			})
		}
	}
}

func cutSlowReader(t *testing.T, protocol string, writing bool) {
	s := start(t, informertest.Options{TLS: true, InMemory: true})
	config := s.Config()
	config.NextProtos = []string{protocol}
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	resp, err := client.Get(s.URL() + configMapsPath + "?watch=1")
	require.NoError(t, err)
	defer resp.Body.Close()
	if writing {
		// More than a client of HTTP/2 takes in advance.
		for i := range 10 {
			o := configMap("a", fmt.Sprint(i), "x")
			o.Data["value"] = strings.Repeat("x", 1<<19)
			create(t, s, o)
		}
	}
	synctest.Wait()
	begin := time.Now()
	s.CloseClientConnections()
	s.Close()
	require.Zero(t, time.Since(begin))
}
