package server

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// instant is a transport that answers at once.
type instant struct{ code int }

func (i instant) RoundTrip(request *http.Request) (*http.Response, error) {
	body := io.NopCloser(strings.NewReader("{}"))
	return &http.Response{StatusCode: i.code, Header: http.Header{}, Body: body, Request: request}, nil
}

func newBenchServer(b *testing.B, code int) *Server {
	b.Helper()
	s, err := New(&rest.Config{Host: "https://server", Transport: instant{code}})
	require.NoError(b, err)
	return s
}

// BenchmarkRequest is what a request costs beside its transport.
func BenchmarkRequest(b *testing.B) {
	s := newBenchServer(b, http.StatusOK)
	request, err := http.NewRequest(http.MethodGet, "https://server/version", nil)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		response, err := s.link.Load().httpClient.Transport.RoundTrip(request)
		if err != nil {
			b.Fatal(err)
		}
		response.Body.Close()
	}
}

// BenchmarkAwait waits for no time after a first failure, and is answered then.
func BenchmarkAwait(b *testing.B) {
	s := newBenchServer(b, http.StatusOK)
	r := s.Resource("", schema.GroupVersionResource{Version: "v1", Resource: "pods"})
	request, err := http.NewRequest(http.MethodGet, "https://server/version", nil)
	require.NoError(b, err)
	failure := apierrors.NewGenericServerResponse(http.StatusBadGateway, "get", schema.GroupResource{}, "", "", 0, false)
	b.ReportAllocs()
	for b.Loop() {
		r.Await(b.Context(), 0, failure, nil)
		if _, err := s.link.Load().httpClient.Transport.RoundTrip(request); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAwaitTogether has 100 requests wait together for no time each, and give up.
func BenchmarkAwaitTogether(b *testing.B) {
	s := newBenchServer(b, http.StatusBadGateway)
	r := s.Resource("", schema.GroupVersionResource{Version: "v1", Resource: "pods"})
	failure := apierrors.NewGenericServerResponse(http.StatusBadGateway, "get", schema.GroupResource{}, "", "", 0, false)
	ended, cancel := context.WithCancel(b.Context())
	cancel()
	b.ReportAllocs()
	for b.Loop() {
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { r.Await(ended, 0, failure, func(error) {}) })
		}
		all.Wait()
	}
}
