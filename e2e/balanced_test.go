package e2e

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
)

// unavailable is what a load balancer says that has no server, as a kube-apiserver
// would say it.
const unavailable = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"ServiceUnavailable","message":"no server","code":503}`

// balancer stands before the API server of one informer. While the server is away it
// answers so many requests itself, and keeps those that come then until it is there.
type balancer struct {
	next    http.RoundTripper
	away    *pause
	answers int // it gives itself while the server is away

	mu       sync.Mutex
	down     bool
	answered int
}

func (b *balancer) RoundTrip(req *http.Request) (*http.Response, error) {
	b.mu.Lock()
	down := b.down
	answer := down && b.answered < b.answers
	if answer {
		b.answered++
	}
	b.mu.Unlock()
	switch {
	case answer:
		return &http.Response{
			Status: "503 Service Unavailable", StatusCode: http.StatusServiceUnavailable, Request: req,
			Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Content-Type": {"application/json"}},
			Body:   io.NopCloser(strings.NewReader(unavailable)),
		}, nil
	case down:
		b.away.here(req.Context())
	}
	return b.next.RoundTrip(req)
}

func (b *balancer) set(down bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = down
}

// Etcd is restored behind a load balancer, which answers (503) that there is no server,
// instead of no answer at all. However many answers there were, the first of the server
// itself must not be a watch from a version that it does not have yet: it accepts that
// one, and says nothing.
func TestTrialOfARestoredEtcdBehindABalancer(t *testing.T) {
	skipInShort(t)
	t.Parallel()
	const (
		lost    = 3000 // versions
		answers = 3    // after so many, the informer believes that the server has its version
	)
	ctx := testContext(t)
	c := startCluster(ctx, t)
	b := &balancer{away: newPause(), answers: answers}
	ways := []way{{name: "handler, auto", config: informer.InformerConfig{Backoff: quick()}}}
	tr := newTrial(ctx, t, c, newPods(ctx, t, c, trialNames/2), ways, func() *rest.Config {
		config := c.Config()
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { b.next = next; return b })
		return config
	})
	tr.awaitSynced(ctx, t)
	require.NoError(t, tr.writer.Await(ctx, 50))
	require.NoError(t, c.KillEtcd())
	backup, err := c.BackUpEtcd()
	require.NoError(t, err)
	require.NoError(t, c.StartEtcd(ctx))
	require.NoError(t, tr.writer.Await(ctx, 50))
	for range lost {
		_, err := tr.truth.Reach(ctx) // each is a write
		require.NoError(t, err)
	}
	require.NoError(t, tr.writer.Await(ctx, 50))
	b.set(true)
	tr.restore(ctx, t, c, backup)
	b.away.await(ctx, t)
	b.set(false)
	b.away.goOn()
	tr.judge(ctx, t)
}
