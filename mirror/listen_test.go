package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"regexp"
	"testing"

	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/mirror/internal/clusters"
	"github.com/rvinformer/informer/mirror/internal/demo"
	"github.com/rvinformer/informer/mirror/internal/mirrortest"
	"github.com/stretchr/testify/require"
)

// statusLink finds the link that the mirror has printed.
var statusLink = regexp.MustCompile(`status: (http://\S+/), metrics at`)

func get(t *testing.T, url string) (code int, body string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(url)
	require.NoError(t, err)
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(all)
}

// The demo prints a link to its page. Metrics and health checks are beside it.
func TestDemoServesItsStatus(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	to := mirrortest.NewOutput()
	synced := make(chan struct{})
	to.When(allSynced, func() { close(synced) })
	ended := make(chan int)
	go func() { ended <- run(ctx, []string{"--demo", "--demo-objects=300"}, to.Screen) }()
	<-synced
	link := statusLink.FindStringSubmatch(to.String())
	require.Len(t, link, 2, to)

	code, body := get(t, link[1])
	require.Equal(t, http.StatusOK, code)
	for _, name := range demo.Names() {
		require.Contains(t, body, name)
	}
	code, body = get(t, link[1]+"metrics")
	require.Equal(t, http.StatusOK, code)
	require.Regexp(t, `rvinformer_objects\{cluster="demo-berlin",group="",informer="[^"]*",resource="pods",version="v1"\} \d`, body)
	require.Contains(t, body, `rvinformer_budget_limit_bytes{budget="fleet"}`)
	require.Contains(t, body, "go_goroutines")
	for _, check := range []string{"readyz", "livez", "healthz"} {
		code, body = get(t, link[1]+check+"?verbose")
		require.Equal(t, http.StatusOK, code, body)
	}
	for site, want := range map[string]int{"": http.StatusOK, "cross-site": http.StatusForbidden} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, link[1]+"redeliver", nil)
		require.NoError(t, err)
		request.Close = true
		request.Header.Set("Sec-Fetch-Site", site)
		answer, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, want, answer.StatusCode)
	}

	cancel()
	require.Equal(t, exitOK, <-ended, to)
	_, err := net.Dial("tcp", link[1][len("http://"):len(link[1])-1])
	require.Error(t, err, "nothing listens any more")
}

// A mirror that could not even find out what there is is not ready, and says why.
func TestNotReadyBeforeDiscovery(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	to := mirrortest.NewOutput()
	waits, ended := make(chan struct{}), make(chan int)
	to.When(mirrortest.Has("connection refused"), func() { close(waits) })
	args := []string{"--kubeconfig", mirrortest.Kubeconfig(t, clusters.Endpoint{Name: "gone", Client: mirrortest.Unreachable(t)}),
		"--db", t.TempDir() + "/mirror.db", "--listen=localhost:0"}
	go func() { ended <- run(ctx, args, to.Screen) }()
	<-waits
	link := statusLink.FindStringSubmatch(to.String())
	require.Len(t, link, 2, to)
	code, body := get(t, link[1]+"readyz?verbose")
	require.Equal(t, http.StatusInternalServerError, code)
	require.Regexp(t, `\[-\]informer/gone\S* failed: not synced`, body)
	code, body = get(t, link[1]+"livez?verbose")
	require.Equal(t, http.StatusOK, code, body)
	cancel()
	require.Equal(t, exitFailed, <-ended, to)
}

// Off means off, also for the demo; and an address that cannot be had ends the mirror.
func TestListen(t *testing.T) {
	to := mirrortest.NewOutput()
	require.Equal(t, exitOK, run(t.Context(), []string{"--demo", "--demo-objects=30", "--once", "--listen="}, to.Screen), to)
	require.NotContains(t, to.String(), "status: ")

	taken, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	defer taken.Close()
	to = mirrortest.NewOutput()
	address := taken.Addr().String()
	require.Equal(t, exitFailed, run(t.Context(), []string{"--demo", "--demo-objects=30", "--listen", address}, to.Screen), to)
	require.Contains(t, to.Messages(), "--listen "+address+": ")

	c := mirrortest.NewCluster(t, "here", 3, informertest.Options{})
	to = mirrortest.NewOutput()
	args := []string{"--kubeconfig", mirrortest.Kubeconfig(t, c.Endpoint()), "--db", t.TempDir() + "/mirror.db", "--once"}
	require.Equal(t, exitOK, run(t.Context(), args, to.Screen), to)
	require.NotContains(t, to.String(), "status: ")
}
