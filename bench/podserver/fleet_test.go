package podserver

import (
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/rvinformer/informer/bench/podserver/extra"
)

// A fleet goes away, counts who comes meanwhile, and is back with one change.
func TestFleetLeavesAndReturns(t *testing.T) {
	f, err := StartFleet([]Options{{Pods: 3}, {Pods: 3, Trouble: Forbidden}}, 0, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	config := f.Servers[0].Config()
	pods := kubernetes.NewForConfigOrDie(config).CoreV1().Pods("")
	before, err := pods.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	w, err := pods.Watch(t.Context(), metav1.ListOptions{ResourceVersion: before.ResourceVersion})
	require.NoError(t, err)

	u, err := extra.Control(t.Context(), f.Control(), extra.LeavePath)
	require.NoError(t, err)
	require.Equal(t, int64(1), u.Accepted, "that of the healthy server")
	for event := range w.ResultChan() {
		require.Equal(t, watch.Error, event.Type, "the connection breaks, and the watch ends")
	}
	_, err = pods.List(t.Context(), metav1.ListOptions{})
	require.Error(t, err)
	u, err = extra.Control(t.Context(), f.Control(), extra.ReturnPath)
	require.NoError(t, err)
	require.Positive(t, u.Attempts)
	require.Positive(t, u.MostAttempts)
	require.LessOrEqual(t, u.MostAttempts, u.Attempts)

	w, err = pods.Watch(t.Context(), metav1.ListOptions{ResourceVersion: before.ResourceVersion})
	require.NoError(t, err)
	event := <-w.ResultChan()
	w.Stop()
	require.Equal(t, watch.Modified, event.Type)
	after, err := pods.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	changed := 0
	for i := range after.Items {
		if after.Items[i].ResourceVersion != before.Items[i].ResourceVersion {
			changed++
		}
	}
	require.Equal(t, 1, changed)
}

func TestAbsentServersRefuseOrSwallow(t *testing.T) {
	f, err := StartFleet(nil, 1, 1)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	_, err = net.Dial("tcp", f.Absent[0].Address)
	require.ErrorContains(t, err, "connection refused")
	conn, err := net.Dial("tcp", f.Absent[1].Address)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	_, err = conn.Read(make([]byte, 1))
	require.ErrorContains(t, err, "i/o timeout")
}

// All connections of a server with a slow link share that link.
func TestSlowLinkIsShared(t *testing.T) {
	s, err := Start(Options{Pods: 1, Trouble: Slow, Plain: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	began, size := time.Now(), 0
	for range 2 {
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		response, err := client.Get(s.Config().Host + "/api/v1/pods")
		require.NoError(t, err)
		body := make([]byte, 64<<10)
		for {
			n, err := response.Body.Read(body)
			if size += n; err != nil {
				break
			}
		}
		require.NoError(t, response.Body.Close())
	}
	require.Greater(t, size, 4000)
	// The last piece is sent when those before it have taken their time.
	require.GreaterOrEqual(t, time.Since(began), time.Duration(size-SlowBytes/10)*time.Second/SlowBytes)
}
