package informertest_test

import (
	"compress/flate"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/rvinformer/informer/informertest"
)

// threshold is the size of the largest response that is not compressed.
const threshold = 128 << 10

// fetch sends a GET whose Accept-Encoding is the test's alone; the body is as it came.
func fetch(t *testing.T, s *informertest.Server, path, accept, encoding string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+path, nil)
	require.NoError(t, err)
	req.Header.Set("Accept", accept)
	if encoding != "" {
		req.Header.Set("Accept-Encoding", encoding)
	}
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(body)
}

func TestLargeResponsesAreCompressed(t *testing.T) {
	const onePath = "/api/v1/namespaces/a/configmaps/1"
	s := start(t, informertest.Options{})
	create(t, s, configMap("a", "1", "x"))
	_, body := fetch(t, s, onePath, "", "")
	o := configMap("a", "1", "x")
	o.Data["value"] = strings.Repeat("x", 1+threshold-len(body))
	_, err := s.Update(configMaps, o)
	require.NoError(t, err)
	_, body = fetch(t, s, onePath, "", "")
	require.Len(t, body, threshold)

	plain := func(path, accept, encoding string) string {
		t.Helper()
		resp, body := fetch(t, s, path, accept, encoding)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.Empty(t, resp.Header.Values("Content-Encoding"))
		require.Empty(t, resp.Header.Values("Vary"))
		return body
	}
	zipped := func(path, accept, encoding string) string {
		t.Helper()
		resp, body := fetch(t, s, path, accept, encoding)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.Equal(t, []string{"gzip"}, resp.Header.Values("Content-Encoding"))
		require.Equal(t, []string{"Accept-Encoding"}, resp.Header.Values("Vary"))
		require.Less(t, len(body), threshold/10)
		unzip, err := gzip.NewReader(strings.NewReader(body))
		require.NoError(t, err)
		text, err := io.ReadAll(unzip)
		require.NoError(t, err)
		return string(text)
	}
	require.Equal(t, body, plain(onePath, "", "gzip"))
	require.Equal(t, plain(configMapsPath, "", ""), zipped(configMapsPath, "", "gzip"), "a list is a little more")

	o.Data["value"] += "x"
	_, err = s.Update(configMaps, o)
	require.NoError(t, err)
	for _, encoding := range []string{"gzip", "deflate, gzip", "br,gzip"} {
		require.Equal(t, plain(onePath, "", ""), zipped(onePath, "", encoding))
	}
	for _, encoding := range []string{"", "identity", "gzip;q=0", "deflate"} {
		require.Len(t, plain(onePath, "", encoding), threshold+1)
	}

	for i := range 3 {
		big := configMap("b", fmt.Sprint(i), "x")
		big.Data["value"] = strings.Repeat("y", 100_000)
		create(t, s, big)
	}
	require.Equal(t, plain(configMapsPath, "", ""), zipped(configMapsPath, "", "gzip"))
	require.Equal(t, plain(configMapsPath, protobufType, ""), zipped(configMapsPath, protobufType, "gzip"))
	require.NotEmpty(t, plain(configMapsPath+"?watch=1&timeoutSeconds=1", "", "gzip"))

	requests := s.Requests()
	last := requests[len(requests)-1]
	require.Equal(t, "watch", last.Verb)
	require.Equal(t, "gzip", last.AcceptEncoding)
	require.Empty(t, requests[0].AcceptEncoding)
}

// TestClientsUnzip shows that a client sees nothing of the compression.
func TestClientsUnzip(t *testing.T) {
	s := start(t, informertest.Options{})
	o := configMap("a", "1", "x")
	o.Data["value"] = strings.Repeat("x", 2*threshold)
	create(t, s, o)
	got, status := list(t, s)
	require.Nil(t, status)
	require.Equal(t, o.Data, got.Items[0].Data)
	inJSON, inProto := clients(t, s)
	for _, client := range []kubernetes.Interface{inJSON, inProto} {
		got, err := client.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Equal(t, o.Data, got.Items[0].Data)
	}
}

func TestGzipAbove(t *testing.T) {
	s := start(t, informertest.Options{GzipAbove: 1})
	create(t, s, configMap("a", "1", "x"))
	resp, _ := fetch(t, s, configMapsPath, "", "gzip")
	require.Equal(t, "gzip", resp.Header.Get("Content-Encoding"))
	resp, _ = fetch(t, s, configMapsPath, "", "")
	require.Empty(t, resp.Header.Get("Content-Encoding"))
}

func TestFaultsOfCompression(t *testing.T) {
	s := start(t, informertest.Options{GzipAbove: 1})
	for i := range 50 {
		create(t, s, configMap("a", fmt.Sprint(i), "x"))
	}
	_, whole := fetch(t, s, configMapsPath, "", "")
	unzip := func() (string, error) {
		resp, body := fetch(t, s, configMapsPath, "", "gzip")
		require.Equal(t, http.StatusOK, resp.StatusCode)
		zip, err := gzip.NewReader(strings.NewReader(body))
		require.NoError(t, err)
		text, err := io.ReadAll(zip)
		return string(text), err
	}
	for _, n := range []int{0, 1, 100, len(whole) - 1} {
		heal := s.Inject(informertest.Fault{Effect: informertest.Corrupt(n)})
		text, err := unzip()
		require.ErrorAs(t, err, new(flate.CorruptInputError))
		require.Equal(t, whole[:n], text)
		_, text = fetch(t, s, configMapsPath, "", "")
		require.Equal(t, whole, text, "it is not compressed")
		heal()
	}
	heal := s.Inject(informertest.Fault{Effect: informertest.Corrupt(len(whole))})
	text, err := unzip()
	require.NoError(t, err, "it is shorter")
	require.Equal(t, whole, text)
	heal()

	heal = s.Inject(informertest.Fault{Effect: informertest.WrongChecksum()})
	text, err = unzip()
	require.ErrorIs(t, err, gzip.ErrChecksum)
	require.Equal(t, whole, text)
	_, text = fetch(t, s, configMapsPath, "", "")
	require.Equal(t, whole, text, "it is not compressed")
	heal()
	text, err = unzip()
	require.NoError(t, err)
	require.Equal(t, whole, text)
}
