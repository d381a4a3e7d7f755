package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// shared is the cluster of all tests of this package, each in a namespace of
// its own. Nothing here runs in parallel, so that any test may kill its server.
var shared *Cluster

// inCluster are the tests of a package, with the cluster that they are in.
type inCluster struct{ *testing.M }

// Client-go ends what renews certificates only when its transport is collected.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(inCluster{m},
		goleak.IgnoreAnyFunction("k8s.io/client-go/transport.(*dynamicClientCert).run"),
		goleak.IgnoreAnyFunction("k8s.io/client-go/transport.(*dynamicClientCert).runWorker"),
		goleak.IgnoreAnyFunction("k8s.io/client-go/transport.(*dynamicClientCert).processNextWorkItem"),
		goleak.IgnoreAnyFunction("k8s.io/apimachinery/pkg/util/wait.PollImmediateUntilWithContext.poller.func1.1"),
		goleak.IgnoreAnyFunction("k8s.io/apimachinery/pkg/util/wait.PollImmediateUntil"),
		goleak.IgnoreAnyFunction("k8s.io/client-go/util/workqueue.(*delayingType[...]).waitingLoop"),
	)
}

func (m inCluster) Run() (code int) {
	ctx := context.Background()
	binaries, err := Build(ctx, "")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	shared, err = Start(ctx, Options{Binaries: binaries, APIServerFlags: []string{WithoutListSnapshots}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := shared.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}()
	return m.M.Run()
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	t.Cleanup(cancel)
	shared.ShowLogs(t)
	return ctx
}

func testPods(ctx context.Context, t *testing.T) *Objects {
	namespace, err := shared.CreateNamespace(ctx, "cluster")
	require.NoError(t, err)
	pods, err := shared.Pods(namespace)
	require.NoError(t, err)
	return pods
}

func TestDataOutlivesAKilledServer(t *testing.T) {
	ctx := testContext(t)
	pods := testPods(ctx, t)
	require.NoError(t, pods.Fill(ctx, 50))
	before, err := pods.Versions(ctx)
	require.NoError(t, err)
	require.Len(t, before, 50)

	require.NoError(t, shared.KillAPIServer())
	_, err = pods.Versions(ctx)
	require.Error(t, err, "no answer should come while the server is down")
	require.Error(t, shared.KillAPIServer(), "there is nothing left to kill")

	require.NoError(t, shared.StartAPIServer(ctx))
	require.Error(t, shared.StartAPIServer(ctx), "it is already running")
	after, err := pods.Versions(ctx)
	require.NoError(t, err, "the same client should work again")
	require.Equal(t, before, after)
}

func TestCompactionExpiresListTokens(t *testing.T) {
	ctx := testContext(t)
	pods := testPods(ctx, t)
	require.NoError(t, pods.Fill(ctx, 20))
	client, err := kubernetes.NewForConfig(shared.Config())
	require.NoError(t, err)

	page, err := client.CoreV1().Pods(pods.Namespace).List(ctx, metav1.ListOptions{Limit: 5})
	require.NoError(t, err)
	require.NotEmpty(t, page.Continue)
	require.NoError(t, pods.Update(ctx, Name(0), "after-the-first-page"))
	_, err = client.CoreV1().Pods(pods.Namespace).List(ctx, metav1.ListOptions{Limit: 5, Continue: page.Continue})
	require.NoError(t, err, "until history is compacted the token is good")

	require.NoError(t, shared.Compact(ctx))
	_, err = client.CoreV1().Pods(pods.Namespace).List(ctx, metav1.ListOptions{Limit: 5, Continue: page.Continue})
	require.True(t, apierrors.IsResourceExpired(err), "got %v", err)
}

func TestWidgetsAreServed(t *testing.T) {
	ctx := testContext(t)
	require.NoError(t, shared.CreateWidgetDefinition(ctx))
	require.NoError(t, shared.CreateWidgetDefinition(ctx), "they are defined already")
	namespace, err := shared.CreateNamespace(ctx, "widgets")
	require.NoError(t, err)
	widgets, err := shared.Widgets(namespace)
	require.NoError(t, err)
	require.NoError(t, widgets.Fill(ctx, 10))
	require.NoError(t, widgets.Update(ctx, Name(3), "updated"))
	require.NoError(t, widgets.Delete(ctx, Name(4)))
	versions, err := widgets.Versions(ctx)
	require.NoError(t, err)
	require.Len(t, versions, 9)
	require.NotContains(t, versions, namespace+"/"+Name(4))
}

func TestChurnWritesUntilStopped(t *testing.T) {
	ctx := testContext(t)
	pods := testPods(ctx, t)
	require.NoError(t, pods.Fill(ctx, 20))
	churn := pods.StartChurn(ctx, 4, 40, 20)
	require.NoError(t, churn.Await(ctx, 200))
	require.NoError(t, churn.Stop())
	before, err := pods.Versions(ctx)
	require.NoError(t, err)
	writes := churn.Writes()
	after, err := pods.Versions(ctx)
	require.NoError(t, err)
	require.Equal(t, before, after, "nothing is written after Stop")
	require.Equal(t, writes, churn.Writes())

	churn.Resume(ctx)
	require.NoError(t, churn.Await(ctx, 200))
	require.NoError(t, churn.Stop())
	require.GreaterOrEqual(t, churn.Writes(), writes+200)
}

func TestStartSaysWhyItFailed(t *testing.T) {
	ctx := testContext(t)
	options := shared.options
	options.APIServerFlags = []string{"--no-such-flag"}
	_, err := Start(ctx, options)
	require.ErrorContains(t, err, "unknown flag: --no-such-flag")

	options.Binaries.Etcd += "-missing"
	_, err = Start(ctx, options)
	require.ErrorContains(t, err, options.Binaries.Etcd)
}

func TestWritersOutliveTheirServer(t *testing.T) {
	ctx := testContext(t)
	pods := testPods(ctx, t)
	writer := pods.StartWriter(ctx, 20, time.Millisecond)
	defer writer.Stop()
	require.NoError(t, writer.Await(ctx, 50))
	require.NoError(t, shared.KillAPIServer())
	require.NoError(t, shared.KillEtcd())
	require.Error(t, shared.KillEtcd(), "there is nothing left to kill")
	require.NoError(t, shared.StartEtcd(ctx))
	require.Error(t, shared.StartEtcd(ctx), "it is already running")
	require.NoError(t, shared.StartAPIServer(ctx))
	require.NoError(t, writer.Await(ctx, 50))

	writer.Stop()
	before, err := pods.Versions(ctx)
	require.NoError(t, err)
	after, err := pods.Versions(ctx)
	require.NoError(t, err)
	require.Equal(t, before, after, "nothing is written after Stop")
}

func TestRestoreGoesBackInTime(t *testing.T) {
	ctx := testContext(t)
	pods := testPods(ctx, t)
	require.NoError(t, pods.Fill(ctx, 5))
	then, err := pods.Versions(ctx)
	require.NoError(t, err)
	_, err = shared.BackUpEtcd()
	require.Error(t, err, "it is running")

	require.NoError(t, shared.KillAPIServer())
	require.NoError(t, shared.KillEtcd())
	backup, err := shared.BackUpEtcd()
	require.NoError(t, err)
	require.NoError(t, shared.StartEtcd(ctx))
	require.NoError(t, shared.StartAPIServer(ctx))
	require.NoError(t, pods.Delete(ctx, Name(0)))
	require.NoError(t, pods.Update(ctx, Name(1), "lost"))
	require.NoError(t, pods.Create(ctx, Name(5)))
	require.Error(t, shared.RestoreEtcd(backup), "it is running")

	require.NoError(t, shared.KillAPIServer())
	require.NoError(t, shared.KillEtcd())
	require.NoError(t, shared.RestoreEtcd(backup))
	require.NoError(t, shared.StartEtcd(ctx))
	require.NoError(t, shared.StartAPIServer(ctx))
	now, err := pods.Versions(ctx)
	require.NoError(t, err)
	require.Equal(t, then, now)
}

func TestAPausedServerIsSilent(t *testing.T) {
	ctx := testContext(t)
	pods := testPods(ctx, t)
	require.NoError(t, shared.PauseAPIServer())
	silent, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := pods.Versions(silent)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, shared.ResumeAPIServer())
	_, err = pods.Versions(ctx)
	require.NoError(t, err)
}

func TestClientCertificatesExpire(t *testing.T) {
	ctx := testContext(t)
	ask := func(lifetime time.Duration) error {
		certFile, keyFile, err := shared.IssueClientCertificate("expiring", lifetime)
		require.NoError(t, err)
		// A client of its own, whose connection shows the newest certificate.
		fresh := shared.Config()
		fresh.BearerToken, fresh.CertFile, fresh.KeyFile = "", certFile, keyFile
		fresh.Dial = (&net.Dialer{}).DialContext
		client, err := kubernetes.NewForConfig(fresh)
		require.NoError(t, err)
		_, err = client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		return err
	}
	require.NoError(t, ask(time.Hour))
	err := ask(-time.Second)
	require.True(t, apierrors.IsUnauthorized(err), "got %v", err)
}
